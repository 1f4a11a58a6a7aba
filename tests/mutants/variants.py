"""The wrong variants of functions that the design names, each with the tests that tell it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One edit of one function, which leaves it plausible and wrong."""

    name: str
    file: str
    """Below sql/."""
    edit: tuple[str, str]
    """The text as it is, exactly once in the file, and what stands there instead."""
    killed_by: tuple[str, ...]
    """The tests that must fail, by their node ids; each of them tells it alone."""


_GUARD = "tests/postgres/test_guard.py"

_GUARD_UPDATE = """\
    update job as j
       set lease_expires_at = greatest(
             j.lease_expires_at,
             date_trunc('milliseconds', least(v_now + p_lease_for, j.claimed_at + j.timeout)))
     where j.id = p_job_id
       and j.token = p_token
       and j.worker_id = p_worker_id
       and not (j.cancel_requested and v_require);
"""


def _guard_locks(strength: str) -> tuple[str, str]:
    return (
        _GUARD_UPDATE,
        f"""\
    perform
       from job as j
      where j.id = p_job_id
        and j.token = p_token
        and j.worker_id = p_worker_id
        and not (j.cancel_requested and v_require)
        for {strength};
""",
    )


_GUARDS = (
    Variant(
        name="guard locks the row for key share",
        file="functions/guard.sql",
        edit=_guard_locks("key share"),
        killed_by=(
            f"{_GUARD}::test_a_second_guard_waits_for_the_first",
            f"{_GUARD}::test_whoever_would_take_a_guarded_job_over_gets_nothing_at_once",
        ),
    ),
    Variant(
        name="guard locks the row for share",
        file="functions/guard.sql",
        edit=_guard_locks("share"),
        killed_by=(f"{_GUARD}::test_a_second_guard_waits_for_the_first",),
    ),
    Variant(
        name="guard reads the row and does not lock it",
        file="functions/guard.sql",
        edit=(_GUARD_UPDATE, _guard_locks("share")[1].replace("\n        for share", "")),
        killed_by=(f"{_GUARD}::test_whoever_would_take_a_guarded_job_over_gets_nothing_at_once",),
    ),
    Variant(
        name="guard tests before its update and does not test again",
        file="functions/guard.sql",
        edit=(
            _GUARD_UPDATE,
            """\
    if exists (select from job as j
                where j.id = p_job_id
                  and j.token = p_token
                  and j.worker_id = p_worker_id
                  and not (j.cancel_requested and v_require)) then
      update job as j
         set lease_expires_at = greatest(
               j.lease_expires_at,
               date_trunc('milliseconds', least(v_now + p_lease_for, j.claimed_at + j.timeout)))
       where j.id = p_job_id;
    end if;
""",
        ),
        killed_by=(
            f"{_GUARD}::test_a_guard_waits_for_whoever_is_taking_its_job_and_is_refused_then",
        ),
    ),
    Variant(
        name="guard sets the idle limit for the session",
        file="functions/guard.sql",
        edit=(
            "ceil(extract(epoch from p_lease_for) * 1000)::text, true)",
            "ceil(extract(epoch from p_lease_for) * 1000)::text, false)",
        ),
        killed_by=(f"{_GUARD}::test_a_guarded_transaction_may_idle_no_longer_than_its_lease",),
    ),
    Variant(
        name="guard may shorten a lease",
        file="functions/guard.sql",
        edit=(
            """\
       set lease_expires_at = greatest(
             j.lease_expires_at,
             date_trunc(""",
            """\
       set lease_expires_at = greatest(
             date_trunc(""",
        ),
        killed_by=(f"{_GUARD}::test_a_guard_extends_the_lease",),
    ),
)

_FLOORS = "tests/postgres/test_floors.py"
_HELD_UP = f"{_FLOORS}::test_a_job_is_found_wherever_its_writer_was_held_up_on_the_way"
_LEFT_OPEN = f"{_FLOORS}::test_a_job_of_a_transaction_left_open_is_found_after_its_commit"


def _floors(test: str) -> str:
    return f"{_FLOORS}::{test}"


_DUE_CLOCK = """\
  lock table job in row exclusive mode;
  perform pg_current_xact_id();
  return clock();
"""

_CLOSED_THEN_MINIMUM = """\
    if not writers_ended(v_floors[3], v_closer) then
      if v_closer then
        v_floors[4] := v_now;
        perform set_config(floor_setting(p_queue), v_floors::text, false);
      end if;
      return v_floors;
    end if;

    v_floors := merged_floors(v_floors, p_row.floors, v_now);
    for v_lane in 1 .. c_lanes loop
      continue when v_floors[4 + v_lane] < 0;
      select j.next_attempt_at
        into v_first
        from job as j
       where j.status = 'queued'
         and j.queue = p_queue
         and j.priority = (v_lane - 1) / 2
         and j.solo = (v_lane % 2 = 0)
         and j.next_attempt_at >= instant(v_floors[4 + v_lane])
       order by j.next_attempt_at, j.id
       limit 1;
"""

