"""The cancel matrix: a cancellation in each state, and each verb after it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tenure.verify.cancel_outcomes import (
    ACKNOWLEDGED_IT,
    COMPLETED_IT,
    FAILED_IT,
    GONE,
    REQUESTED,
    REQUESTED_LAPSED,
    SEALED,
    Outcomes,
    ended,
    late,
)
from tenure.verify.cells import LAPSE, Cell, Line, Matrix
from tenure.verify.promises import CANCEL_HOLDS
from tenure.verify.words import (
    CANCEL,
    CANCELLED,
    CLAIM,
    CLAIM_JOB,
    ENQUEUE,
    ENQUEUE_FOR_LATER,
    ENQUEUE_FOR_ONE_ATTEMPT,
    ENQUEUE_NEIGHBOUR,
    GUARD_ANYWAY,
    LEASED_IN_A_BATCH,
    LONG,
    RETRY,
    SHORT,
    STATE,
    SWEPT,
    TAKEN_OVER_BY_ME,
    UPDATE_ANYWAY,
    VERBS,
    leased,
    verb,
)

_CALLS = {
    **VERBS,
    "update_owned anyway": UPDATE_ANYWAY,
    "guard anyway": GUARD_ANYWAY,
    "sweep": SWEPT,
    "claim_job": CLAIM_JOB,
    "claim": CLAIM,
    "cancel again": CANCEL,
    "retry": RETRY,
}
_ON_LAPSED = ("sweep", "reclaim")
"""The verbs that wait for the lease to lapse."""


@dataclass(frozen=True, slots=True)
class _State:
    arranged: Sequence[Line]
    answer: str
    """Of the cancellation."""
    outcomes: Outcomes


_LEASED = (ENQUEUE, leased(":lease"))

STATES = {
    "queued": _State((ENQUEUE,), "ok", GONE),
    "queued for later": _State((ENQUEUE_FOR_LATER,), "ok", GONE),
    "queued again by its worker's fail": _State(
        (*_LEASED, verb("fail", "ok")), "ok", {**late("cancelled", FAILED_IT), **GONE}
    ),
    "running": _State(_LEASED, "ok", REQUESTED),
    "running on its last attempt": _State(
        (ENQUEUE_FOR_ONE_ATTEMPT, leased(":lease")), "ok", REQUESTED
    ),
    "running, claimed in a batch": _State(
        (ENQUEUE, ENQUEUE_NEIGHBOUR, LEASED_IN_A_BATCH), "ok", REQUESTED
    ),
    "running, reclaimed from another": _State(
        (ENQUEUE, leased(f"'{SHORT}'", ":other"), LAPSE, TAKEN_OVER_BY_ME), "ok", REQUESTED
    ),
    "lapsed, and nobody took it over": _State(
        (ENQUEUE, leased(f"'{SHORT}'"), LAPSE), "ok", REQUESTED_LAPSED
    ),
    "sealed": _State((*_LEASED, verb("seal", "ok")), "sealed", SEALED),
    "completed": _State(
        (*_LEASED, verb("complete", "ok")),
        "refused",
        {
            **late("completed", COMPLETED_IT),
            **ended("completed"),
            "retry": ("refused", "completed"),
        },
    ),
    "failed": _State(
        (*_LEASED, verb("fail for good", "ok")),
        "refused",
        {**late("failed", FAILED_IT), **ended("failed"), "retry": ("ok", "queued")},
    ),
    "cancelled": _State(
        (*_LEASED, CANCELLED, verb("acknowledge", "ok")),
        "already",
        {**late("cancelled", ACKNOWLEDGED_IT), **GONE},
    ),
}


def _cells() -> Iterator[Cell]:
    for state, each in STATES.items():
        running = each.outcomes is REQUESTED or each.outcomes is SEALED
        for name, (must, then) in each.outcomes.items():
            waits = running and name in _ON_LAPSED
            yield Cell(
                matrix="cancel",
                row=name,
                column=state,
                lines=(
                    *each.arranged,
                    Line(CANCEL, each.answer),
                    *([LAPSE] if waits else []),
                    Line(_CALLS[name], must),
                    Line(STATE, then),
                ),
                promise=CANCEL_HOLDS,
                variables={"lease": SHORT if waits else LONG},
                group=f"{state}, sweep" if name == "sweep" else state,
            )


CANCEL_MATRIX = Matrix(
    name="cancel", title="A cancellation, then a verb; it is never undone", cells=_cells
)
