"""The cancel matrix: a cancellation in each state, and each verb after it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

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

Outcomes = Mapping[str, tuple[str, str]]
"""By verb: its answer, and the job's status after it."""

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

_GONE: Outcomes = {
    "sweep": ("nothing", "cancelled"),
    "claim_job": ("nothing", "cancelled"),
    "claim": ("nothing", "cancelled"),
    "cancel again": ("already", "cancelled"),
    "retry": ("ok", "queued"),
}
"""An operator's retry is no automatic one: it may queue a cancelled job again."""


def _late(status: str, **others: str) -> Outcomes:
    """What a former owner gets, whose every call leaves the job as it is."""
    answers = dict.fromkeys(VERBS, "lost") | {"guard": "TN001", "reclaim": "nothing"}
    return {
        name: (others.get(name.replace(" ", "_"), answer), status)
        for name, answer in answers.items()
    }


_FAILED_IT = {"fail": "already", "fail_for_good": "already", "settle_fail": "already"}
_COMPLETED_IT = {"complete": "already", "settle_complete": "already"}
_ACKNOWLEDGED_IT = {"acknowledge": "already", "settle_acknowledge": "already"}

_STANDS = "running, cancel requested"

_REQUESTED: Outcomes = {
    "complete": ("cancel_requested", _STANDS),
    "fail": ("ok", "cancelled"),
    "fail for good": ("ok", "cancelled"),
    "release started": ("ok", "cancelled"),
    "release unstarted": ("ok", "cancelled"),
    "acknowledge": ("ok", "cancelled"),
    "seal": ("cancel_requested", _STANDS),
    "update_owned": ("cancel_requested", _STANDS),
    "update_owned anyway": ("ok", _STANDS),
    "renew": ("renewed, cancel requested", _STANDS),
    "guard": ("TN002", _STANDS),
    "guard anyway": ("passes", _STANDS),
    "settle complete": ("cancel_requested", _STANDS),
    "settle fail": ("ok", "cancelled"),
    "settle release": ("ok", "cancelled"),
    "settle acknowledge": ("ok", "cancelled"),
    "sweep": ("swept", "cancelled"),
    "reclaim": ("leased", _STANDS),
    "claim_job": ("nothing", _STANDS),
    "cancel again": ("already", _STANDS),
    "retry": ("refused", _STANDS),
}
_MOVES_THE_INSTANT = ("renew", "guard anyway", "reclaim")
_REQUESTED_LAPSED: Outcomes = {
    name: (
        answer,
        status if name in _MOVES_THE_INSTANT or status != _STANDS else f"{status}, lapsed",
    )
    for name, (answer, status) in _REQUESTED.items()
}

_SEALED: Outcomes = {
    "complete": ("ok", "completed"),
    "fail": ("sealed", "running"),
    "fail for good": ("sealed", "running"),
    "release started": ("sealed", "running"),
    "release unstarted": ("sealed", "running"),
    "acknowledge": ("sealed", "running"),
    "seal": ("already", "running"),
    "update_owned": ("ok", "running"),
    "renew": ("renewed", "running"),
    "guard": ("passes", "running"),
    "settle complete": ("ok", "completed"),
    "settle fail": ("sealed", "running"),
    "settle release": ("sealed", "running"),
    "settle acknowledge": ("sealed", "running"),
    "sweep": ("swept", "completed"),
    "reclaim": ("leased", "running"),
    "claim_job": ("nothing", "running"),
    "cancel again": ("sealed", "running"),
    "retry": ("refused", "running"),
}


@dataclass(frozen=True, slots=True)
class _State:
    arranged: Sequence[Line]
    answer: str
    """Of the cancellation."""
    outcomes: Outcomes


_LEASED = (ENQUEUE, leased(":lease"))

STATES = {
    "queued": _State((ENQUEUE,), "ok", _GONE),
    "queued for later": _State((ENQUEUE_FOR_LATER,), "ok", _GONE),
    "queued again by its worker's fail": _State(
        (*_LEASED, verb("fail", "ok")), "ok", {**_late("cancelled", **_FAILED_IT), **_GONE}
    ),
    "running": _State(_LEASED, "ok", _REQUESTED),
    "running on its last attempt": _State(
        (ENQUEUE_FOR_ONE_ATTEMPT, leased(":lease")), "ok", _REQUESTED
    ),
    "running, claimed in a batch": _State(
        (ENQUEUE, ENQUEUE_NEIGHBOUR, LEASED_IN_A_BATCH), "ok", _REQUESTED
    ),
    "running, reclaimed from another": _State(
        (ENQUEUE, leased(f"'{SHORT}'", ":other"), LAPSE, TAKEN_OVER_BY_ME), "ok", _REQUESTED
    ),
    "lapsed, and nobody took it over": _State(
        (ENQUEUE, leased(f"'{SHORT}'"), LAPSE), "ok", _REQUESTED_LAPSED
    ),
    "sealed": _State((*_LEASED, verb("seal", "ok")), "sealed", _SEALED),
    "completed": _State(
        (*_LEASED, verb("complete", "ok")),
        "refused",
        {
            **_late("completed", **_COMPLETED_IT),
            "sweep": ("nothing", "completed"),
            "claim_job": ("nothing", "completed"),
            "cancel again": ("refused", "completed"),
            "retry": ("refused", "completed"),
        },
    ),
    "failed": _State(
        (*_LEASED, verb("fail for good", "ok")),
        "refused",
        {
            **_late("failed", **_FAILED_IT),
            "sweep": ("nothing", "failed"),
            "claim_job": ("nothing", "failed"),
            "cancel again": ("refused", "failed"),
            "retry": ("ok", "queued"),
        },
    ),
    "cancelled": _State(
        (*_LEASED, CANCELLED, verb("acknowledge", "ok")),
        "already",
        {**_late("cancelled", **_ACKNOWLEDGED_IT), **_GONE},
    ),
}


def _cells() -> Iterator[Cell]:
    for state, each in STATES.items():
        running = each.outcomes is _REQUESTED or each.outcomes is _SEALED
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