_CLOSED_WITH_MINIMUM = """\
    v_floors := merged_floors(v_floors, p_row.floors, v_now);
    for v_lane in 1 .. c_lanes loop
      continue when v_floors[4 + v_lane] < 0;
      select f.next_attempt_at, w.ended
        into v_first, v_closer
        from (select writers_ended(v_floors[3], true) as ended offset 0) as w
        left join lateral (
             select j.next_attempt_at
               from job as j
              where j.status = 'queued'
                and j.queue = p_queue
                and j.priority = (v_lane - 1) / 2
                and j.solo = (v_lane % 2 = 0)
                and j.next_attempt_at >= instant(v_floors[4 + v_lane])
              order by j.next_attempt_at, j.id
              limit 1) as f on true;
      if not v_closer then
        return v_floors;
      end if;
"""

_DUE_CLOCKS = tuple(
    Variant(
        name=f"{verb} reads the clock without the lock and the xid",
        file=f"functions/{file}.sql",
        edit=("v_now := due_clock();", "v_now := clock();")
        if verb in ("enqueue", "retry")
        else (":= due_clock();", ":= clock();"),
        killed_by=(f"{_HELD_UP}[{verb}]",),
    )
    for verb, file in (
        ("enqueue", "enqueue"),
        ("enqueue_many", "enqueue_many"),
        ("settle", "settle_jobs"),
        ("sweep", "sweep_jobs"),
        ("retry", "retry"),
    )
)

_FLOOR_PROOF = (
    Variant(
        name="the writer's clock is read before its xid",
        file="functions/due_clock.sql",
        edit=(
            f"begin\n{_DUE_CLOCK}",
            """\
declare
  v_now timestamptz;
begin
  lock table job in row exclusive mode;
  v_now := clock();
  perform pg_current_xact_id();
  return v_now;
""",
        ),
        killed_by=(f"{_HELD_UP}[enqueue]",),
    ),
    Variant(
        name="the writer takes no table lock",
        file="functions/due_clock.sql",
        edit=(_DUE_CLOCK, "  perform pg_current_xact_id();\n  return clock();\n"),
        killed_by=(f"{_HELD_UP}[enqueue]",),
    ),
    Variant(
        name="T is noted in a transaction that had an xid already",
        file="functions/claim.sql",
        edit=(
            "v_fresh  boolean := pg_current_xact_id_if_assigned() is null;",
            "v_fresh  boolean := true;",
        ),
        killed_by=(f"{_FLOORS}::test_a_claim_in_a_transaction_that_has_written_proves_nothing",),
    ),
    Variant(
        name="T is read after the claim's xid was assigned",
        file="functions/claim.sql",
        edit=("case when v_fresh then v_t end", "case when v_fresh then v_now end"),
        killed_by=(
            _floors(
                "test_a_job_is_found_wherever_a_claim_was_held_up_when_its_writer_came[before]"
            ),
        ),
    ),
    Variant(
        name="one reading of the clock dates the floor and the claim",
        file="functions/claim.sql",
        edit=("  v_now := clock();\n", "  v_now := v_t;\n"),
        killed_by=(f"{_FLOORS}::test_a_claim_is_dated_after_the_instant_that_its_floor_rests_on",),
    ),
    Variant(
        name="the floor's horizon is the snapshot's xmax",
        file="functions/lane_floors.sql",
        edit=(
            "v_floors[3] := pg_current_xact_id()::text::bigint;",
            "v_floors[3] := pg_snapshot_xmax(pg_current_snapshot())::text::bigint;",
        ),
        killed_by=(f"{_LEFT_OPEN}[enqueue]",),
    ),
    Variant(
        name="the floor has no horizon",
        file="functions/lane_floors.sql",
        edit=("v_floors[3] := pg_current_xact_id()::text::bigint;", "v_floors[3] := 0;"),
        killed_by=(f"{_LEFT_OPEN}[release]",),
    ),
    Variant(
        name="the first queued job is read in the statement that asks for writers",
        file="functions/lane_floors.sql",
        edit=(_CLOSED_THEN_MINIMUM, _CLOSED_WITH_MINIMUM),
        killed_by=(
            f"{_FLOORS}::test_a_job_is_found_when_its_writer_ends_while_a_claim_looks_for_writers",
        ),
    ),
    Variant(
        name="a closer look at the writers sees none",
        file="functions/writers_ended.sql",
        edit=("and writes.mode = 'RowExclusiveLock'", "and writes.mode = 'ExclusiveLock'"),
        killed_by=(f"{_LEFT_OPEN}[fail]",),
    ),
    Variant(
        name="the floor is T, whatever waits before it",
        file="functions/lane_floors.sql",
        edit=("least(v_floors[2], microseconds(v_first))", "v_floors[2]"),
        killed_by=(
            f"{_FLOORS}::test_the_floor_stays_at_the_first_job_that_waits_though_somebody_holds_it",
        ),
    ),
)

