"""Looks for a test that notices, mutant by mutant."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass, field

from tests.mutants.killers import Killers
from tests.mutants.mutant import Kind, Mutant
from tests.mutants.pool import Pool
from tests.mutants.postgres_source import callers
from tests.mutants.trial import Finding, Trial

TESTS = {
    Kind.POSTGRES: ("tests/contract", "tests/postgres"),
    Kind.SQLITE: ("tests/contract", "tests/sqlite"),
}

SLOW = frozenset(
    f"tests/postgres/test_{name}.py"
    for name in ("extremes", "idle_runner", "plans", "pooler", "stress")
)
"""Left out, unless they are asked for or known to notice: minutes for each mutant."""

QUICK = 120.0
THOROUGH = 900.0
"""Seconds after which a trial with a few tests, or with all of them, is given up."""


@dataclass(frozen=True, slots=True)
class Result:
    mutant: Mutant
    killed_by: str | None
    seconds: float
    trouble: str = ""


@dataclass
class Hunt:
    pool: Pool
    killers: Killers
    say: Callable[[str], None]
    tests: tuple[str, ...] = ()
    """Where to look; empty: everywhere."""
    slow: bool = False
    """Whether slow tests are tried as well."""
    broken: set[str] = field(default_factory=set)
    """Tests that fail although nothing is changed; no kill of theirs counts."""
    seconds: dict[str, float] = field(default_factory=dict)
    """What each test that passes costs."""

    def results(self, mutants: Iterable[Mutant]) -> Iterator[Result]:
        """First with the test that noticed the last time, then with all."""
        mutants = list(mutants)
        self._try_unchanged({m: (t,) for m in mutants if (t := self._remembered(m))})
        left = [m for m in mutants if self._remembered(m) not in self.seconds]
        known = [m for m in mutants if self._remembered(m) in self.seconds]
        for mutant, found in self.pool.findings(map(self._quick, known), longest=QUICK):
            if found.failed:
                yield self._killed(mutant, found)
            else:
                left.append(mutant)
        while left:
            self._try_unchanged({m: self._where(m) for m in left})
            suspected = []
            for mutant, found in self.pool.findings(map(self._thorough, left), longest=THOROUGH):
                if not found.failed:
                    yield Result(mutant, None, found.seconds, found.trouble)
                elif mutant.tests:
                    yield self._told(mutant, found)
                else:
                    self.killers.note(mutant, found.failed[0])
                    suspected.append(mutant)
                    self.say(
                        f"  {found.seconds:.0f} s  {mutant.key}  noticed by {found.failed[0]},"
                        " to be confirmed"
                    )
            left = []
            for mutant, found in self.pool.findings(map(self._quick, suspected), longest=QUICK):
                if found.failed:
                    yield self._killed(mutant, found)
                else:
                    left.append(mutant)
                    test = self.killers.forget(mutant)
                    self.broken.add(test)
                    self.say(f"  fails now and then, and does not count: {test}")

    def unkilled(self, equivalents: Iterable[Mutant], *, all_tests: bool) -> Iterator[Result]:
        """With the tests that noticed their neighbours, or with all: none may notice these."""
        chosen = {
            m: TESTS[m.kind] if all_tests else tuple(self.killers.near(m)) for m in equivalents
        }
        self._try_unchanged(chosen)
        trials = ((m, self._trial(m, tests)) for m, tests in chosen.items() if tests)
        for mutant, found in self.pool.findings(trials, longest=THOROUGH):
            yield Result(mutant, next(iter(found.failed), None), found.seconds, found.trouble)

    def _try_unchanged(self, chosen: dict[Mutant, tuple[str, ...]]) -> None:
        """Run the tests over tenure as it is, those of each backend by themselves."""
        wanted: dict[Kind, list[str]] = {}
        for mutant, tests in chosen.items():
            new = [t for t in tests if t not in self.seconds and t not in self.broken]
            wanted.setdefault(mutant.kind, []).extend(new)
        trials = [
            (
                kind,
                Trial(
                    mutant=None,
                    kind=kind,
                    tests=list(dict.fromkeys(tests)),
                    leave_out=self._left_out(tests),
                ),
            )
            for kind, tests in wanted.items()
            if tests
        ]
        for kind, found in self.pool.findings(trials, longest=THOROUGH):
            self.seconds.update(found.passed)
            self.broken.update(found.failed)
            self.say(f"unchanged, {kind}: {len(found.passed)} tests pass in {found.seconds:.0f} s")
            for test in found.failed:
                self.say(f"  fails without any change, and does not count: {test}")
            if found.trouble:
                self.say(f"  {found.trouble}")

    def _remembered(self, mutant: Mutant) -> str | None:
        return None if mutant.tests else self.killers[mutant]

    def _quick(self, mutant: Mutant) -> tuple[Mutant, Trial]:
        return mutant, self._trial(mutant, (self.killers[mutant] or "",))

    def _thorough(self, mutant: Mutant) -> tuple[Mutant, Trial]:
        return mutant, self._trial(mutant, self._where(mutant))

    def _where(self, mutant: Mutant) -> tuple[str, ...]:
        return mutant.tests or self.tests or TESTS[mutant.kind]

    def _trial(self, mutant: Mutant, tests: tuple[str, ...]) -> Trial:
        return Trial(
            mutant=mutant,
            kind=mutant.kind,
            tests=tests,
            first=self.killers.likely(mutant),
            words=frozenset(mutant.place.lower().replace(".", "_").split("_"))
            if mutant.kind is Kind.SQLITE
            else callers(mutant.place),
            leave_out=self._left_out(tests),
            seconds=self.seconds,
        )

    def _left_out(self, tests: Iterable[str]) -> Set[str]:
        files = {test.partition("::")[0] for test in tests}
        return self.broken | (set() if self.slow else SLOW - files)

    def _killed(self, mutant: Mutant, found: Finding) -> Result:
        self.killers.note(mutant, found.failed[0])
        return Result(mutant, found.failed[0], found.seconds)

    def _told(self, mutant: Mutant, found: Finding) -> Result:
        """Of a variant: each of its tests must notice."""
        blind = [t for t in mutant.tests if not any(_is_case(f, t) for f in found.failed)]
        trouble = "; ".join(f"{test} does not notice" for test in blind)
        return Result(mutant, None if blind else mutant.tests[0], found.seconds, trouble)


def _is_case(node_id: str, test: str) -> bool:
    return node_id == test or node_id.startswith(f"{test}[")
