"""Copies SQL that has changed into the folder of a revision.

    python migrations/freeze.py 0002       copy what differs from its newest frozen copy
    python migrations/freeze.py --check    prove that no frozen file was touched since

While 0001 is the only revision, nothing is released: it is frozen whole, as often as wanted.
Later revisions hold functions, views and grants; what they do to tables is in their own file.
Only the newest revision can be frozen.
"""

import hashlib
import sys
from pathlib import Path

SQL = Path(__file__).resolve().parents[1] / "sql"
MIGRATIONS = Path(__file__).resolve().parent
FROZEN = MIGRATIONS / "frozen"
SUMS = FROZEN / "SHA256SUMS"

# Of every installation, not of a revision.
NOT_FROZEN = {"prelude.sql", "version.sql"}


def revisions() -> list[str]:
    """The revisions there are, oldest first."""
    return sorted(file.name[:4] for file in MIGRATIONS.glob("versions/[0-9]*.py"))


def sources() -> dict[str, bytes]:
    """The files that a revision could freeze now, by their path below sql/."""
    files = {file.relative_to(SQL).as_posix(): file.read_bytes() for file in SQL.rglob("*.sql")}
    if len(revisions()) > 1:
        loaded_whole = ("functions/", "views/", "grants.sql")
        return {name: text for name, text in files.items() if name.startswith(loaded_whole)}
    return {name: text for name, text in files.items() if name not in NOT_FROZEN}


def newest_copies() -> dict[str, bytes]:
    """What was frozen last under each path below sql/."""
    copies = {}
    for revision in revisions():
        for file in sorted((FROZEN / revision).rglob("*.sql")):
            copies[file.relative_to(FROZEN / revision).as_posix()] = file.read_bytes()
    return copies


def changed() -> list[str]:
    """The paths below sql/ that say something else than their newest frozen copy."""
    now, copies = sources(), newest_copies()
    gone = set() if len(revisions()) > 1 else copies.keys() - now.keys()
    return sorted({name for name in now if now[name] != copies.get(name)} | gone)


def freeze(revision: str) -> None:
    """Copy what has changed into the newest revision, and write the checksums anew."""
    newest = revisions()[-1]
    if revision != newest:
        sys.exit(f"only the newest revision can be frozen: REV={newest}")
    tampered = [problem for problem in problems() if not problem.startswith(f"{newest}/")]
    if tampered:
        sys.exit("\n".join(tampered))
    now = sources()
    for name in changed():
        copy = FROZEN / revision / name
        if name in now:
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(now[name])
        else:
            copy.unlink()
        print(f"{revision}/{name}")
    SUMS.write_text("".join(f"{digest}  {name}\n" for name, digest in digests().items()))


def digests() -> dict[str, str]:
    """The SHA-256 of each frozen file, by its path below frozen/."""
    return {
        file.relative_to(FROZEN).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(FROZEN.rglob("*.sql"))
    }


def problems() -> list[str]:
    """A line for each frozen file that is not what SHA256SUMS says."""
    lines = SUMS.read_text().splitlines() if SUMS.exists() else []
    written = {name: digest for digest, name in (line.split("  ", 1) for line in lines)}
    found = digests()
    return [
        f"{name}: {'is missing' if name not in found else 'is not what SHA256SUMS says'}"
        for name in sorted(written.keys() | found.keys())
        if written.get(name) != found.get(name)
    ]


def main(arguments: list[str]) -> None:
    match arguments:
        case ["--check"]:
            if found := problems():
                sys.exit("\n".join(found))
        case [revision]:
            freeze(revision)
        case _:
            sys.exit(f"make freeze REV={revisions()[-1]}")


if __name__ == "__main__":
    main(sys.argv[1:])