_HINTS = "tests/postgres/test_floor_hints.py"

_FLOOR_HINTS = (
    Variant(
        name="floors are noted under a short hash of the queue",
        file="functions/floor_setting.sql",
        edit=("encode(convert_to(p_queue, 'UTF8'), 'hex')", "abs(hashtext(p_queue)::bigint)"),
        killed_by=(f"{_HINTS}::test_queues_whose_names_hash_alike_do_not_share_floors",),
    ),
    Variant(
        name="a floor in the future is believed",
        file="functions/lane_floors.sql",
        edit=("or v_now < any (v_floors[4:24])", "or v_now < v_floors[4]"),
        killed_by=(f"{_HINTS}::test_a_note_that_cannot_be_right_is_not_believed",),
    ),
    Variant(
        name="floors outlive their generation",
        file="functions/lane_floors.sql",
        edit=("or v_floors[1] <> v_generation or", "or"),
        killed_by=(f"{_HINTS}::test_every_session_forgets_the_floors_of_a_queue_with_a_straggler",),
    ),
    Variant(
        name="a published floor in the future is believed",
        file="functions/merged_floors.sql",
        edit=(" and p_published[2 * v_pair] <= p_now then", " then"),
        killed_by=(f"{_HINTS}::test_a_published_floor_in_the_future_is_not_believed",),
    ),
    Variant(
        name="publishing floors waits for the queue's row",
        file="functions/publish_floors.sql",
        edit=("       for no key update skip locked\n", "       for no key update\n"),
        killed_by=(f"{_HINTS}::test_a_claim_does_not_wait_to_publish_floors",),
    ),
)

_WAKEUPS = "tests/postgres/test_wakeups.py"
_GAPS = "tests/postgres/test_sleep_gaps.py"
_NOT_SETTLED = (
    f"{_GAPS}::test_nothing_is_settled_before_a_writer_that_looked_for_sleepers_has_ended"
)

_SLEEP = (
    Variant(
        name="the sleeper's horizon is the snapshot's xmax",
        file="functions/show_keys.sql",
        edit=(
            "return pg_current_xact_id()::text::bigint;",
            "return pg_snapshot_xmax(pg_current_snapshot())::text::bigint;",
        ),
        killed_by=(f"{_NOT_SETTLED}[enqueue]",),
    ),
    Variant(
        name="the sleeper has no horizon",
        file="functions/show_keys.sql",
        edit=("return pg_current_xact_id()::text::bigint;", "return 0;"),
        killed_by=(f"{_NOT_SETTLED}[enqueue]",),
    ),
    Variant(
        name="the sleeper's horizon is noted before its keys are taken",
        file="functions/show_keys.sql",
        edit=("  perform sleep_end();\n  foreach", "  perform pg_current_xact_id();\n  foreach"),
        killed_by=(
            f"{_GAPS}::test_a_writer_that_begins_while_a_sleeper_takes_its_keys_is_waited_for",
        ),
    ),
    Variant(
        name="sleep_begin keeps the keys of an earlier sleep",
        file="functions/show_keys.sql",
        edit=("  perform sleep_end();\n  foreach", "  foreach"),
        killed_by=(f"{_WAKEUPS}::test_a_worker_that_is_awake_again_is_not_notified",),
    ),
    Variant(
        name="resume is no writer for a sleeper to wait for",
        file="functions/resume.sql",
        edit=("  perform due_clock();\n", ""),
        killed_by=(f"{_NOT_SETTLED}[resume]",),
    ),
    Variant(
        name="producers do not look for sleepers on many queues",
        file="functions/notify_sleepers.sql",
        edit=(" or somebody_sleeps(0)", ""),
        killed_by=(f"{_WAKEUPS}::test_a_sleeper_on_many_queues_shows_one_key_for_all",),
    ),
    Variant(
        name="a producer keeps the lock by which it looked",
        file="functions/somebody_sleeps.sql",
        edit=("then not pg_advisory_unlock(v_install, p_key)", "then false"),
        killed_by=(f"{_WAKEUPS}::test_a_sleeper_is_notified_once_by[enqueue]",),
    ),
    Variant(
        name="next_due counts paused queues",
        file="functions/next_due.sql",
        edit=("    continue when v_row.paused_at is not null;\n", ""),
        killed_by=(f"{_GAPS}::test_the_next_due_time_is_the_earliest_of_all_lanes",),
    ),
)

