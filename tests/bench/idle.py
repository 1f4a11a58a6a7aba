"""What a runner costs that has nothing to do: python -m tests.bench.idle [SECONDS]."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from unittest import mock

from tenure import Tenure, WorkerRunner
from tenure.backing_postgres import PostgresBacking
from tenure.housekeeping import SWEEP_EVERY, Housekeeping
from tenure.limits import POLL_FLOOR
from tenure.listener import PROVE_EVERY, Listener
from tenure.postgres_store import PostgresStore
from tests.bench.counted import Counter, Counts, counted
from tests.runner.waiting import eventually


class QuickBacking(PostgresBacking):
    """A backing whose listeners prove themselves more often."""

    def __init__(self, store: PostgresStore, *, times: float) -> None:
        super().__init__(store)
        self._times = times

    def _listen(self, heard: Callable[[str], None], changed: Callable[[], None]) -> Listener:
        store = self._store
        return Listener(
            store.connect,
            schema=store.schema,
            heard=heard,
            changed=changed,
            prove_every=PROVE_EVERY / self._times,
        )


@dataclass(frozen=True, slots=True)
class Idled:
    """What was sent and used in one minute, as far as time ran as it does."""

    statements: float
    of_a_kind: dict[str, float]
    core: float


def idle(dsn: str, counter: Counter, *, seconds: float, times: float = 1) -> Idled:
    """Watch an idle runner for so long, with all its periods so many times shorter."""
    with Tenure(dsn) as app:
        app.install()
        assert isinstance(app.store, PostgresStore)
        with mock.patch("tenure.runner.Housekeeping", _quick_housekeeping(times)):
            runner = WorkerRunner(
                QuickBacking(app.store, times=times),
                {},
                queues=["default", "mail"],
                poll_floor=POLL_FLOOR / times,
                sweep_every=SWEEP_EVERY / times,
            )
        runner.start()
        try:
            eventually(counter.sleeps, "the runner slept")
            counter.zero()
            used = time.process_time()
            time.sleep(seconds)
            used = time.process_time() - used
            counts = counter.counts()
        finally:
            runner.stop()
    minutes = seconds * times / 60
    return Idled(
        counts.total / minutes,
        {kind: calls / minutes for kind, calls in _kinds(counts).items()},
        used / seconds,
    )


def _quick_housekeeping(times: float) -> Callable[..., Housekeeping]:
    def housekeeping(*chores: object, **options: object) -> Housekeeping:
        return Housekeeping(*chores, seen_every=60 / times, **options)  # type: ignore[arg-type]

    return housekeeping


def _kinds(counts: Counts) -> dict[str, int]:
    known = {"claim(": "polls", "sweep(": "sweeps", "pg_listening_channels": "proofs"}
    kinds: dict[str, int] = {}
    for statement, calls in counts.statements.items():
        kind = next((name for word, name in known.items() if word in statement), "the rest")
        kinds[kind] = kinds.get(kind, 0) + calls
    return kinds


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60
    with counted() as (dsn, counter):
        print(idle(dsn, counter, seconds=seconds))


if __name__ == "__main__":
    main()
