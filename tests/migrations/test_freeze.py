"""Frozen SQL stays as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrations import freeze


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of two functions and one revision, in which `freeze` works."""
    for name in ("one", "two"):
        write(tmp_path / f"sql/functions/{name}.sql", f"-- {name}")
    write(tmp_path / "sql/install.sql", "-- install")
    write(tmp_path / "sql/version.sql", "-- of no revision")
    write(tmp_path / "migrations/versions/0001_first.py", "")
    monkeypatch.setattr(freeze, "SQL", tmp_path / "sql")
    monkeypatch.setattr(freeze, "MIGRATIONS", tmp_path / "migrations")
    monkeypatch.setattr(freeze, "FROZEN", tmp_path / "migrations/frozen")
    monkeypatch.setattr(freeze, "SUMS", tmp_path / "migrations/frozen/SHA256SUMS")
    freeze.freeze("0001")
    return tmp_path


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_the_only_revision_is_frozen_whole_and_again(workshop: Path) -> None:
    write(workshop / "sql/functions/one.sql", "-- one, better")
    (workshop / "sql/functions/two.sql").unlink()
    assert freeze.changed() == ["functions/one.sql", "functions/two.sql"]

    freeze.freeze("0001")

    assert freeze.changed() == []
    assert freeze.newest_copies().keys() == {"functions/one.sql", "install.sql"}
    assert freeze.problems() == []


def test_a_later_revision_gets_only_what_changed(workshop: Path) -> None:
    write(workshop / "migrations/versions/0002_second.py", "")
    write(workshop / "sql/functions/one.sql", "-- one, better")
    write(workshop / "sql/schema.sql", "-- what the revision does itself")

    freeze.freeze("0002")

    frozen = workshop / "migrations/frozen"
    assert [file.name for file in (frozen / "0002").rglob("*.sql")] == ["one.sql"]
    assert (frozen / "0001/functions/one.sql").read_text() == "-- one"
    assert freeze.changed() == []


def test_a_revision_that_has_a_successor_is_never_frozen_again(workshop: Path) -> None:
    write(workshop / "migrations/versions/0002_second.py", "")
    write(workshop / "sql/functions/one.sql", "-- one, better")

    with pytest.raises(SystemExit, match="REV=0002"):
        freeze.freeze("0001")


@pytest.mark.parametrize("touched", ["functions/one.sql", "functions/three.sql"])
def test_a_touched_or_added_file_is_noticed(workshop: Path, touched: str) -> None:
    write(workshop / "migrations/frozen/0001" / touched, "-- touched")

    with pytest.raises(SystemExit, match=f"0001/{touched}: is not what SHA256SUMS says"):
        freeze.main(["--check"])


def test_a_missing_file_is_noticed(workshop: Path) -> None:
    (workshop / "migrations/frozen/0001/functions/two.sql").unlink()

    with pytest.raises(SystemExit, match=r"two\.sql: is missing"):
        freeze.main(["--check"])


def test_freezing_a_later_revision_does_not_bless_a_touched_earlier_one(workshop: Path) -> None:
    write(workshop / "migrations/frozen/0001/functions/one.sql", "-- touched")
    write(workshop / "migrations/versions/0002_second.py", "")

    with pytest.raises(SystemExit, match=r"0001/functions/one\.sql"):
        freeze.freeze("0002")


def test_no_frozen_file_of_this_repository_was_touched() -> None:
    assert freeze.problems() == []
