"""What every control plane looks like from outside."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest

from tenure.control_plane import ControlPlane
from tenure.records import Records
from tests.contract.backends import Backend, Clock
from tests.contract.scenario import BROKEN, Scene

METHODS = sorted(
    name
    for name, value in vars(ControlPlane).items()
    if inspect.isfunction(value) and not name.startswith("_")
)


@pytest.mark.parametrize("name", METHODS)
def test_every_backend_has_every_method_as_the_protocol_writes_it(
    backend: Backend, name: str
) -> None:
    written = inspect.signature(getattr(ControlPlane, name))
    found = inspect.signature(getattr(type(backend.control_plane), name))

    assert found.parameters == written.parameters
    assert found.return_annotation == written.return_annotation


def test_a_lease_is_a_value_that_cannot_be_changed(
    control_plane: ControlPlane, records: Records, clock: Clock
) -> None:
    scene = Scene(control_plane, clock)
    lease = scene.lease(payload="secret")
    copy = lease._replace()
    scene.complete(lease)

    assert lease == copy
    assert "secret" not in repr(lease)
    with pytest.raises(AttributeError):
        lease.token = 2  # type: ignore[misc]


def instants(value: object) -> Iterator[tuple[str, datetime]]:
    fields = getattr(value, "_fields", None) or getattr(value, "__dataclass_fields__", None)
    if fields is not None:
        for name in fields:
            found = getattr(value, name)
            if isinstance(found, datetime):
                yield f"{type(value).__name__}.{name}", found
    elif isinstance(value, list):
        for member in value:
            yield from instants(member)


def test_every_instant_that_comes_out_is_utc(backend: Backend) -> None:
    plane, records = backend.control_plane, backend.records
    scene = Scene(plane, backend.clock)
    lease = scene.lease()
    sealed = scene.lease()
    scene.seal(sealed)
    ended = scene.lease()
    scene.complete(ended)
    seen = [
        lease,
        plane.renew("ada", [(lease.job_id, lease.token)]),
        plane.held("ada"),
        plane.pause(scene.queue),
        records.queues(),
        records.job(lease.job_id),
        records.job(sealed.job_id),
        records.job(ended.job_id),
    ]
    plane.resume(scene.queue)
    scene.enqueue()
    seen.append(records.queues())
    scene.lapse()
    failing = scene.lease()
    seen += [
        plane.lapsed(),
        plane.sweep("broom"),
        plane.fail(failing.job_id, "ada", failing.token, BROKEN),
        records.attempts(lease.job_id),
        records.job(lease.job_id),
    ]

    found = dict(pair for value in seen for pair in instants(value))
    assert set(found) == {
        "AttemptRecord.ended_at",
        "AttemptRecord.started_at",
        "HeldLease.lease_expires_at",
        "JobLease.created_at",
        "JobLease.lease_expires_at",
        "JobRecord.claimed_at",
        "JobRecord.created_at",
        "JobRecord.finished_at",
        "JobRecord.lease_expires_at",
        "JobRecord.next_attempt_at",
        "JobRecord.sealed_at",
        "LapsedLease.lease_expires_at",
        "QueueAnswer.paused_at",
        "QueueRecord.oldest_due_at",
        "QueueRecord.paused_at",
        "Renewal.lease_expires_at",
        "Settled.next_attempt_at",
        "Swept.next_attempt_at",
    }
    assert {instant.utcoffset() for instant in found.values()} == {timedelta(0)}
