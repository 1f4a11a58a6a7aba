"""A random life: every verb of the control plane, and the passing of time."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import strategies as st
from hypothesis.stateful import rule

from tenure.values import JobStatus
from tests.stateful import strategies as some
from tests.stateful.endings import Endings
from tests.stateful.leases import Leases
from tests.stateful.picking import (
    something_has_ended,
    something_lives,
    something_runs,
    something_waits,
)
from tests.stateful.strategies import Twist


class Life(Leases, Endings):
    """All rules; those here are the operators' and the clock's."""

    @something_lives
    @rule(pick=some.pick, any_job=st.sampled_from([False, False, False, True]))
    def cancel(self, pick: int, any_job: bool) -> None:
        job = self.job(pick) if any_job else self.shown(pick, Twist.NONE).job
        self.ask(lambda side: side.plane.cancel(side.id(job)))
        self.ask(lambda side: side.plane.cancel_requested(side.id(job)))

    @something_has_ended
    @rule(pick=some.pick, attempts=st.integers(1, 2))
    def retry(self, pick: int, attempts: int) -> None:
        job = self.job(pick, ended=True)
        self.ask(lambda side: side.plane.retry(side.id(job), attempts))

    @something_waits
    @rule(queue=some.queue, verb=st.sampled_from(["resume", "resume", "pause"]))
    def pause_or_resume(self, queue: str, verb: str) -> None:
        self.ask(lambda side: getattr(side.plane, verb)(queue))

    @rule(passing=some.passing)
    def time_passes(self, passing: timedelta) -> None:
        self.together.advance(passing)

    @something_waits
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

    @something_runs
    @rule(pick=some.pick, step=some.step, worker=some.worker, lease_for=some.lease_for)
    def a_lease_lapses_and_is_reclaimed(
        self, pick: int, step: timedelta, worker: str, lease_for: timedelta
    ) -> None:
        self.lapse(pick, step)
        self.reclaim(pick, Twist.NONE, some.ZERO, worker, lease_for)

    @something_runs
    @rule(pick=some.pick, step=some.step, worker=some.worker)
    def a_lease_lapses_and_is_swept(self, pick: int, step: timedelta, worker: str) -> None:
        self.lapse(pick, step)
        self.sweep(worker, 100)

    @rule(pick=some.pick)
    def a_job_was_given_back_many_times(self, pick: int) -> None:
        """Its token is written over with the last one before the bound."""
        known = self.together.jobs.get(self.job(pick))
        if known is not None and known.status is JobStatus.QUEUED:
            token = 10 * known.max_attempts + 99
            if known.token < token:
                for side in self.together.sides:
                    side.set_token(known.job_id, token)
