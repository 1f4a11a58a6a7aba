"""Why cells cannot be played in a place that is healthy otherwise, with what to do about it."""

from __future__ import annotations

from tenure.verify.cells import Cell, Mark, Result
from tenure.verify.promises import PROMISES
from tenure.verify.session import Answer
from tenure.verify.stage import Stage
from tenure.verify.waking import ASLEEP

POOLED = (
    "a pooler between transactions stands in front of this server, and LISTEN does not get"
    " through it: give workers a direct DSN; without one they poll every second"
)


class Hindrances:
    """What stands in the way of the cells that listen."""

    def __init__(self, stage: Stage) -> None:
        self._all = _deaf(stage) or _mute(stage)
        self._sleeps_on_all = not self._all and _somebody_sleeps_on_all_queues(stage)

    def of(self, cell: Cell) -> str:
        """The reason, or "" for none."""
        if not cell.listens:
            return ""
        if self._all:
            return self._all
        if self._sleeps_on_all and cell.column != ASLEEP:
            return (
                "a worker of this install sleeps on all queues just now, so every write notifies:"
                " verify a scratch schema, or stop the workers that serve more than 32 queues"
            )
        return ""


def impossible(cell: Cell, reason: str) -> Result:
    return Result(
        matrix=cell.matrix,
        row=cell.row,
        column=cell.column,
        mark=Mark.IMPOSSIBLE,
        promise=PROMISES[cell.promise],
        reason=reason,
    )


def _deaf(stage: Stage) -> str:
    """Whether another session's notification comes in while the listener is idle."""
    listening = stage.session("l")
    variables = {"barrier": stage.barrier, "word": "is anybody there?"}
    refused = listening.ask(stage.statement('listen :"barrier"', variables))
    if refused.detail:
        return f"LISTEN is refused here ({refused}): give workers a direct DSN"
    stage.session("a").ask(stage.statement('notify :"barrier", :word', variables))
    within = 10.0 if listening.direct else 2.0
    heard = listening.hear(stage.barrier, variables["word"], within)
    if heard is None:
        listening.ask(stage.statement('unlisten :"barrier"', variables))
        return POOLED
    return ""


def _mute(stage: Stage) -> str:
    """Whether the install notifies at all, as far as this role may know."""
    if float(stage.ask("select pg_notification_queue_usage()").text) > 0.5:
        return (
            "the server's notification queue is more than half full, so nothing notifies: end the"
            " session that LISTENs in an open transaction"
        )
    notify: Answer = stage.ask("select notify from @install")
    if notify.text == "f":
        return (
            "notifications are switched off in this install: update"
            f" {stage.statement('@install', {})} set notify = true"
        )
    return ""


def _somebody_sleeps_on_all_queues(stage: Stage) -> bool:
    return (
        stage.ask(
            "select exists (select from pg_locks as l"
            " where l.locktype = 'advisory' and l.objsubid = 2 and l.objid = 0"
            " and l.database = (select oid from pg_database where datname = current_database())"
            " and @channel() = 'tenure_' || l.classid)"
        ).text
        == "t"
    )
