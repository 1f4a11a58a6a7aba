"""The wake-up matrix: which writes notify a listener, with and without a sleeper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tenure.verify.cells import ANY, LAPSE, Cell, Kind, Line, Matrix
from tenure.verify.promises import CANCEL_HOLDS, ONLY_SLEEPERS, TRANSACTIONS, WAKE_UP
from tenure.verify.words import (
    CANCELLED,
    ENQUEUE,
    ENQUEUE_NEIGHBOUR,
    LEASED_IN_A_BATCH,
    RETRIED,
    SWEEP,
    VERBS,
    command,
    leased,
    verb,
)

WAKE = "a wake-up"
CANCEL = "the cancellation"
SILENCE = "nothing"

ASLEEP = "a sleeper on the queue"
ELSEWHERE = "a sleeper on another queue"
NOBODY = "nobody sleeps"

SLEEPERS = {
    ASLEEP: Line("select @sleep_begin(array[:queue]) is not null", "t", "l"),
    ELSEWHERE: Line("select @sleep_begin(array[:queue || ', another']) is not null", "t", "l"),
    NOBODY: Line("select @sleep_end() is null", "f", "l"),
}
"""What the listener, session l, did last before the write; sleep_end lets go of its locks."""

_LISTEN: Sequence[Line] = (
    Line("select @queue_key(:queue) as key, @channel() as channel", by="l"),
    command('listen :"channel"', "l"),
    command('listen :"barrier"', "l"),
)


def hears(what: str) -> Line:
    """What came up to now, in the order of the commits.

    The notification that is sent here, on a channel of its own, comes after all of them.
    """
    return Line('notify :"barrier", :word', what, kind=Kind.HEAR)


_ENQUEUE = "select job_id as job from @enqueue(:queue, 'verify'"
_LEASED = (ENQUEUE, leased())

WRITES: dict[str, tuple[Sequence[Line], Sequence[Line], str]] = {
    "enqueue": ((), (ENQUEUE,), WAKE),
    "enqueue, due in 1 s": ((), (Line(f"{_ENQUEUE}, p_delay => '1 second')"),), WAKE),
    "enqueue, due in an hour": ((), (Line(f"{_ENQUEUE}, p_delay => '1 hour')"),), SILENCE),
    "enqueue, notify => false": ((), (Line(f"{_ENQUEUE}, p_notify => false)"),), SILENCE),
    "enqueue_many": (
        (),
        (
            Line(
                "select job_id as job from @enqueue_many("
                "jsonb_build_array(jsonb_build_object('queue', :queue, 'kind', 'verify')))"
            ),
        ),
        WAKE,
    ),
    "wake": ((), (Line("select @wake(array[:queue]) is null", "f"),), WAKE),
    "fail, due at once": (
        _LEASED,
        (
            Line(
                "select verdict from @fail(:job, :me, :token, 'Broken', p_delay => '0')",
                "ok",
            ),
        ),
        WAKE,
    ),
    "fail for good": (_LEASED, (verb("fail for good", "ok"),), SILENCE),
    "release": (_LEASED, (verb("release unstarted", "ok"),), WAKE),
    "settle release": (_LEASED, (verb("settle release", "ok"),), WAKE),
    "sweep of a lapsed batch": (
        (ENQUEUE, ENQUEUE_NEIGHBOUR, LEASED_IN_A_BATCH, LAPSE),
        (SWEEP,),
        WAKE,
    ),
    "retry": ((*_LEASED, verb("fail for good", "ok")), (RETRIED,), WAKE),
    "resume": (
        (Line("select verdict from @pause(:queue)", "ok"), ENQUEUE),
        (Line("select verdict from @resume(:queue)", "ok"),),
        WAKE,
    ),
    "renew": (_LEASED, (verb("renew", "renewed"),), SILENCE),
    "update_owned": (_LEASED, (verb("update_owned", "ok"),), SILENCE),
    "seal": (_LEASED, (verb("seal", "ok"),), SILENCE),
    "complete": (_LEASED, (verb("complete", "ok"),), SILENCE),
    "settle complete": (_LEASED, (Line(VERBS["settle complete"], "ok"),), SILENCE),
}
"""By name: what comes before the listener is told to sleep, the write, and what it brings."""

TRANSACTIONS_WRITES: dict[str, tuple[Sequence[Line], str]] = {
    "enqueue, rolled back": ((command("begin"), ENQUEUE, command("rollback")), SILENCE),
    "enqueue, its transaction open": ((command("begin", "b"), ENQUEUE._replace(by="b")), SILENCE),
    "enqueue, committed at last": (
        (
            command("begin", "b"),
            ENQUEUE._replace(by="b"),
            hears(SILENCE),
            command("commit", "b"),
        ),
        WAKE,
    ),
}


def _cell(name: str, sleeper: str, lines: Sequence[Line], what: str, promise: str) -> Cell:
    return Cell(
        matrix="wake",
        row=name,
        column=sleeper,
        lines=(*_LISTEN, *lines, hears(what)),
        promise=promise,
        variables={"lease": "100 milliseconds"},
        listens=True,
    )


def _cells() -> Iterator[Cell]:
    for sleeper, sleeps in SLEEPERS.items():
        for name, (before, write, brings) in WRITES.items():
            what = brings if sleeper == ASLEEP else SILENCE
            promise = WAKE_UP if what == WAKE else ONLY_SLEEPERS
            yield _cell(name, sleeper, (*before, sleeps, hears(ANY), *write), what, promise)
        for name, (lines, brings) in TRANSACTIONS_WRITES.items():
            what = brings if sleeper == ASLEEP else SILENCE
            yield _cell(name, sleeper, (sleeps, *lines), what, TRANSACTIONS)
        yield _cell(
            "cancel of a running job",
            sleeper,
            (*_LEASED, sleeps, hears(ANY), CANCELLED),
            CANCEL,
            CANCEL_HOLDS,
        )


WAKE_MATRIX = Matrix(
    name="wake", title="A listener: what a write of another session brings", cells=_cells
)
