"""Every statement that the Python client can send, written down without sending it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest

from tenure.postgres import PostgresControlPlane
from tenure.postgres_call import Functions, Row
from tenure.postgres_records import PostgresRecords
from tenure.postgres_signals import PostgresSignals
from tenure.values import Failure, LapsedLease, NewJob, Outcome, Verb

NOW = datetime(2100, 1, 4, tzinfo=UTC)
OWNER = (1, "ada", 1)
OUTCOME = Outcome(job_id=1, token=1, verb=Verb.COMPLETE)
LAPSED = LapsedLease(job_id=1, worker_id="ada", token=1, lease_expires_at=NOW)


@dataclass(frozen=True, slots=True)
class Client:
    """All that the client can be asked for, on one connection."""

    plane: PostgresControlPlane
    records: PostgresRecords
    signals: PostgresSignals


CALLS: dict[str, Callable[[Client], object]] = {
    "plane.enqueue": lambda c: c.plane.enqueue("q", "work"),
    "plane.enqueue_many": lambda c: c.plane.enqueue_many([NewJob(queue="q", kind="work")]),
    "plane.next_eligible_job_id": lambda c: c.plane.next_eligible_job_id(["q"]),
    "plane.claim_job": lambda c: c.plane.claim_job(1, "ada"),
    "plane.claim": lambda c: c.plane.claim(["q"], "ada"),
    "plane.lapsed": lambda c: c.plane.lapsed(),
    "plane.reclaim": lambda c: c.plane.reclaim(LAPSED, "bob"),
    "plane.renew": lambda c: c.plane.renew("ada", [(1, 1)]),
    "plane.cancel_requested": lambda c: c.plane.cancel_requested(1),
    "plane.update_owned": lambda c: c.plane.update_owned(*OWNER),
    "plane.guard": lambda c: c.plane.guard(*OWNER),
    "plane.held": lambda c: c.plane.held("ada"),
    "plane.seal": lambda c: c.plane.seal(*OWNER),
    "plane.complete": lambda c: c.plane.complete(*OWNER),
    "plane.fail": lambda c: c.plane.fail(*OWNER, Failure(error_type="Broken")),
    "plane.release": lambda c: c.plane.release(*OWNER, started=True),
    "plane.acknowledge_cancel": lambda c: c.plane.acknowledge_cancel(*OWNER),
    "plane.settle": lambda c: c.plane.settle("ada", [OUTCOME]),
    "plane.sweep": lambda c: c.plane.sweep("ada"),
    "plane.cancel": lambda c: c.plane.cancel(1),
    "plane.retry": lambda c: c.plane.retry(1),
    "plane.pause": lambda c: c.plane.pause("q"),
    "plane.resume": lambda c: c.plane.resume("q"),
    "records.job": lambda c: c.records.job(1),
    "records.results": lambda c: c.records.results([1]),
    "records.jobs": lambda c: c.records.jobs(queue="q", status="queued"),
    "records.attempts": lambda c: c.records.attempts(1),
    "records.queues": lambda c: c.records.queues(),
    "signals.schema_version": lambda c: c.signals.schema_version(),
    "signals.channel": lambda c: c.signals.channel(),
    "signals.queue_key": lambda c: c.signals.queue_key("q"),
    "signals.listen": lambda c: c.signals.listen(),
    "signals.sleep_begin": lambda c: c.signals.sleep_begin(["q"]),
    "signals.wait_begin": lambda c: c.signals.wait_begin([1]),
    "signals.sleep_settled": lambda c: c.signals.sleep_settled(1),
    "signals.sleep_end": lambda c: c.signals.sleep_end(),
    "signals.next_due": lambda c: c.signals.next_due(["q"]),
    "signals.wake": lambda c: c.signals.wake(["q"]),
    "signals.worker_seen": lambda c: c.signals.worker_seen("ada", ["q"]),
    "signals.maintain": lambda c: c.signals.maintain(),
}
"""By the method that makes the call."""


class _Noted(Exception):
    pass


def methods() -> set[str]:
    """The public methods of the client's three parts."""
    parts = {"plane": PostgresControlPlane, "records": PostgresRecords, "signals": PostgresSignals}
    return {
        f"{part}.{name}"
        for part, its_class in parts.items()
        for name in dir(its_class)
        if not name.startswith("_") and callable(getattr(its_class, name))
    }


def statements(connection: psycopg.Connection[Any]) -> list[str]:
    """What each of `CALLS` would have sent, with $1 for the first argument."""
    sent: set[str] = set()

    def note(self: Functions, query: str, arguments: Sequence[object] = ()) -> list[Row]:
        numbers = iter(range(1, len(arguments) + 1))
        parts = query.replace(self.prefix, "tenure.").split("%s")
        text = parts[0] + "".join(f"${next(numbers)}{part}" for part in parts[1:])
        sent.add(" ".join(text.replace("%%", "%").split()))
        raise _Noted

    client = Client(
        PostgresControlPlane(connection), PostgresRecords(connection), PostgresSignals(connection)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Functions, "query", note)
        patch.setattr(Functions, "alone", lambda self, verb: None)
        patch.setattr(Functions, "together", lambda self, verb: None)
        for call in CALLS.values():
            with pytest.raises(_Noted):
                call(client)
    return sorted(sent)
