"""The audit's tables and triggers in an SQLite file."""

from __future__ import annotations

_TABLES = """
create table audit_version (
  seq integer primary key autoincrement, xid integer, at integer not null, op text not null,
  place text not null, job_id integer not null, status text not null, token integer not null,
  worker_id text, attempt integer not null, max_attempts integer not null,
  buffered integer not null default 0, solo integer not null default 0,
  cancel_requested integer not null default 0, sealed integer not null default 0,
  claimed_at integer, lease_expires_at integer, timeout integer, progress integer
) strict;
create table audit_effect (
  job_id integer not null, token integer not null, worker_id text not null,
  child_id integer not null, xid integer
) strict;
"""

_COMMON = "job_id, status, token, worker_id, attempt, max_attempts, claimed_at, timeout, progress"
_LIVE = "buffered, solo, cancel_requested, lease_expires_at, sealed"
_NOW = "cast((julianday('now') - 2440587.5) * 86400000 as integer) * 1000"


def statements() -> str:
    """What SQLite's `executescript` runs on a file in which tenure is installed."""
    return _TABLES + "".join(
        _trigger(table, place, op)
        for table, place in (("tenure_job", "job"), ("tenure_history", "history"))
        for op in ("insert", "update", "delete")
    )


def _trigger(table: str, place: str, op: str) -> str:
    row = "old" if op == "delete" else "new"
    columns, values = _COMMON, f"{row}.id, " + _of(row, _COMMON.removeprefix("job_id, "))
    if place == "job":
        columns = f"{_COMMON}, {_LIVE}"
        values += ", " + _of(row, _LIVE.removesuffix(", sealed"))
        values += f", {row}.sealed_at is not null"
    return f"""
create trigger audit_{table}_{op} after {op} on {table} begin
  insert into audit_version (at, op, place, {columns})
  values ({_NOW}, '{op}', '{place}', {values});
end;
"""


def _of(row: str, columns: str) -> str:
    return ", ".join(
        f"cast({row}.progress as integer)" if name == "progress" else f"{row}.{name}"
        for name in columns.split(", ")
    )
