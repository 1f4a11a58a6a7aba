"""How fast empty jobs are worked off, and what that costs: python -m tests.bench.drain [JOBS]."""

from __future__ import annotations

import resource
import sys
import time
from dataclasses import dataclass

from tenure import Job, Tenure
from tests.bench.counted import Counter, counted
from tests.runner.waiting import eventually

CHUNK = 10_000


@dataclass(frozen=True, slots=True)
class Drained:
    jobs: int
    seconds: float
    cpu: float
    statements: float
    commits: float

    def __str__(self) -> str:
        return (
            f"{self.jobs} jobs in {self.seconds:.2f} s: {self.jobs / self.seconds:,.0f} jobs/s,"
            f" {self.cpu / self.jobs * 1e6:.1f} us of Python, {self.statements:.4f} statements"
            f" and {self.commits:.4f} commits a job"
        )


def drain(dsn: str, counter: Counter, jobs: int, *, slots: int) -> Drained:
    """Enqueue so many jobs, and work them off with one runner."""
    with Tenure(dsn) as app:
        app.install()

        @app.task
        def nothing(job: Job) -> None: ...

        for first in range(0, jobs, CHUNK):
            app.enqueue_many([app.new_job(nothing)] * min(CHUNK, jobs - first))
        runner = app.worker(slots=slots)
        app.close()
        eventually(counter.nobody, "the producer's sessions had ended")
        counter.zero()
        cpu, began = _cpu(), time.perf_counter()
        runner.run_until_idle()
        seconds, cpu = time.perf_counter() - began, _cpu() - cpu
        app.close()
        eventually(counter.nobody, "the runner's sessions had ended")
    counts = counter.counts()
    return Drained(jobs, seconds, cpu, counts.total / jobs, counts.commits / jobs)


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> None:
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    with counted() as (dsn, counter):
        for slots in (1, 10):
            print(f"slots={slots}: {drain(dsn, counter, jobs, slots=slots)}")


if __name__ == "__main__":
    main()
