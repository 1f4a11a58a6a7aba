"""The statements that the matrices are made of, as somebody would type them into psql."""

from __future__ import annotations

from tenure.verify.cells import ANY, DONE, Kind, Line

SHORT = "100 milliseconds"
"""The shortest lease there is."""

LONG = "30 seconds"

_MINE = "array[:job]::bigint[], array[:token]::bigint[]"

VERBS = {
    "complete": "select verdict from @complete(:job, :me, :token, '\"by the caller\"')",
    "fail": "select verdict from @fail(:job, :me, :token, 'Broken', 'by the caller')",
    "fail for good": "select verdict from @fail(:job, :me, :token, 'Broken', 'by the caller',"
    " p_retryable => false)",
    "release started": "select verdict from @release(:job, :me, :token, true)",
    "release unstarted": "select verdict from @release(:job, :me, :token, false)",
    "acknowledge": "select verdict from @acknowledge_cancel(:job, :me, :token)",
    "seal": "select verdict from @seal(:job, :me, :token, '\"by the caller\"')",
    "update_owned": "select verdict from @update_owned(:job, :me, :token, '\"by the caller\"',"
    " '1 minute')",
    "renew": "select outcome || case when cancel_requested then ', cancel requested' else '' end"
    f" from @renew(:me, {_MINE}, '1 minute')",
    "guard": "select 'passes' from @guard(:job, :me, :token)",
    "settle complete": f"select verdict from @settle(:me, {_MINE}, array['complete'])",
    "settle fail": f"select verdict from @settle(:me, {_MINE}, array['fail'])",
    "settle release": f"select verdict from @settle(:me, {_MINE}, array['release'])",
    "settle acknowledge": f"select verdict from @settle(:me, {_MINE}, array['acknowledge_cancel'])",
    "reclaim": "select 'leased' from @reclaim(:job, :me, :token, :lapse, :other)",
}
"""The verbs that show a token, each with its caller's id in :me."""

UPDATE_ANYWAY = (
    "select verdict from @update_owned(:job, :me, :token, '\"by the caller\"', null, false)"
)
GUARD_ANYWAY = "select 'passes' from @guard(:job, :me, :token, false)"
SWEPT = "select 'swept' from @sweep(:broom, 10000) where job_id = :job"
CLAIM_JOB = "select 'leased' from @claim_job(:job, :other)"
CLAIM = "select 'leased' from @claim(array[:queue], :other)"
CANCEL = "select verdict from @cancel(:job)"
RETRY = "select verdict from @retry(:job, 3)"

STATE = (
    "select status"
    " || case when @cancel_requested(:job) then ', cancel requested' else '' end"
    " || case when exists (select from @lapsed(10000) as l where l.job_id = :job)"
    " then ', lapsed' else '' end"
    " from @results(array[:job]::bigint[])"
)
"""A job's status as anybody who may work can see it."""

ROW = "the job's row"
"""Stands for one of the two that follow."""

ROW_BY_VIEWS = (
    "select jsonb_build_array("
    "(select to_jsonb(j) - 'shade' from @jobs as j where j.job_id = :job),"
    " (select jsonb_agg(to_jsonb(a) order by a.token) from @attempts as a"
    " where a.job_id = :job)) as row"
)
ROW_BY_FUNCTIONS = (
    "select jsonb_build_array("
    "(select to_jsonb(r) from @results(array[:job]::bigint[]) as r),"
    " @cancel_requested(:job),"
    " (select jsonb_agg(to_jsonb(h)) from unnest(array[:me, :other]) as w(id), @held(w.id) as h"
    " where h.job_id = :job)) as row"
)

_OPTIONS = "p_retry_base => '0', p_retry_cap => '0'"

ENQUEUE = Line(
    f"select job_id as job from @enqueue(:queue, 'verify', p_max_attempts => 3, {_OPTIONS})"
)
ENQUEUE_FOR_ONE_ATTEMPT = Line(
    "select job_id as job from @enqueue(:queue, 'verify', p_max_attempts => 1)"
)
ENQUEUE_FOR_LATER = Line("select job_id as job from @enqueue(:queue, 'verify', p_delay => '1 day')")
ENQUEUE_NEIGHBOUR = Line("select job_id as job2 from @enqueue(:queue, 'verify')")

_LEASE = "select token, lease_expires_at as lapse from"


def leased(lease_for: str = f"'{LONG}'", worker: str = ":me") -> Line:
    """A claim whose token and instant are what the caller shows from now on."""
    return Line(f"{_LEASE} @claim_job(:job, {worker}, {lease_for})")


BRIEFLY = leased(f"'{SHORT}'")
LENT_ANEW = Line(f"select token as token2 from @claim_job(:job, :other, '{LONG}')")
LENT_AGAIN = Line(f"select token as token2 from @claim_job(:job, :me, '{LONG}')")
TAKEN_OVER = Line("select token as token2 from @reclaim(:job, :me, :token, :lapse, :other)")
LEASED_IN_A_BATCH = Line(f"{_LEASE} @claim(array[:queue], :me, 2, :lease) where job_id = :job")
TAKEN_OVER_BY_ME = Line(f"{_LEASE} @reclaim(:job, :other, :token, :lapse, :me, :lease)")
SWEEP = Line("select count(*) from @sweep(:broom, 10000)", ANY)
CANCELLED = Line(CANCEL, "ok")
RETRIED = Line(RETRY, "ok")


def verb(name: str, must: str) -> Line:
    return Line(VERBS[name], must)


def command(sql: str, by: str = "a") -> Line:
    """A statement without rows."""
    return Line(sql, DONE, by)


def pid(of: str) -> Line:
    """Which server process a session has; through a pooler, until its transaction ends."""
    return Line(f"select pg_backend_pid() as pid_{of}", by=of)


WAITS = Line("select :pid_a = any (pg_blocking_pids(:pid_b))", "t", "w", Kind.UNTIL)
