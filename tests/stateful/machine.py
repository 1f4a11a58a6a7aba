"""The rules of a random life: every verb of the control plane, and the passing of time."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tenure.values import (
    Enqueued,
    Failure,
    JobLease,
    JobStatus,
    LapsedLease,
    NewJob,
    Outcome,
    Settled,
    Verdict,
)
from tests.stateful import strategies as some
from tests.stateful.side import UNKNOWN, Side
from tests.stateful.strategies import Twist
from tests.stateful.together import Together


@dataclass(frozen=True, slots=True)
class Shown:
    """What a worker shows for a job."""

    job: int
    worker_id: str
    token: int
    lease_expires_at: datetime

    def to(self, side: Side) -> tuple[int, str, int]:
        return side.id(self.job), self.worker_id, self.token


class Life(RuleBasedStateMachine):
    """Made anew for each random life, over sides that are empty."""

    def __init__(self, together: Together, stack: ExitStack, *, thorough: bool) -> None:
        super().__init__()
        self.stack = stack
        """Closed at the end."""
        self.thorough = thorough
        self.together = together
        self.ask = together.ask
        self.leases: list[Shown] = []
        """Every lease that was ever granted."""

    def job(self, pick: int) -> int:
        """Any job, or one that there never was; live ones are more telling."""
        live = [n for n, job in self.together.jobs.items() if job.finished_at is None]
        if live and pick % 3:
            return live[-1 - pick // 3 % len(live)]
        count = len(self.together.jobs)
        return count - 1 - pick // 3 if pick // 3 < count else UNKNOWN

    def running(self) -> list[Shown]:
        """The leases that are current."""
        return [
            Shown(n, job.worker_id, job.token, job.lease_expires_at)
            for n, job in self.together.jobs.items()
            if job.status is JobStatus.RUNNING and job.worker_id and job.lease_expires_at
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

    def granted(self, leases: list[JobLease]) -> None:
        self.leases += [Shown(x.job_id, x.worker_id, x.token, x.lease_expires_at) for x in leases]

    def new_jobs(self, side: Side, jobs: list[NewJob], *, one: bool) -> list[Enqueued]:
        if one:
            [job] = jobs
            options = {name: getattr(job, name) for name in NewJob.__dataclass_fields__}
            made = [side.plane.enqueue(**options)]
        else:
            made = side.plane.enqueue_many(jobs)
        for enqueued in made:
            side.enrol(enqueued.job_id)
        return made

    def enqueue_all(self, options: list[dict[str, Any]], queues: list[str], *, one: bool) -> None:
        jobs = [
            NewJob(queue=queue, kind="work", **given)
            for given, queue in zip(options, queues, strict=True)
        ]
        answers = self.ask(lambda side: self.new_jobs(side, jobs, one=one))
        if isinstance(answers, list):
            for answer, job in zip(answers, jobs, strict=True):
                if answer.created:
                    self.together.enrolled(answer.job_id, (job.retry_base, job.retry_cap))

    @initialize(options=st.lists(some.job_options, min_size=1, max_size=4), max_jobs=some.max_jobs)
    def some_jobs_run(self, options: list[dict[str, Any]], max_jobs: int) -> None:
        self.enqueue_all(options, ["a"] * len(options), one=False)
        self.claim(["a"], "ada", max_jobs=max_jobs)

    @rule(options=some.job_options, queue=some.queue, run_at=some.run_at)
    def enqueue(self, options: dict[str, Any], queue: str, run_at: timedelta | None) -> None:
        if run_at is not None:
            options = options | {"delay": None, "run_at": self.together.now + run_at}
        self.enqueue_all([options], [queue], one=True)

    @rule(options=st.lists(some.job_options, min_size=2, max_size=5), data=st.data())
    def enqueue_many(self, options: list[dict[str, Any]], data: st.DataObject) -> None:
        queues = data.draw(st.lists(some.queue, min_size=len(options), max_size=len(options)))
        self.enqueue_all(options, queues, one=False)

    @rule(queues=some.queues)
    def claim_the_next_eligible(self, queues: list[str]) -> None:
        def call(side: Side) -> Any:
            job_id = side.plane.next_eligible_job_id(queues)
            return None if job_id is None else side.plane.claim_job(job_id, "ada")

        if (lease := self.ask(call)) is not None:
            self.granted([lease])

    @rule(
        queues=some.queues,
        worker=some.worker,
        max_jobs=some.max_jobs,
        lease_for=some.lease_for,
        solo=st.sampled_from([True, True, False]),
    )
    def claim(self, queues: list[str], worker: str, **options: Any) -> None:
        self.granted(self.ask(lambda side: side.plane.claim(queues, worker, **options)))

    @rule(pick=some.pick, worker=some.worker, lease_for=some.lease_for)
    def claim_job(self, pick: int, worker: str, lease_for: timedelta) -> None:
        job = self.job(pick)
        lease = self.ask(lambda s: s.plane.claim_job(s.id(job), worker, lease_for=lease_for))
        if lease is not None:
            self.granted([lease])

    @rule(
        pick=some.pick,
        twist=some.twist,
        off=st.sampled_from([some.ZERO] * 6 + [some.MILLISECOND, -some.MICROSECOND]),
        worker=some.worker,
        lease_for=some.lease_for,
    )
    def reclaim(
        self, pick: int, twist: Twist, off: timedelta, worker: str, lease_for: timedelta
    ) -> None:
        shown = self.shown(pick, twist)
        known = self.together.jobs.get(shown.job)
        expires = (known and known.lease_expires_at) or shown.lease_expires_at

        def call(side: Side) -> Any:
            lapsed = LapsedLease(
                job_id=side.id(shown.job),
                worker_id=shown.worker_id,
                token=shown.token,
                lease_expires_at=expires + off,
            )
            return side.plane.reclaim(lapsed, worker, lease_for=lease_for)

        if (lease := self.ask(call)) is not None:
            self.granted([lease])

    @rule(queues=some.queues, limit=st.integers(1, 3))
    def read(self, queues: list[str], limit: int) -> None:
        def call(side: Side) -> Any:
            job_id = side.plane.next_eligible_job_id(queues)
            number = None if job_id is None else side.number(job_id)
            return [number, *side.plane.lapsed(limit)]

        self.ask(call)

    @rule(picks=some.picks, lease_for=some.lease_for)
    def renew(self, picks: list[tuple[int, Twist]], lease_for: timedelta) -> None:
        worker_id, shown = self.all_shown(picks)

        def call(side: Side) -> Any:
            leases = [(side.id(s.job), s.token) for s in shown]
            return side.plane.renew(worker_id, leases, lease_for=lease_for)

        self.ask(call, in_order=False)

    @rule(pick=some.pick, twist=some.twist, progress=some.json,
          lease_for=st.none() | some.lease_for, require=st.booleans())  # fmt: skip
    def update_owned(
        self, pick: int, twist: Twist, progress: Any, lease_for: timedelta | None, require: bool
    ) -> None:
        shown = self.shown(pick, twist)
        self.ask(
            lambda side: side.plane.update_owned(
                *shown.to(side),
                progress=progress,
                lease_for=lease_for,
                require_cancel_not_requested=require,
            )
        )

    @rule(pick=some.pick, twist=some.twist, result=some.json)
    def seal(self, pick: int, twist: Twist, result: Any) -> None:
        shown = self.shown(pick, twist)
        self.ask(lambda side: side.plane.seal(*shown.to(side), result))

    @rule(pick=some.pick, twist=some.twist, result=some.json)
    def complete(self, pick: int, twist: Twist, result: Any) -> None:
        shown = self.shown(pick, twist)
        self.ask(lambda side: side.plane.complete(*shown.to(side), result))

    @rule(pick=some.pick, twist=some.twist, failure=some.failures, delay=some.delay)
    def fail(self, pick: int, twist: Twist, failure: Failure, delay: timedelta | None) -> None:
        shown = self.shown(pick, twist)
        self.ask(
            lambda side: side.plane.fail(*shown.to(side), failure, delay=delay),
            backs_off=True,
        )

    @rule(pick=some.pick, twist=some.twist, started=st.booleans(), delay=some.delay)
    def release(self, pick: int, twist: Twist, started: bool, delay: timedelta | None) -> None:
        shown = self.shown(pick, twist)
        wait = some.ZERO if delay is None else delay
        self.ask(lambda side: side.plane.release(*shown.to(side), started=started, delay=wait))

    @rule(pick=some.pick, twist=some.twist)
    def acknowledge_cancel(self, pick: int, twist: Twist) -> None:
        shown = self.shown(pick, twist)
        self.ask(lambda side: side.plane.acknowledge_cancel(*shown.to(side)))

    @rule(data=st.data(), picks=some.picks)
    def settle(self, data: st.DataObject, picks: list[tuple[int, Twist]]) -> None:
        worker_id, shown = self.all_shown(picks)
        outcomes = [
            (s, data.draw(some.outcome_options)) for s in {s.job: s for s in shown}.values()
        ]

        def call(side: Side) -> list[Settled]:
            return side.plane.settle(
                worker_id,
                [Outcome(job_id=side.id(s.job), token=s.token, **given) for s, given in outcomes],
            )

        self.ask(call, in_order=False, backs_off=True)

    @rule(pick=some.pick, twist=some.twist, require=st.booleans(),
          then=st.sampled_from(["commit", "complete", "progress", "roll back"]))  # fmt: skip
    def guard(self, pick: int, twist: Twist, require: bool, then: str) -> None:
        """An application's transaction, which writes a row of its own."""
        shown = self.shown(pick, twist)

        def call(side: Side) -> Any:
            with side.backend.transaction() as caller:
                plane = caller.control_plane
                plane.guard(*shown.to(side), require_cancel_not_requested=require)
                caller.write(f"{shown.job} {shown.token} {then}")
                answer = None
                if then == "complete":
                    answer = plane.complete(*shown.to(side), "guarded")
                elif then == "progress":
                    answer = plane.update_owned(*shown.to(side), progress="guarded")
                if then == "roll back" or (answer and answer.verdict is not Verdict.OK):
                    raise RolledBack
                return answer

        self.ask(lambda side: _unless_rolled_back(call, side))

    @rule(worker=some.worker, limit=st.sampled_from([100, 1, 2]))
    def sweep(self, worker: str, limit: int) -> None:
        self.ask(lambda side: side.plane.sweep(worker, limit), backs_off=True)

    @rule(pick=some.pick)
    def cancel(self, pick: int) -> None:
        job = self.job(pick)
        self.ask(lambda side: side.plane.cancel(side.id(job)))
        self.ask(lambda side: side.plane.cancel_requested(side.id(job)))

    @rule(pick=some.pick, attempts=st.integers(1, 2))
    def retry(self, pick: int, attempts: int) -> None:
        job = self.job(pick)
        self.ask(lambda side: side.plane.retry(side.id(job), attempts))

    @rule(queue=some.queue, verb=st.sampled_from(["resume", "resume", "pause"]))
    def pause_or_resume(self, queue: str, verb: str) -> None:
        self.ask(lambda side: getattr(side.plane, verb)(queue))

    @rule(passing=some.passing)
    def time_passes(self, passing: timedelta) -> None:
        self.together.advance(passing)

    @rule(pick=some.pick, step=some.step)
    def time_passes_until_something_changes(self, pick: int, step: timedelta) -> None:
        """Up to the end of a lease, or to a due time, or to right beside it."""
        ahead = sorted(
            moment + step
            for job in self.together.jobs.values()
            for moment in (job.lease_expires_at, job.next_attempt_at)
            if moment is not None and moment + step > self.together.now
        )
        if ahead:
            self.together.advance(ahead[pick % len(ahead)] - self.together.now)

    @rule(pick=some.pick)
    def a_job_was_given_back_many_times(self, pick: int) -> None:
        """Its token is written over with the last one before the bound."""
        known = self.together.jobs.get(self.job(pick))
        if known is not None and known.status is JobStatus.QUEUED:
            token = 10 * known.max_attempts + 99
            if known.token < token:
                for side in self.together.sides:
                    side.set_token(known.job_id, token)

    @invariant()
    def all_sides_show_the_same(self) -> None:
        if self.thorough:
            self.together.look_at_everything()

    def teardown(self) -> None:
        with self.stack:
            if not self.together.differs:
                self.together.look_at_everything()


class RolledBack(Exception):
    """Ends a transaction of the application."""


def _unless_rolled_back(call: Any, side: Side) -> Any:
    try:
        return call(side)
    except RolledBack:
        return "rolled back"
