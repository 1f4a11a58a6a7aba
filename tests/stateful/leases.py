"""The rules by which jobs come into being, are lent, and stay lent."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from tenure.values import Enqueued, LapsedLease, NewJob
from tests.stateful import strategies as some
from tests.stateful.picking import Picking, something_has_lapsed, something_runs, something_waits
from tests.stateful.side import Side
from tests.stateful.strategies import Twist


class Leases(Picking):
    """Producers' verbs, and the workers' up to the end of a lease."""

    def new_jobs(self, side: Side, jobs: list[NewJob], *, one: bool) -> list[Enqueued]:
        if one:
            [job] = jobs
            options = job._asdict()
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

    @something_waits
    @rule(queues=some.queues)
    def claim_the_next_eligible(self, queues: list[str]) -> None:
        def call(side: Side) -> Any:
            job_id = side.plane.next_eligible_job_id(queues)
            return None if job_id is None else side.plane.claim_job(job_id, "ada")

        if (lease := self.ask(call)) is not None:
            self.granted([lease])

    @something_waits
    @rule(
        queues=some.queues,
        worker=some.worker,
        max_jobs=some.max_jobs,
        lease_for=some.lease_for,
        solo=st.sampled_from([True, True, False]),
    )
    def claim(self, queues: list[str], worker: str, **options: Any) -> None:
        self.granted(self.ask(lambda side: side.plane.claim(queues, worker, **options)))

    @something_waits
    @rule(pick=some.pick, worker=some.worker, lease_for=some.lease_for)
    def claim_job(self, pick: int, worker: str, lease_for: timedelta) -> None:
        job = self.job(pick)
        lease = self.ask(lambda s: s.plane.claim_job(s.id(job), worker, lease_for=lease_for))
        if lease is not None:
            self.granted([lease])

    @something_has_lapsed
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

    @something_runs
    @rule(picks=some.picks, lease_for=some.lease_for)
    def renew(self, picks: list[tuple[int, Twist]], lease_for: timedelta) -> None:
        worker_id, shown = self.all_shown(picks)

        def call(side: Side) -> Any:
            leases = [(side.id(s.job), s.token) for s in shown]
            return side.plane.renew(worker_id, leases, lease_for=lease_for)

        self.ask(call, in_order=False)

    @something_runs
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
