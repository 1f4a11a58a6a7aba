"""The stale-owner matrix: each verb, by each way of having lost the lease."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tenure.verify.cells import LAPSE, Cell, Line, Matrix
from tenure.verify.promises import ONE_OWNER
from tenure.verify.words import (
    BRIEFLY,
    CANCELLED,
    ENQUEUE,
    ENQUEUE_FOR_ONE_ATTEMPT,
    LENT_AGAIN,
    LENT_ANEW,
    RETRIED,
    ROW,
    SWEEP,
    TAKEN_OVER,
    VERBS,
    command,
    leased,
    verb,
)

_NOTHING = {"guard": "TN001", "reclaim": "nothing"}
"""What a stale caller gets where it is not `lost`."""

_FAIL = ("fail", "fail for good", "settle fail")
_RELEASE = ("release started", "release unstarted", "settle release")
_COMPLETE = ("complete", "settle complete")

WAYS: dict[str, tuple[Sequence[Line], Sequence[str]]] = {
    "it lapsed and was swept back to queued": ((ENQUEUE, BRIEFLY, LAPSE, SWEEP), ()),
    "swept, and claimed by another": ((ENQUEUE, BRIEFLY, LAPSE, SWEEP, LENT_ANEW), ()),
    "swept, and claimed again under the same worker_id": (
        (ENQUEUE, BRIEFLY, LAPSE, SWEEP, LENT_AGAIN),
        (),
    ),
    "reclaimed by another": ((ENQUEUE, BRIEFLY, LAPSE, TAKEN_OVER), ()),
    "reclaimed by another, who released it": (
        (
            ENQUEUE,
            BRIEFLY,
            LAPSE,
            TAKEN_OVER,
            Line("select verdict from @release(:job, :other, :token2, false)", "ok"),
        ),
        (),
    ),
    "swept on its last attempt: the job failed": (
        (ENQUEUE_FOR_ONE_ATTEMPT, BRIEFLY, LAPSE, SWEEP),
        (),
    ),
    "its caller failed the job, which is queued again": (
        (ENQUEUE, leased(), verb("fail", "ok")),
        _FAIL,
    ),
    "its caller failed the job for good": ((ENQUEUE, leased(), verb("fail for good", "ok")), _FAIL),
    "its caller completed the job": ((ENQUEUE, leased(), verb("complete", "ok")), _COMPLETE),
    "its caller released the job": (
        (ENQUEUE, leased(), verb("release unstarted", "ok")),
        _RELEASE,
    ),
    "cancelled, and acknowledged by its caller": (
        (ENQUEUE, leased(), CANCELLED, verb("acknowledge", "ok")),
        ("acknowledge", "settle acknowledge"),
    ),
    "cancelled, lapsed and swept": ((ENQUEUE, BRIEFLY, CANCELLED, LAPSE, SWEEP), ()),
    "failed by its caller, retried by an operator, claimed anew": (
        (ENQUEUE, leased(), verb("fail for good", "ok"), RETRIED, LENT_ANEW),
        _FAIL,
    ),
    "sealed by its caller, lapsed, and healed by a sweep": (
        (ENQUEUE, BRIEFLY, verb("seal", "ok"), LAPSE, SWEEP),
        (*_COMPLETE, "seal"),
    ),
    "never its own: the current token under another worker_id": (
        (ENQUEUE, leased(worker=":other")),
        (),
    ),
    "an id that no job has": (
        (
            Line(
                "select 9223372036854775807 as job, 1 as token,"
                " clock_timestamp() - interval '1 minute' as lapse"
            ),
        ),
        (),
    ),
}
"""How the lease was lost, and the verbs that the caller had called itself: they are `already`."""

_DELETED = "completed by its caller, deleted from the history"

OWNERS_WAYS: dict[str, tuple[Sequence[Line], Sequence[str]]] = {
    _DELETED: (
        (
            ENQUEUE,
            leased(),
            verb("complete", "ok"),
            command("delete from @job_history where id = :job"),
        ),
        (),
    )
}
"""The ways that need rights on tables."""


def _cells(ways: dict[str, tuple[Sequence[Line], Sequence[str]]]) -> Iterator[Cell]:
    for way, (arranged, repeated) in ways.items():
        for name, call in VERBS.items():
            must = "already" if name in repeated else _NOTHING.get(name, "lost")
            yield Cell(
                matrix="stale",
                row=name,
                column=way,
                lines=(*arranged, Line(ROW), Line(call, must), Line(ROW, ":row")),
                promise=ONE_OWNER,
                group=way,
            )


STALE = Matrix(
    name="stale",
    title="A caller whose lease was lost; nothing may change",
    cells=lambda: _cells(WAYS),
)
STALE_FOR_OWNERS = Matrix(
    name="stale",
    title=STALE.title,
    cells=lambda: _cells(WAYS | OWNERS_WAYS),
)
