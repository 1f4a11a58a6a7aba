"""Removes what a run made, as far as its rights go."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from tenure.verify.session import literal
from tenure.verify.stage import Stage

_AT_ONCE = 500

_CANCEL = (
    "select count(*) from (select r.job_id from @results({jobs}) as r"
    " where r.status in ('queued', 'running')) as live, @cancel(live.job_id)"
)
_SETTLE = (
    "select count(*) from (select w.id, array_agg(h.job_id) as jobs, array_agg(h.token) as tokens"
    " from unnest({workers}) as w(id), @held(w.id) as h group by w.id) as mine,"
    " @settle(mine.id, mine.jobs, mine.tokens,"
    " array_fill('{verb}'::text, array[cardinality(mine.jobs)]))"
)
_UNNOTED = "select @next_eligible_job_id({queues}) as job"
"""A job whose enqueue was interrupted before its id was known."""
_LIVE = (
    "select count(*) filter (where status in ('queued', 'running')) as live, count(*) as kept"
    " from @results({jobs})"
)
_MAY_DELETE = (
    "select has_table_privilege('@job_history', 'delete')"
    " and has_table_privilege('@attempt', 'delete') and has_table_privilege('@queue', 'delete')"
)
_DELETE = (
    "delete from @job_history where id = any ({jobs})",
    "delete from @attempt where job_id = any ({jobs})",
    "delete from @queue where queue = any ({queues})",
)
STATEMENTS = (_CANCEL, _UNNOTED, _SETTLE, _LIVE)
"""Those that need rights on functions alone."""


def dismantle(stage: Stage) -> str:
    """End every job of the run through the functions, and delete what rights allow.

    What stays, in a sentence; "" for nothing.
    """
    stage.reset()
    workers = _array(stage.workers.values())
    for jobs in _portions(stage):
        stage.ask(_CANCEL.format(jobs=jobs))
    while (found := stage.ask(_UNNOTED.format(queues=_array(stage.queues)))).text.isdecimal():
        stage.note(found)
        stage.ask(_CANCEL.format(jobs=f"array[{found.text}]::bigint[]"))
    for verb in ("acknowledge_cancel", "complete"):  # a sealed job can only complete
        stage.ask(_SETTLE.format(workers=workers, verb=verb))
    if stage.ask(_MAY_DELETE).text == "t":
        for jobs in _portions(stage):
            for statement in _DELETE:
                stage.ask(statement.format(jobs=jobs, queues=_array(stage.queues)))
    return _left(stage)


def _left(stage: Stage) -> str:
    live = kept = 0
    for jobs in _portions(stage):
        row = stage.ask(_LIVE.format(jobs=jobs)).row or {}
        live += int(row.get("live") or 0)
        kept += int(row.get("kept") or 0)
    where = f"in queues {stage.name}-1 to {stage.name}-{len(stage.queues)} of {stage.schema}"
    if live:
        return f"{live} live and {kept - live} finished jobs {where} could not be removed"
    return f"{kept} finished jobs stay {where}, as long as history is kept" if kept else ""


def _portions(stage: Stage) -> Iterator[str]:
    jobs = iter(sorted(stage.jobs))
    while portion := [*itertools.islice(jobs, _AT_ONCE)]:
        yield f"'{{{','.join(map(str, portion))}}}'::bigint[]"


def _array(texts: Iterable[str]) -> str:
    return f"array[{', '.join(map(literal, texts))}]::text[]"
