"""Which test noticed which mutant the last time, so that it is tried first the next time."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tests.mutants.mutant import Mutant

FILE = Path(__file__).with_name("killers.json")


class Killers:
    """Node ids of tests by key of mutant, kept in a file that is committed."""

    def __init__(self, file: Path = FILE) -> None:
        self._file = file
        self._tests = _read(file)
        self._changed: set[str] = set()

    def __getitem__(self, mutant: Mutant) -> str | None:
        return self._tests.get(mutant.key)

    def note(self, mutant: Mutant, test: str) -> None:
        self._tests[mutant.key] = test
        self._changed.add(mutant.key)

    def forget(self, mutant: Mutant) -> str:
        return self._tests.pop(mutant.key)

    def likely(self, mutant: Mutant) -> list[str]:
        """Tests that noticed other mutants: those of the same place, then the busiest few."""
        start = f"{mutant.kind} {mutant.place}: "
        near = Counter(test for key, test in self._tests.items() if key.startswith(start))
        far = Counter(
            test for key, test in self._tests.items() if key.startswith(f"{mutant.kind} ")
        )
        order = [test for test, _ in near.most_common()] + [test for test, _ in far.most_common(15)]
        return list(dict.fromkeys(order))

    def near(self, mutant: Mutant) -> list[str]:
        """Tests that noticed a mutant of the same place."""
        start = f"{mutant.kind} {mutant.place}: "
        return sorted({test for key, test in self._tests.items() if key.startswith(start)})

    def save(self, known: Iterable[Mutant]) -> None:
        """Add what is new to the file, and leave out mutants that there are no more."""
        now = {key: self._tests[key] for key in self._changed & self._tests.keys()}
        latest = {**_read(self._file), **now}
        by_test: dict[str, list[str]] = {}
        for key in sorted(latest.keys() & {mutant.key for mutant in known}):
            by_test.setdefault(latest[key], []).append(key)
        text = json.dumps(by_test, indent=1, ensure_ascii=False, sort_keys=True)
        self._file.write_text(f"{text}\n", "utf-8")


def _read(file: Path) -> dict[str, str]:
    if not file.exists():
        return {}
    by_test: dict[str, list[str]] = json.loads(file.read_text("utf-8"))
    return {key: test for test, keys in by_test.items() for key in keys}
