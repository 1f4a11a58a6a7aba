"""The controls: what a rightful owner asks for is done."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tenure.verify.cells import LAPSE, Cell, Line, Matrix
from tenure.verify.promises import NO_JOB_LOST, TOKEN_DECIDES
from tenure.verify.words import (
    BRIEFLY,
    CLAIM_JOB,
    ENQUEUE,
    RETRIED,
    SHORT,
    STATE,
    SWEEP,
    SWEPT,
    TAKEN_OVER_BY_ME,
    VERBS,
    leased,
    verb,
)

_BRIEFLY_ANOTHERS = leased(f"'{SHORT}'", ":other")

STATES: dict[str, Sequence[Line]] = {
    "running": (ENQUEUE, leased()),
    "lapsed, and nobody took it over": (ENQUEUE, BRIEFLY, LAPSE),
    "lapsed, then renewed": (ENQUEUE, BRIEFLY, LAPSE, verb("renew", "renewed")),
    "reclaimed by its owner from another": (ENQUEUE, _BRIEFLY_ANOTHERS, LAPSE, TAKEN_OVER_BY_ME),
    "claimed by its owner after a sweep": (ENQUEUE, _BRIEFLY_ANOTHERS, LAPSE, SWEEP, leased()),
    "claimed by its owner after an operator's retry": (
        ENQUEUE,
        leased(),
        verb("fail for good", "ok"),
        RETRIED,
        leased(),
    ),
}

_LAPSED = "lapsed, and nobody took it over"

OUTCOMES = {
    "complete": ("ok", "completed"),
    "fail": ("ok", "queued"),
    "fail for good": ("ok", "failed"),
    "release started": ("ok", "queued"),
    "release unstarted": ("ok", "queued"),
    "acknowledge": ("not_requested", "running"),
    "seal": ("ok", "running"),
    "update_owned": ("ok", "running"),
    "renew": ("renewed", "running"),
    "guard": ("passes", "running"),
    "settle complete": ("ok", "completed"),
    "settle fail": ("ok", "queued"),
    "settle release": ("ok", "queued"),
    "settle acknowledge": ("not_requested", "running"),
    "reclaim": ("nothing", "running"),
    "claim_job": ("nothing", "running"),
    "sweep": ("nothing", "running"),
}
"""The answer and the status after it; the last three are others who may not have the job yet."""

OUTCOMES_LAPSED = {
    "acknowledge": ("not_requested", "running, lapsed"),
    "seal": ("ok", "running, lapsed"),
    "settle acknowledge": ("not_requested", "running, lapsed"),
    "reclaim": ("leased", "running"),
    "claim_job": ("nothing", "running, lapsed"),
    "sweep": ("swept", "queued"),
}

_CALLS = VERBS | {"claim_job": CLAIM_JOB, "sweep": SWEPT}


def _cells() -> Iterator[Cell]:
    for state, arranged in STATES.items():
        outcomes = OUTCOMES | (OUTCOMES_LAPSED if state == _LAPSED else {})
        for name, (must, then) in outcomes.items():
            yield Cell(
                matrix="owner",
                row=name,
                column=state,
                lines=(*arranged, Line(_CALLS[name], must), Line(STATE, then)),
                promise=TOKEN_DECIDES if "lapsed" in state else NO_JOB_LOST,
                variables={"lease": "30 seconds"},
                # A sweep takes whatever has lapsed, so it has no neighbours.
                group=f"{state}, sweep" if name == "sweep" else state,
            )


OWNER = Matrix(name="owner", title="The rightful owner; what it asks for is done", cells=_cells)
