"""Runs random lives, each on sides of its own that begin empty."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.contract.backends import Pool
from tests.stateful import side
from tests.stateful.machine import Life
from tests.stateful.strategies import WORKERS
from tests.stateful.together import Together


@dataclass
class Lives:
    """Lives over one PostgreSQL database, and over a new SQLite file each."""

    pool: Pool
    folder: Path
    thorough: bool = False
    """Compare everything after each step, not only at the end of a life."""
    count: int = 0

    def run(self, *, examples: int, steps: int, random_seed: int | None = None) -> None:
        """Without a seed they are always the same ones. Raises on the first disagreement."""
        begin = partial(self._begin)
        if random_seed is not None:
            begin = seed(random_seed)(begin)
        run_state_machine_as_test(
            begin,  # type: ignore[arg-type] # any callable will do
            settings=settings(
                max_examples=examples,
                stateful_step_count=steps,
                derandomize=random_seed is None,
                database=None,
                deadline=None,
                suppress_health_check=list(HealthCheck),
                print_blob=False,
                phases=[Phase.generate, Phase.shrink],
                report_multiple_bugs=False,
            ),
        )

    def _begin(self) -> Life:
        self.count += 1
        stack = ExitStack()
        folder = stack.enter_context(TemporaryDirectory(dir=self.folder))
        sides = [
            side.postgres(self.pool, stack),
            side.sqlite(Path(folder) / "jobs", stack),
            side.ModelSide(),
        ]
        return Life(Together(sides, WORKERS), stack, thorough=self.thorough)
