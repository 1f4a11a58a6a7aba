"""Forged histories: a job's life in a few words, to be spoilt by a test."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

from tests.chaos.history import History, Lapse, Row, Start, Version

SECOND = 1_000_000


class Life:
    """Writes the versions of one job, each from the one before it."""

    def __init__(self, job_id: int = 1, *, kind: str = "noop", batch: int | None = None) -> None:
        self.job_id, self.kind, self.batch = job_id, kind, batch
        self._seq = count(job_id * 100)
        self.versions: list[Version] = []
        self.starts: list[Start] = []
        self.lapses: list[Lapse] = []
        self.result: Any = None
        self.now = 0
        self._add(
            Version(
                seq=0,
                xid=1,
                at=0,
                op="insert",
                place="job",
                job_id=job_id,
                status="queued",
                token=0,
                worker_id=None,
                attempt=0,
                max_attempts=3,
                buffered=False,
                solo=False,
                cancel_requested=False,
                sealed=False,
                claimed_at=None,
                lease_expires_at=None,
                timeout=None,
                progress=None,
            )
        )

    @property
    def last(self) -> Version:
        return self.versions[-1]

    def changed(self, **changes: Any) -> Life:
        """Another version in the same place, a moment later."""
        self._add(replace(self.last, op="update", **changes))
        return self

    def claimed(self, worker_id: str = "a", *, started: bool = True, **changes: Any) -> Life:
        token = self.last.token + 1
        self.changed(
            **{
                "status": "running",
                "token": token,
                "attempt": self.last.attempt + 1,
                "worker_id": worker_id,
                "claimed_at": self.now,
                "lease_expires_at": self.now + SECOND,
                **changes,
            }
        )
        if started:
            self.starts.append(Start(self.job_id, token, worker_id))
        return self

    def requeued(self, *, outcome: str = "failed", **changes: Any) -> Life:
        """The lease ends, by its owner unless the token is changed as well."""
        self._noted(outcome)
        return self.changed(
            **{
                "status": "queued",
                "worker_id": None,
                "claimed_at": None,
                "lease_expires_at": None,
                "buffered": False,
                **changes,
            }
        )

    def lapsed(self, **changes: Any) -> Life:
        """Swept, once the lease is over."""
        self.now += 2 * SECOND
        return self.requeued(outcome="lost", token=self.last.token + 1, **changes)

    def ended(self, status: str = "completed", *, result: Any = None, **changes: Any) -> Life:
        """Moves to the history."""
        before = self.last
        if status == "completed":
            token, worker_id = before.token, before.worker_id
            self.result = result or {"token": token, "worker_id": worker_id}
        elif before.status == "running":
            self._noted(status)
        self._move(
            status=status,
            place="history",
            buffered=False,
            solo=False,
            sealed=False,
            cancel_requested=False,
            lease_expires_at=None,
            **changes,
        )
        return self

    def retried(self) -> Life:
        self._move(
            status="queued",
            place="job",
            worker_id=None,
            claimed_at=None,
            max_attempts=self.last.attempt + 1,
        )
        return self

    def history(self, **parts: Any) -> History:
        return history(self, **parts)

    @property
    def row(self) -> Row:
        return Row(
            job_id=self.job_id,
            place=self.last.place,
            kind=self.kind,
            status=self.last.status,
            token=self.last.token,
            batch=self.batch,
            result=self.result,
        )

    def _noted(self, outcome: str) -> None:
        last = self.last
        self.lapses.append(Lapse(self.job_id, last.token, last.worker_id or "", outcome))

    def _move(self, **changes: Any) -> None:
        gone = self.last
        self._add(replace(gone, op="delete"))
        self._add(replace(gone, op="insert", **changes))

    def _add(self, version: Version) -> None:
        self.now += SECOND // 10
        self.versions.append(replace(version, seq=next(self._seq), at=self.now))


def history(*lives: Life, **parts: Any) -> History:
    """What those lives leave behind, with some parts replaced or added."""
    made = History(
        versions=[version for life in lives for version in life.versions],
        rows=[life.row for life in lives],
        starts=[start for life in lives for start in life.starts],
        lapses=[lapse for life in lives for lapse in life.lapses],
    )
    return replace(made, **parts)
