"""What has come of jobs, as whoever waits for them reads it."""

from __future__ import annotations

import pytest

from tenure.control_plane import ControlPlane
from tenure.postgres_records import PostgresRecords
from tenure.records import Records
from tenure.sqlite_records import SqliteRecords
from tenure.values import Failure, JobResult, JobStatus
from tests.contract.backends import Clock
from tests.contract.scenario import MILLISECOND, Scene

GONE = Failure(error_type="OSError", message="gone", retryable=False)
LOST = Failure(error_type="KeyError", message="lost", retryable=False)


@pytest.fixture
def scene(control_plane: ControlPlane, clock: Clock) -> Scene:
    return Scene(control_plane, clock)


def shown(result: JobResult) -> tuple[object, ...]:
    return result.token, result.status, result.result, result.error_type, result.message


def results(records: Records, *job_ids: int) -> dict[int, JobResult]:
    assert isinstance(records, PostgresRecords | SqliteRecords)
    found = records.results(job_ids)
    assert len({result.job_id for result in found}) == len(found)
    return {result.job_id: result for result in found}


def test_a_result_is_of_the_job_that_was_asked_for_and_of_its_last_lease(
    scene: Scene, records: Records
) -> None:
    first, second = scene.lease(), scene.lease()
    for lease in (first, second):
        scene.fail_with_delay(lease, 0 * MILLISECOND)
    scene.fail(scene.lease(job_id=first.job_id), LOST)
    scene.fail(scene.lease(job_id=second.job_id), GONE)
    scene.complete(scene.lease())
    scene.lease()

    found = results(records, first.job_id, second.job_id)

    assert {job_id: shown(result) for job_id, result in found.items()} == {
        first.job_id: (2, JobStatus.FAILED, None, "KeyError", "lost"),
        second.job_id: (2, JobStatus.FAILED, None, "OSError", "gone"),
    }


def test_a_job_that_has_not_ended_has_neither_a_result_nor_an_error(
    scene: Scene, records: Records
) -> None:
    sealed, waiting = scene.lease(), scene.lease()
    scene.seal(sealed)
    scene.fail(waiting)

    found = results(records, sealed.job_id, waiting.job_id)

    assert shown(found[sealed.job_id]) == (1, JobStatus.RUNNING, None, None, None)
    assert shown(found[waiting.job_id]) == (1, JobStatus.QUEUED, None, None, None)


def test_a_completed_job_has_its_result(scene: Scene, records: Records) -> None:
    lease = scene.lease()
    scene.complete(lease)
    [(_, found)] = results(records, lease.job_id).items()
    assert shown(found) == (1, JobStatus.COMPLETED, {"done": True}, None, None)
