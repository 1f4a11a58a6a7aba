"""What may lead from one version of a job's row to the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from tests.chaos.history import Version

CLOCK_STEP = 2_000
"""Microseconds by which a trigger's clock may lag: SQLite's has whole milliseconds."""

ENDED = {"completed", "failed", "cancelled"}


class Step(StrEnum):
    """The transitions of a job."""

    ENQUEUED = "enqueued"
    CLAIMED = "claimed"
    CHANGED = "changed"
    """Renewed, sealed, progress noted, or cancellation requested."""
    REQUEUED = "requeued"
    """By its owner, the attempt spent."""
    GIVEN_BACK = "given back"
    """By its owner, the attempt refunded: it had not been started."""
    SWEPT = "swept"
    REFUNDED = "swept and refunded"
    RECLAIMED = "reclaimed"
    COMPLETED = "completed"
    HEALED = "healed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SWEPT_FAILED = "swept and failed"
    SWEPT_CANCELLED = "swept and cancelled"
    RETRIED = "retried"

    @property
    def ends_lease(self) -> bool:
        """Whether a lease ended by it; a cancellation may also end a queued job."""
        return self not in (Step.ENQUEUED, Step.CLAIMED, Step.CHANGED, Step.RETRIED)


@dataclass(frozen=True, slots=True)
class Taken:
    """One step of one job."""

    step: Step
    before: Version | None
    after: Version


@dataclass(frozen=True, slots=True)
class Violation:
    """Something that must not be, under the name of the rule it breaks."""

    rule: str
    job_id: int
    message: str

    def __str__(self) -> str:
        return f"{self.rule}: job {self.job_id}: {self.message}"


class Broken(Exception):
    """A step that no verb makes."""

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(message)
        self.rule = rule


def steps_of(versions: Sequence[Version]) -> tuple[list[Taken], list[Violation]]:
    """The steps of one job, and what is wrong with them."""
    taken: list[Taken] = []
    violations: list[Violation] = []
    before: Version | None = None
    for after in _present(versions, violations):
        try:
            _check_version(after)
            taken.append(Taken(_step(before, after), before, after))
        except Broken as broken:
            message = f"{broken} (version {after.seq}, token {after.token}, {after.status})"
            violations.append(Violation(broken.rule, after.job_id, message))
        before = after
    return taken, violations


def _present(versions: Sequence[Version], violations: list[Violation]) -> list[Version]:
    """The versions without the deletions, each of which must go with an insertion elsewhere."""
    present: list[Version] = []
    gone: Version | None = None
    come: Version | None = None
    for version in versions:
        if version.op == "delete":
            gone = version
        else:
            present.append(version)
            if version.op == "insert" and len(present) > 1:
                come = version
        if gone is not None and come is not None:
            if gone.place == come.place or gone.xid != come.xid:
                violations.append(_misplaced(version, "it did not move in one transaction"))
            gone = come = None
        elif gone is not None and version.op == "update":
            violations.append(_misplaced(version, "it was changed where it had been deleted"))
    if gone is not None or come is not None:
        what = "it was deleted and is nowhere" if gone is not None else "it is in two places"
        violations.append(_misplaced(versions[-1], what))
    return present


def _misplaced(version: Version, message: str) -> Violation:
    return Violation("one place", version.job_id, message)


def _check_version(v: Version) -> None:
    _require(v.attempt <= v.max_attempts, "attempts", f"attempt {v.attempt} of {v.max_attempts}")
    _require((v.place == "history") == (v.status in ENDED), "one place", f"{v.status} in {v.place}")
    if v.status == "running" and v.timeout is not None:
        assert v.claimed_at is not None
        assert v.lease_expires_at is not None
        within = v.lease_expires_at <= v.claimed_at + v.timeout
        _require(within, "timeout", "the lease goes beyond the timeout")


def _step(before: Version | None, after: Version) -> Step:
    if before is None:
        new = after.status == "queued" and after.token == 0 and after.attempt == 0
        _require(new, "states", "it began otherwise than queued with token 0")
        return Step.ENQUEUED
    _require(after.token >= before.token, "token order", f"token {before.token} came before")
    if before.place == "history":
        again = after.status == "queued" and after.token == before.token
        _require(again, "one end", f"it had ended {before.status}")
        _require(before.status != "completed", "one end", "it was run again once completed")
        return Step.RETRIED
    if after.token == before.token or before.status == "queued":
        step = (
            _from_queued(before, after) if before.status == "queued" else _by_owner(before, after)
        )
    else:
        step = _by_another(before, after)
    if step is not Step.CHANGED:
        _require(after.progress == before.progress, "stale write", "progress came without a lease")
    return step


def _from_queued(before: Version, after: Version) -> Step:
    if after.status == "cancelled":
        _require(after.token == before.token, "token order", "a queued cancel minted a token")
        return Step.CANCELLED
    _require(after.status == "running", "states", "a queued job became this without a claim")
    _require(after.token == before.token + 1, "token order", f"a claim went on from {before.token}")
    _require(after.attempt == before.attempt + 1, "attempts", "a claim spent no attempt")
    _require(not (before.solo and after.buffered), "poison", "a solo job was claimed in a batch")
    return Step.CLAIMED


def _by_owner(before: Version, after: Version) -> Step:
    same = after.worker_id == before.worker_id
    if after.status == "running":
        _require(same, "one worker", f"token {after.token} passed on from {before.worker_id}")
        _require(after.attempt == before.attempt, "attempts", "it changed within a lease")
        undone = (before.sealed and not after.sealed) or (
            before.cancel_requested and not after.cancel_requested
        )
        _require(not undone, "cancel", "a seal or a cancellation was undone")
        both = after.sealed and after.cancel_requested
        _require(not both, "cancel", "a cancellation was accepted beside a seal")
        noted = after.progress in (before.progress, after.token)
        _require(noted, "stale write", f"progress {after.progress} was noted")
        return Step.CHANGED
    if after.status == "completed":
        _require(same, "one worker", f"{before.worker_id} had the lease")
        _require(not before.cancel_requested, "cancel", "an accepted cancellation completed")
        return Step.COMPLETED
    _require(not before.sealed, "seal", "a sealed job did not complete")
    if after.status == "cancelled":
        _require(same, "one worker", f"{before.worker_id} had the lease")
        return Step.CANCELLED
    _require(not before.cancel_requested, "cancel", "an accepted cancellation was undone")
    if after.status == "failed":
        _require(same, "one worker", f"{before.worker_id} had the lease")
        return Step.FAILED
    spent = before.attempt - after.attempt
    _require(spent in (0, 1), "attempts", f"attempt {before.attempt} before")
    return Step.GIVEN_BACK if spent else Step.REQUEUED


def _by_another(before: Version, after: Version) -> Step:
    """A sweep or a reclaim: the lease must be over."""
    _require(after.token == before.token + 1, "token order", f"token {before.token} came before")
    assert before.lease_expires_at is not None
    over = after.at + CLOCK_STEP >= before.lease_expires_at
    _require(over, "overlap", f"{before.worker_id} still had the lease")
    if after.status == "running":
        _require(after.attempt == before.attempt, "attempts", "a reclaim changed it")
        return Step.RECLAIMED
    if before.sealed:
        _require(after.status == "completed", "seal", "a sealed job was swept and did not complete")
        return Step.HEALED
    _require(after.status != "completed", "states", "a sweep completed what was not sealed")
    if before.cancel_requested or after.status == "cancelled":
        right = before.cancel_requested and after.status == "cancelled"
        _require(right, "cancel", "a sweep and a cancellation disagree")
        return Step.SWEPT_CANCELLED
    if after.status == "failed":
        spent = before.attempt == before.max_attempts
        _require(spent and not before.buffered, "attempts", "failed with attempts left")
        return Step.SWEPT_FAILED
    if before.buffered:
        right = after.attempt == before.attempt - 1 and after.solo
        _require(right, "poison", "a lapse out of a batch was not refunded and made solo")
        return Step.REFUNDED
    _require(after.attempt == before.attempt, "attempts", "a lapse was refunded")
    return Step.SWEPT


def _require(holds: bool, rule: str, message: str) -> None:
    if not holds:
        raise Broken(rule, message)
