"""A random life without rules: what its rules choose from."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition

from tenure.values import JobLease, JobStatus
from tests.stateful import strategies as some
from tests.stateful.side import UNKNOWN, Side
from tests.stateful.strategies import Twist
from tests.stateful.together import Together

ENDS = (JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED)


@dataclass(frozen=True, slots=True)
class Shown:
    """What a worker shows for a job."""

    job: int
    worker_id: str
    token: int
    lease_expires_at: datetime

    def to(self, side: Side) -> tuple[int, str, int]:
        return side.id(self.job), self.worker_id, self.token


something_runs = precondition(lambda life: bool(life.running()))
something_waits = precondition(lambda life: life.has(JobStatus.QUEUED))
something_lives = precondition(lambda life: life.has(JobStatus.QUEUED, JobStatus.RUNNING))
something_has_ended = precondition(lambda life: life.has(*ENDS))
something_has_lapsed = precondition(
    lambda life: any(s.lease_expires_at <= life.together.now for s in life.running())
)


class Picking(RuleBasedStateMachine):
    """Made anew for each life, over sides that are empty."""

    def __init__(self, together: Together, stack: ExitStack, *, thorough: bool) -> None:
        super().__init__()
        self.stack = stack
        """Closed at the end."""
        self.thorough = thorough
        self.together = together
        self.ask = together.ask
        self.leases: list[Shown] = []
        """Every lease that was ever granted."""

    def job(self, pick: int, *, ended: bool = False) -> int:
        """A live job, or one that has ended; then any other; then one that there never was."""
        jobs = self.together.jobs
        latest = sorted(jobs, key=lambda n: ((jobs[n].finished_at is not None) != ended, -n))
        return [*latest, UNKNOWN][pick % (len(jobs) + 1)]

    def has(self, *statuses: JobStatus) -> bool:
        return any(job.status in statuses for job in self.together.jobs.values())

    def running(self) -> list[Shown]:
        """The leases that are current, the latest last."""
        running = [job for job in self.together.jobs.values() if job.status is JobStatus.RUNNING]
        return [
            Shown(job.job_id, job.worker_id, job.token, job.lease_expires_at)
            for job in sorted(running, key=lambda job: job.claimed_at or job.created_at)
            if job.worker_id and job.lease_expires_at
        ]

    def shown(self, pick: int, twist: Twist, worker_id: str | None = None) -> Shown:
        """What a worker shows, if possible the one that is named."""
        running = [s for s in self.running() if worker_id in (None, s.worker_id)]
        leases = self.leases if twist is Twist.PAST or not running else running
        if not leases:
            return Shown(self.job(pick), worker_id or "ada", 1, self.together.now)
        lease = leases[-1 - pick % len(leases)]
        match twist:
            case Twist.OTHER_WORKER:
                other = next(w for w in some.WORKERS if w != lease.worker_id)
                return replace(lease, worker_id=other)
            case Twist.TOKEN_AFTER:
                return replace(lease, token=lease.token + 1)
            case Twist.TOKEN_BEFORE:
                return replace(lease, token=lease.token - 1)
            case Twist.OTHER_JOB:
                return replace(lease, job=self.job(pick))
            case Twist.UNKNOWN_JOB:
                return replace(lease, job=UNKNOWN)
        return lease

    def all_shown(self, picks: list[tuple[int, Twist]]) -> tuple[str, list[Shown]]:
        """What one worker shows at once."""
        worker_id = self.shown(*picks[0]).worker_id
        return worker_id, [self.shown(*pick, worker_id) for pick in picks]

    def lapse(self, pick: int, step: timedelta) -> None:
        """Let time pass to the end of a current lease, or to right beside it."""
        if running := self.running():
            end = running[-1 - pick % len(running)].lease_expires_at + step
            self.together.advance(max(end - self.together.now, some.ZERO))

    def granted(self, leases: list[JobLease]) -> None:
        self.leases += [Shown(x.job_id, x.worker_id, x.token, x.lease_expires_at) for x in leases]

    @invariant()
    def all_sides_show_the_same(self) -> None:
        if self.thorough:
            self.together.look_at_everything()

    def teardown(self) -> None:
        with self.stack:
            if not self.together.differs:
                self.together.look_at_everything()
