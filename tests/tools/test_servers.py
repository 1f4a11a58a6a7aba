"""Servers in memory: nobody's memory is kept, and nobody's is taken."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenure import embedded
from tests.tools import servers


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(servers, "MEMORY", tmp_path)
    monkeypatch.setattr(servers, "ENOUGH", 0)
    return tmp_path


def abandoned(memory: Path) -> Path:
    """What a run that was killed has left."""
    folder = memory / f"{servers.PREFIX}abandoned"
    (folder / "data").mkdir(parents=True)
    return folder


def test_what_a_killed_run_left_is_removed(memory: Path) -> None:
    left = abandoned(memory)

    servers.temporary().close()

    assert not left.exists()


def test_a_server_that_another_run_uses_is_left_alone(memory: Path) -> None:
    one = servers.temporary()
    one.data.mkdir()

    two = servers.temporary()

    assert one.base.exists()
    one.close()
    two.close()


def test_a_folder_in_which_nothing_lies_yet_is_left_alone(memory: Path) -> None:
    new = memory / f"{servers.PREFIX}new"
    new.mkdir()

    servers.temporary().close()

    assert new.exists()


def test_with_too_little_memory_the_data_lies_where_users_have_theirs(
    memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "ENOUGH", 1 << 62)
    left = abandoned(memory)

    server = servers.temporary(embedded.SMALL)

    assert memory not in server.base.parents
    assert left.exists()
    server.close()
