"""What becomes of leases when their runner stops."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Sequence

from tenure.control_plane import ControlPlane
from tenure.limits import MAX_LEASES
from tenure.standing import Standing
from tenure.values import Outcome, Settled, Verb, Verdict

logger = logging.getLogger(__name__)


def hand_back(plane: ControlPlane, standings: Sequence[Standing]) -> list[Settled]:
    """End the leases under their tokens, so that other workers need not wait for them to lapse.

    What was not started is released uncharged. What was started is released with its attempt
    spent: it is queued again at once, or failed when that was its last attempt. A sealed job is
    completed. A handler that ends in the same instant wins or loses by its token, as always.
    """
    by_worker: dict[str, list[Outcome]] = defaultdict(list)
    for standing in standings:
        lease = standing.lease
        by_worker[lease.worker_id].append(
            Outcome(job_id=lease.job_id, token=lease.token, verb=Verb.COMPLETE)
            if standing.sealed
            else Outcome(
                job_id=lease.job_id,
                token=lease.token,
                verb=Verb.RELEASE,
                started=standing.started,
            )
        )
    answers: list[Settled] = []
    for worker_id, outcomes in by_worker.items():
        for first in range(0, len(outcomes), MAX_LEASES):
            answers += plane.settle(worker_id, outcomes[first : first + MAX_LEASES])
    for answer in answers:
        if answer.verdict not in (Verdict.OK, Verdict.ALREADY, Verdict.LOST):
            logger.warning(
                "job %d could not be handed back (%s): its lease will lapse",
                answer.job_id,
                answer.verdict,
                extra={"job_id": answer.job_id},
            )
    return answers
