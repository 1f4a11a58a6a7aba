"""The rules by which leases end, and by which an application writes under one."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

from tenure.values import Failure, Outcome, Settled, Verdict
from tests.stateful import strategies as some
from tests.stateful.picking import Picking, something_has_lapsed, something_runs
from tests.stateful.side import Side
from tests.stateful.strategies import Twist


class Endings(Picking):
    """The workers' verbs that end a lease, the sweep, the guard."""

    @something_runs
    @rule(pick=some.pick, twist=some.twist, result=some.json)
    def seal(self, pick: int, twist: Twist, result: Any) -> None:
        shown = self.shown(pick, twist)
        self.ask(lambda side: side.plane.seal(*shown.to(side), result))

    @something_runs
    @rule(pick=some.pick, twist=some.twist, result=some.json)
    def complete(self, pick: int, twist: Twist, result: Any) -> None:
        shown = self.shown(pick, twist)
        self.ask(lambda side: side.plane.complete(*shown.to(side), result))

    @something_runs
    @rule(pick=some.pick, twist=some.twist, failure=some.failures, delay=some.delay)
    def fail(self, pick: int, twist: Twist, failure: Failure, delay: timedelta | None) -> None:
        shown = self.shown(pick, twist)
        self.ask(
            lambda side: side.plane.fail(*shown.to(side), failure, delay=delay),
            backs_off=True,
        )

    @something_runs
    @rule(pick=some.pick, twist=some.twist, started=st.booleans(), delay=some.delay)
    def release(self, pick: int, twist: Twist, started: bool, delay: timedelta | None) -> None:
        shown = self.shown(pick, twist)
        wait = some.ZERO if delay is None else delay
        self.ask(lambda side: side.plane.release(*shown.to(side), started=started, delay=wait))

    @something_runs
    @rule(pick=some.pick, twist=some.twist)
    def acknowledge_cancel(self, pick: int, twist: Twist) -> None:
        shown = self.shown(pick, twist)
        self.ask(lambda side: side.plane.acknowledge_cancel(*shown.to(side)))

    @something_runs
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

    @something_runs
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

    @something_has_lapsed
    @rule(worker=some.worker, limit=st.sampled_from([100, 1, 2]))
    def sweep(self, worker: str, limit: int) -> None:
        self.ask(lambda side: side.plane.sweep(worker, limit), backs_off=True)


class RolledBack(Exception):
    """Ends a transaction of the application."""


def _unless_rolled_back(call: Any, side: Side) -> Any:
    try:
        return call(side)
    except RolledBack:
        return "rolled back"
