"""The race matrix: one session holds a row in an open transaction, a second one asks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tenure.verify.cells import ANY, DONE, LAPSE, Cell, Kind, Line, Matrix
from tenure.verify.promises import CANCEL_HOLDS, NEVER_WAIT, ONE_OWNER, TRANSACTIONS
from tenure.verify.words import (
    BRIEFLY,
    CANCEL,
    CLAIM,
    CLAIM_JOB,
    ENQUEUE,
    RETRY,
    SWEPT,
    VERBS,
    WAITS,
    command,
    leased,
    pid,
    verb,
)


class _Race(NamedTuple):
    arranged: Sequence[Line]
    holds: Line
    asks: str
    meanwhile: str | None
    """The second session's answer while the transaction is open; None: it waits."""
    committed: str
    """Its answer, or its next one, when the transaction commits."""
    rolled_back: str
    promise: str


_LEASED = (ENQUEUE, leased())
_LAPSED = (ENQUEUE, BRIEFLY, LAPSE)
_FAILED = (*_LEASED, verb("fail for good", "ok"))

_GUARD = verb("guard", "passes")
_SWEEP = Line(SWEPT, "swept")
_RECLAIM = verb("reclaim", "leased")
_CANCEL = Line(CANCEL, "ok")
_COMPLETE = verb("complete", "ok")
_DEDUP = (
    "select created, job_id as job from @enqueue(:queue, 'verify', p_dedup_key => 'the same key')"
)

_AFTER_A_GUARD = {
    "complete": "ok",
    "fail": "ok",
    "fail for good": "ok",
    "release started": "ok",
    "release unstarted": "ok",
    "acknowledge": "not_requested",
    "seal": "ok",
    "update_owned": "ok",
    "renew": "renewed",
    "settle complete": "ok",
    "settle fail": "ok",
    "settle release": "ok",
    "settle acknowledge": "not_requested",
}
"""The owner's own verbs from a second session: deferred, then done."""

RACES: dict[str, _Race] = {
    **{
        f"guard | {name}": _Race(
            _LEASED, _GUARD, VERBS[name], "deferred", answer, answer, NEVER_WAIT
        )
        for name, answer in _AFTER_A_GUARD.items()
    },
    "guard | guard": _Race(_LEASED, _GUARD, VERBS["guard"], None, "passes", "passes", ONE_OWNER),
    "guard | cancel": _Race(_LEASED, _GUARD, CANCEL, None, "ok", "ok", CANCEL_HOLDS),
    "guard | sweep": _Race(_LAPSED, _GUARD, SWEPT, "nothing", "nothing", "swept", ONE_OWNER),
    "guard | reclaim": _Race(
        _LAPSED, _GUARD, VERBS["reclaim"], "nothing", "nothing", "leased", ONE_OWNER
    ),
    "sweep | complete": _Race(
        _LAPSED, _SWEEP, VERBS["complete"], "deferred", "lost", "ok", ONE_OWNER
    ),
    "sweep | renew": _Race(
        _LAPSED, _SWEEP, VERBS["renew"], "deferred", "lost", "renewed", ONE_OWNER
    ),
    "sweep | guard": _Race(_LAPSED, _SWEEP, VERBS["guard"], None, "TN001", "passes", ONE_OWNER),
    "sweep | sweep": _Race(_LAPSED, _SWEEP, SWEPT, "nothing", "nothing", "swept", ONE_OWNER),
    "sweep | reclaim": _Race(
        _LAPSED, _SWEEP, VERBS["reclaim"], "nothing", "nothing", "leased", ONE_OWNER
    ),
    "reclaim | complete": _Race(
        _LAPSED, _RECLAIM, VERBS["complete"], "deferred", "lost", "ok", ONE_OWNER
    ),
    "reclaim | guard": _Race(_LAPSED, _RECLAIM, VERBS["guard"], None, "TN001", "passes", ONE_OWNER),
    "reclaim | reclaim": _Race(
        _LAPSED, _RECLAIM, VERBS["reclaim"], "nothing", "nothing", "leased", ONE_OWNER
    ),
    "complete | fail": _Race(
        _LEASED, _COMPLETE, VERBS["fail"], "deferred", "lost", "ok", ONE_OWNER
    ),
    "complete | guard": _Race(
        _LEASED, _COMPLETE, VERBS["guard"], None, "TN001", "passes", ONE_OWNER
    ),
    "complete | cancel": _Race(_LEASED, _COMPLETE, CANCEL, None, "refused", "ok", CANCEL_HOLDS),
    "cancel | complete": _Race(
        _LEASED, _CANCEL, VERBS["complete"], "deferred", "cancel_requested", "ok", CANCEL_HOLDS
    ),
    "cancel | seal": _Race(
        _LEASED, _CANCEL, VERBS["seal"], "deferred", "cancel_requested", "ok", CANCEL_HOLDS
    ),
    "cancel | guard": _Race(
        _LEASED, _CANCEL, VERBS["guard"], None, "TN002", "passes", CANCEL_HOLDS
    ),
    "seal | cancel": _Race(_LEASED, verb("seal", "ok"), CANCEL, None, "sealed", "ok", CANCEL_HOLDS),
    "claim_job | claim_job": _Race(
        (ENQUEUE,), Line(CLAIM_JOB, "leased"), CLAIM_JOB, "nothing", "nothing", "leased", ONE_OWNER
    ),
    "claim | claim": _Race(
        (ENQUEUE,), Line(CLAIM, "leased"), CLAIM, "nothing", "nothing", "leased", ONE_OWNER
    ),
    "claim_job | cancel": _Race(
        (ENQUEUE,), Line(CLAIM_JOB, "leased"), CANCEL, None, "ok", "ok", CANCEL_HOLDS
    ),
    "retry | retry": _Race(_FAILED, Line(RETRY, "ok"), RETRY, None, "refused", "ok", ONE_OWNER),
    "enqueue | enqueue, one dedup key": _Race(
        (), Line(_DEDUP), _DEDUP, None, "f", "t", TRANSACTIONS
    ),
}
"""`what holds | what is asked`."""

COMMITS = "it commits"
ROLLS_BACK = "it rolls back"


def _lines(race: _Race, ends: str, then: str) -> Sequence[Line]:
    held = (*race.arranged, command("begin"), pid("a"), race.holds)
    if race.meanwhile is not None:
        return (
            *held,
            Line(race.asks, race.meanwhile, "b"),
            command(ends),
            Line(race.asks, then, "b"),
        )
    return (
        *held,
        command("begin", "b"),
        pid("b"),
        Line(race.asks, ANY, "b", Kind.START),
        WAITS,
        command(ends),
        Line(race.asks, then, "b", Kind.END),
        Line("commit", DONE, "b"),
    )


def _cells() -> Iterator[Cell]:
    for column, ends in ((COMMITS, "commit"), (ROLLS_BACK, "rollback")):
        for name, race in RACES.items():
            then = race.committed if ends == "commit" else race.rolled_back
            yield Cell(
                matrix="race",
                row=name,
                column=column,
                lines=_lines(race, ends, then),
                promise=race.promise,
            )


RACE_MATRIX = Matrix(
    name="race", title="A transaction holds the row | a second session asks, and …", cells=_cells
)
