"""Long error texts that no client has cut."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.postgres.races import Connection, leased, one, owner

Session = Callable[[], Connection]

LONGEST = 8192
"""Bytes of a message, the marker included."""


@pytest.mark.parametrize("character", ["x", "é", "€", "😀"])
@pytest.mark.parametrize("before", range(4))
def test_a_long_message_is_cut_between_characters_and_marked(
    session: Session, character: str, before: int
) -> None:
    worker = session()
    lease = leased(worker)
    message = "-" * before + character * (LONGEST + 1)
    assert one(worker, "fail", *owner(lease), "Broken", message).verdict == "ok"

    row = worker.execute("select a.message from tenure.attempt as a").fetchone()
    assert row is not None
    [kept] = row
    assert kept.endswith("…")
    assert message.startswith(kept.removesuffix("…"))
    assert LONGEST - len(character.encode()) < len(kept.encode()) <= LONGEST


def test_a_message_of_the_longest_size_is_not_cut(session: Session) -> None:
    worker = session()
    lease = leased(worker)
    message = "é" * (LONGEST // 2)
    one(worker, "fail", *owner(lease), "Broken", message)
    row = worker.execute("select a.message from tenure.attempt as a").fetchone()
    assert row == (message,)
