"""Jobs as both databases and the model can spell them, to be compared after each step."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tests.model.world import Job, World

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)

Row = tuple[str | None, ...]

COLUMNS = (
    "id",
    "status",
    "attempt",
    "max_attempts",
    "token",
    "worker_id",
    "cancel_requested",
    "sealed",
    "buffered",
    "solo",
    "reclaimed",
    "next_attempt_at",
    "lease_expires_at",
    "claimed_at",
    "finished_at",
    "result",
    "progress",
    "last_error",
    "attempts",
)
DUE = COLUMNS.index("next_attempt_at")

# Two rows of one id are a job that is in both places.
POSTGRES = """
select j.*,
       (select string_agg(concat_ws(' ', a.token, a.attempt, a.worker_id, a.verb, a.outcome), ', '
                          order by a.token)
          from tenure.attempt as a
         where a.job_id = j.id),
       (select count(*) from application as w where w.queue = $2)
  from (select id, status::text, attempt, max_attempts, token, worker_id,
               cancel_requested::int, (sealed_at is not null)::int, buffered::int, solo::int,
               reclaimed::int,
               case when status = 'queued'
                    then (extract(epoch from next_attempt_at) * 1000000)::bigint
               end,
               (extract(epoch from lease_expires_at) * 1000000)::bigint,
               (extract(epoch from claimed_at) * 1000000)::bigint,
               null::bigint, result::text, progress::text, last_error
          from tenure.job
         where id = any ($1::bigint[])
         union all
        select id, status::text, attempt, max_attempts, token, worker_id, 0, 0, 0, 0, 0, null,
               null, (extract(epoch from claimed_at) * 1000000)::bigint,
               (extract(epoch from finished_at) * 1000000)::bigint, result::text, progress::text,
               last_error
          from tenure.job_history
         where id = any ($1::bigint[])) as j
 order by j.id
"""

SQLITE = """
select j.*,
       (select group_concat(past, ', ')
          from (select token || ' ' || attempt || ' ' || worker_id || ' ' || verb || ' '
                         || outcome as past
                  from tenure_attempt
                 where job_id = j.id
                 order by token)),
       (select count(*) from application where queue = :queue)
  from (select id, status, attempt, max_attempts, token, worker_id, cancel_requested,
               sealed_at is not null, buffered, solo, reclaimed,
               iif(status = 'queued', next_attempt_at, null), lease_expires_at, claimed_at, null,
               result, progress, last_error
          from tenure_job
         where id in (select value from json_each(:job_ids))
         union all
        select id, status, attempt, max_attempts, token, worker_id, 0, 0, 0, 0, 0, null, null,
               claimed_at, finished_at, result, progress, last_error
          from tenure_history
         where id in (select value from json_each(:job_ids))) as j
 order by j.id
"""


def micros(moment: datetime | None) -> str | None:
    return None if moment is None else str((moment - EPOCH) // MICROSECOND)


def moment(text: str | None) -> datetime | None:
    return None if text is None else EPOCH + int(text) * MICROSECOND


def row(job: Job) -> Row:
    """A job of the model."""
    return (
        str(job.job_id),
        str(job.status),
        str(job.attempt),
        str(job.max_attempts),
        str(job.token),
        job.worker_id,
        _flag(job.cancel_requested),
        _flag(job.sealed_at is not None),
        _flag(job.buffered),
        _flag(job.solo),
        _flag(job.reclaimed),
        micros(job.next_attempt_at),
        micros(job.lease_expires_at),
        micros(job.claimed_at),
        micros(job.finished_at),
        None if job.result is None else str(job.result),
        None if job.progress is None else str(job.progress),
        job.last_error,
        ", ".join(f"{a.token} {a.attempt} {a.worker_id} {a.verb} {a.outcome}" for a in job.attempts)
        or None,
    )


def _flag(on: bool) -> str:
    return "1" if on else "0"


def differences(world: World, written: int, found: list[Row]) -> list[str]:
    """Where the committed jobs are not those of the model; a line for each."""
    wrong = []
    mine = {str(job_id): row(job) for job_id, job in world.jobs.items()}
    seen: set[str | None] = set()
    for real in found:
        *columns, rows_written = real
        expected = mine.get(str(real[0]))
        if real[0] in seen:
            wrong.append(f"job {real[0]} is in two places")
        elif expected is None:
            wrong.append(f"there is a job {real[0]}, of which the model knows nothing")
        elif tuple(columns) != expected:
            wrong += [
                f"job {real[0]}: {name} is {there}, the model says {said}"
                for name, there, said in zip(COLUMNS, columns, expected, strict=True)
                if there != said
            ]
        if rows_written != str(written):
            wrong.append(
                f"{rows_written} rows of the application are committed, the model says {written}"
            )
        seen.add(real[0])
    wrong += [f"job {job_id} is nowhere" for job_id in mine.keys() - seen]
    return wrong