_PLANS = "tests/postgres/test_plans.py"
_FLAT = f"{_PLANS}::test_a_claim_costs_the_same_with_ten_times_as_many"

_COSTS = (
    Variant(
        name="a claim walks over the dead rows of its lane",
        file="functions/claim.sql",
        edit=(
            "and c.next_attempt_at >= instant(v_floors[4 + v_lane])\n",
            "and c.next_attempt_at >= '-infinity'\n",
        ),
        killed_by=(f"{_FLAT}[dead rows under a snapshot]",),
    ),
    Variant(
        name="no closer look at the writers is taken",
        file="functions/lane_floors.sql",
        edit=("writers_ended(v_floors[3], v_closer)", "writers_ended(v_floors[3], false)"),
        killed_by=(f"{_FLAT}[dead rows under a write transaction]",),
    ),
    Variant(
        name="claim_job may scan all that is queued",
        file="functions/claim_job.sql",
        edit=("and c.status::text = 'queued'", "and c.status = 'queued'"),
        killed_by=(f"{_PLANS}::test_the_plans_are_the_same_whatever_the_statistics_of[claim_job]",),
    ),
)

_SWEEPS = "tests/postgres/test_sweep_races.py"
_BATCHES = "tests/postgres/test_batches.py"

_CHOICE = """\
         where j.ctid = any (array(
                 select c.ctid
                   from job as c
                  where c.status = 'queued'
                    and c.queue = v_queue
                    and c.priority = (v_lane - 1) / 2
                    and c.solo = (v_lane % 2 = 0)
                    and c.next_attempt_at >= instant(v_floors[4 + v_lane])
                    and c.next_attempt_at <= v_now
                  order by c.next_attempt_at, c.id
                  limit v_take
                    for no key update skip locked))
"""

_SWEEP_QUEUED = """\
      from decided as d
     where j.id = d.id
       and d.status = 'queued'
"""

_ROWS = (
    Variant(
        name="a claim chooses by IN and may choose again for each row",
        file="functions/claim.sql",
        edit=(_CHOICE, _CHOICE.replace("= any (array(", "in (").replace("locked))", "locked)")),
        killed_by=("tests/postgres/test_extremes.py::test_a_limit_is_kept_under_the_worst_plans",),
    ),
    Variant(
        name="a sweep waits for rows that somebody holds",
        file="functions/sweep_jobs.sql",
        edit=("       for update skip locked\n", "       for update\n"),
        killed_by=(f"{_SWEEPS}::test_a_sweep_passes_over_a_job_that_somebody_is_deciding_about",),
    ),
    Variant(
        name="a sweep queues every row again, also those it ends",
        file="functions/sweep_jobs.sql",
        edit=(_SWEEP_QUEUED, _SWEEP_QUEUED.replace("       and d.status = 'queued'\n", "")),
        killed_by=(
            f"{_SWEEPS}::test_a_batch_of_all_branches_ends_each_row_once_and_exactly_as_decided",
        ),
    ),
    Variant(
        name="a sweep notes its attempts under the new token",
        file="functions/sweep_jobs.sql",
        edit=(
            "    select d.id, d.token, d.claimed_at, v_now, d.attempt, d.worker_id, 'sweep'",
            "    select d.id, d.token + 1, d.claimed_at, v_now, d.attempt, d.worker_id, 'sweep'",
        ),
        killed_by=(
            f"{_SWEEPS}::test_a_batch_of_all_branches_ends_each_row_once_and_exactly_as_decided",
        ),
    ),
    Variant(
        name="one bad row fails the whole sweep",
        file="functions/sweep.sql",
        edit=(
            "  exception when others then\n    for v_id",
            "  exception when no_data_found then\n    for v_id",
        ),
        killed_by=(
            f"{_SWEEPS}::test_a_row_that_cannot_be_decided_never_fails_the_rest_and_is_named",
        ),
    ),
    Variant(
        name="a batch takes its keys in the order given",
        file="functions/enqueue_many.sql",
        edit=(
            "       order by n.queue, n.dedup_key nulls first, n.ordinality\n          on conflict",
            "          on conflict",
        ),
        killed_by=(f"{_BATCHES}::test_a_batch_that_waits_for_a_key_holds_no_later_one",),
    ),
)

VARIANTS: tuple[Variant, ...] = (
    *_GUARDS,
    *_DUE_CLOCKS,
    *_FLOOR_PROOF,
    *_FLOOR_HINTS,
    *_SLEEP,
    *_COSTS,
    *_ROWS,
)
