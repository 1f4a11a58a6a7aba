"""Predicates that no test can miss, each with the reason."""

from __future__ import annotations

_ATTEMPT_0 = "a job without an attempt is queued: a claim spends one, and a refund ends the lease"

EQUIVALENTS: dict[str, str] = {
    "postgres check_json: and v_bytes >= 130": "spares a search: nothing so deep is so short",
    "sqlite sqlite_records.QUEUES: and status = 'queued'": _ATTEMPT_0,
    "sqlite sqlite_records.QUEUES: and status = 'queued' (2)": _ATTEMPT_0,
    "sqlite sqlite_schema.INSTALLED: and type = 'table'": "nothing else has the name of the table",
}
