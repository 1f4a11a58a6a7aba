"""Leases that were granted under the first schema are what they were under the present one."""

from __future__ import annotations

from datetime import timedelta

from tenure.values import Failure
from tests.migrations.first_schema.jobs import ADA
from tests.migrations.first_schema.restored import Aged

BROKEN = Failure(error_type="Broken")

LAPSED = {
    "lapsed": ("lost", "queued"),
    "lapsed on the last attempt": ("lost", "failed"),
    "sealed, lapsed": ("healed", "completed"),
    "cancel requested, lapsed": ("cancelled", "cancelled"),
    "buffered, lapsed": ("lost", "queued"),
}
"""What the sweep is to say of each, and what becomes of the job."""


def test_owners_go_on_with_the_tokens_they_have(aged: Aged) -> None:
    """O41."""
    plane = aged.plane

    running = aged.one("running")
    assert plane.complete(*running.owner, "sent").verdict == "ok"
    assert plane.complete(*running.owner, "sent").verdict == "already"
    settled = plane.fail(*aged.one("running, to fail").owner, BROKEN)
    assert (settled.verdict, settled.status) == ("ok", "queued")
    settled = plane.release(*aged.one("running, to release").owner, started=True)
    assert (settled.verdict, settled.status) == ("ok", "queued")
    settled = plane.fail(*aged.one("running on the last attempt").owner, BROKEN)
    assert (settled.verdict, settled.status) == ("ok", "failed")
    assert plane.complete(*aged.one("lapsed, taken over").owner).verdict == "ok"

    guarded = aged.one("running, to guard")
    with aged.connection.transaction():
        plane.guard(*guarded.owner)
        assert plane.complete(*guarded.owner).verdict == "ok"
    assert aged.status(guarded) == "completed"

    sealed = aged.one("sealed")
    assert plane.fail(*sealed.owner, BROKEN).verdict == "sealed"
    assert plane.complete(*sealed.owner).verdict == "ok"
    assert [found.result for found in aged.records.results([sealed.job_id])] == ["half done"]

    asked = aged.one("cancel requested")
    assert plane.complete(*asked.owner).verdict == "cancel_requested"
    assert plane.acknowledge_cancel(*asked.owner).status == "cancelled"


def test_leases_are_renewed_and_keep_what_they_had(aged: Aged) -> None:
    """O41."""
    timed, progressing = aged.one("running under a timeout"), aged.one("running, with progress")
    before = aged.records.job(timed.job_id)
    assert before is not None
    assert before.claimed_at is not None
    assert before.timeout is not None

    aged.pass_by(timedelta(minutes=10))
    renewals = aged.plane.renew(
        ADA,
        [(job.job_id, job.token) for job in (timed, progressing)],
        lease_for=timedelta(hours=2),
    )

    assert [renewal.outcome for renewal in renewals] == ["renewed", "renewed"]
    until = {renewal.job_id: renewal.lease_expires_at for renewal in renewals}
    assert until[timed.job_id] == before.claimed_at + before.timeout
    record = aged.records.job(progressing.job_id)
    assert record is not None
    assert record.progress == {"done": 0.5}
    assert aged.plane.update_owned(*progressing.owner, progress={"done": 1}).verdict == "ok"


def test_a_batch_is_given_back_without_a_charge(aged: Aged) -> None:
    """O41."""
    for job in aged.left["buffered"]:
        assert job.attempt == 1
        assert aged.plane.release(*job.owner, started=False).status == "queued"
        record = aged.records.job(job.job_id)
        assert record is not None
        assert record.attempt == 0


def test_former_owners_stay_refused_and_late_answers_are_known(aged: Aged) -> None:
    """O41."""
    for kind in ("lapsed, taken over", "lapsed, swept", "timed out"):
        job = aged.one(kind)
        assert aged.plane.complete(job.job_id, "bob", job.token - 1).verdict == "lost"
    for kind, verb in (("completed", aged.plane.complete), ("failed", None)):
        for job in aged.left[kind]:
            settled = verb(*job.owner) if verb else aged.plane.fail(*job.owner, BROKEN)
            assert settled.verdict == "already"


def test_a_lapsed_lease_that_nobody_took_over_is_its_owners(aged: Aged) -> None:
    """O41."""
    assert aged.plane.complete(*aged.one("lapsed").owner).verdict == "ok"
    assert aged.plane.complete(*aged.one("sealed, lapsed").owner).verdict == "ok"


def test_lapses_are_swept(aged: Aged) -> None:
    """O41."""
    expected = {
        job.job_id: (outcome, status)
        for kind, (outcome, status) in LAPSED.items()
        for job in aged.left[kind]
    }

    swept = aged.plane.sweep("carol")

    assert {row.job_id: (row.outcome, row.status) for row in swept} == expected
    for job in aged.left["buffered, lapsed"]:
        record = aged.records.job(job.job_id)
        assert record is not None
        assert record.solo
        assert record.attempt == 0
    again = aged.plane.complete(*aged.one("sealed, lapsed").owner)
    assert again.verdict == "already"
