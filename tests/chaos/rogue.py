"""A worker gone wrong: it writes under leases that it must know to be others'."""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from tenure import JobStatus, Tenure
from tenure.control_plane import ControlPlane
from tenure.errors import LeaseLost
from tenure.values import Failure, LeaseRenewal, Outcome, Verb, Verdict
from tests.chaos import journal
from tests.chaos.history import Start

T = TypeVar("T")

REFUSED = {Verdict.LOST, Verdict.ALREADY}
"""`already` is for a verb that this very lease was ended with."""

VERBS = ("complete", "fail", "release", "acknowledge_cancel", "seal", "update_owned")
NONSENSE = {"rogue": True}
PROGRESS = -1


class Rogue:
    """A thread that shows tokens which later ones have followed, and other workers' tokens.

    Runners drop a lost lease by themselves; this is what tries the fence behind them. Were a
    call accepted, the checker would find its nonsense as well.
    """

    def __init__(self, app: Tenure, journals: Path, *, per_second: float, seed: int) -> None:
        self._app = app
        self._journals = journals
        self._pause = 1 / per_second
        self._random = random.Random(seed)
        self._stopping = threading.Event()
        self.refused = 0
        self.complaints: list[str] = []
        self._thread = threading.Thread(target=self._run, name="soak-rogue", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> bool:
        """Begin no further call; False when the one under way does not end."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(15)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stopping.wait(1):
            try:
                chosen = self._forged()
            except Exception:  # the server is away, or the file is held
                continue
            for forged in chosen:
                if self._stopping.wait(self._pause):
                    return
                verb = self._random.choice((*VERBS, "settle", "renew", "guard"))
                try:
                    with self._app.producer.planes.lent() as plane:
                        answer = show(plane, verb, forged)
                except Exception:  # as above
                    continue
                self._note(verb, forged, answer)

    def _note(self, verb: str, forged: Start, answer: Verdict | LeaseRenewal | None) -> None:
        if answer in REFUSED or answer is LeaseRenewal.LOST:
            self.refused += 1
        else:
            who = f"{forged.worker_id} under token {forged.token}"
            self.complaints.append(
                f"stale write: job {forged.job_id}: {verb} by {who} was answered {answer}"
            )

    def _forged(self) -> list[Start]:
        """A second's worth of leases that are nobody's, half of them of jobs that run."""
        starts, _ = journal.read(self._journals)
        of_job: dict[int, list[Start]] = {}
        for start in sorted(starts, key=lambda start: start.token):
            of_job.setdefault(start.job_id, []).append(start)
        chosen = [stale for known in of_job.values() for stale in known[:-1]]
        chosen = self._some(chosen)
        for record in self._some(self._app.store.records().jobs(status=JobStatus.RUNNING)):
            # The current token under another's name, and earlier ones under their own.
            chosen.append(Start(record.job_id, record.token, "rogue"))
            chosen += [s for s in of_job.get(record.job_id, []) if s.token < record.token]
        self._random.shuffle(chosen)
        return chosen

    def _some(self, known: Sequence[T]) -> list[T]:
        return self._random.sample(known, min(len(known), max(1, round(0.5 / self._pause))))


def show(plane: ControlPlane, verb: str, lease: Start) -> Verdict | LeaseRenewal | None:
    """Make one call under a lease; None when `guard` let it pass."""
    job_id, worker_id, token = lease.job_id, lease.worker_id, lease.token
    failure = Failure(error_type="Rogue", message="it should never be seen")
    match verb:
        case "complete":
            return plane.complete(job_id, worker_id, token, NONSENSE).verdict
        case "fail":
            return plane.fail(job_id, worker_id, token, failure).verdict
        case "release":
            return plane.release(job_id, worker_id, token, started=False).verdict
        case "acknowledge_cancel":
            return plane.acknowledge_cancel(job_id, worker_id, token).verdict
        case "seal":
            return plane.seal(job_id, worker_id, token, NONSENSE).verdict
        case "update_owned":
            return plane.update_owned(job_id, worker_id, token, progress=PROGRESS).verdict
        case "settle":
            outcome = Outcome(job_id=job_id, token=token, verb=Verb.COMPLETE, result=NONSENSE)
            [settled] = plane.settle(worker_id, [outcome])
            return settled.verdict
        case "renew":
            [renewal] = plane.renew(worker_id, [(job_id, token)])
            return renewal.outcome
    try:
        plane.guard(job_id, worker_id, token)
    except LeaseLost:
        return Verdict.LOST
    return None
