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

VARIANTS: tuple[Variant, ...] = _GUARDS
