"""What an argument may be, checked alike for both backends before anything is written."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256

from tenure.errors import InvalidArgument

NAME_BYTES = 128
WORKER_ID_BYTES = 256
DEDUP_KEY_BYTES = 512
"""A longer key is stored as its SHA-256."""
DEDUP_KEY_MAX_BYTES = 8 * 1024
PAYLOAD_BYTES = RESULT_BYTES = 1024 * 1024
PROGRESS_BYTES = META_BYTES = 16 * 1024
ERROR_TYPE_BYTES = 256
MESSAGE_BYTES = 8 * 1024
TRACEBACK_BYTES = 32 * 1024
LAST_ERROR_BYTES = 8 * 1024

MAX_PRIORITY = 9
MAX_ATTEMPTS = 1_000
MAX_QUEUES = 1_000
MAX_LEASES = 1_000
"""For one claim, renew or settle."""
MAX_NEW_JOBS = 10_000
MAX_LAPSED = 10_000
MAX_BIGINT = 2**63 - 1

TEN_YEARS = timedelta(days=3653)
SHORTEST_LEASE = timedelta(milliseconds=100)
LONGEST_LEASE = timedelta(hours=24)
SHORTEST_TIMEOUT = timedelta(milliseconds=100)

RETRY_BASE = timedelta(seconds=5)
RETRY_CAP = timedelta(hours=1)
ATTEMPTS_KEPT = 20
POLL_FLOOR = timedelta(seconds=30)


def check_name(value: str, what: str, max_bytes: int = NAME_BYTES) -> str:
    """A queue, a kind or, with `max_bytes` of its own, a worker id."""
    if (
        type(value) is str
        and 0 < len(value) <= max_bytes
        and value.isascii()
        and value.isprintable()
        and " " not in (value[0], value[-1])
    ):
        return value  # as nearly all are
    data = _check_text(value, what, max_bytes)
    if not data:
        raise InvalidArgument(f"{what} is empty", hint=f"1 to {max_bytes} bytes")
    if value != value.strip():
        raise InvalidArgument(f"{what} has a blank at its edge: {short(value)}", hint="strip it")
    if any(unicodedata.category(c) == "Cc" for c in value):
        raise InvalidArgument(
            f"{what} has a control character: {short(value)}", hint="use printable characters"
        )
    return value


def check_worker_id(value: str, what: str = "worker_id") -> str:
    return check_name(value, what, WORKER_ID_BYTES)


def check_queues(queues: Sequence[str]) -> list[str]:
    """The names in the order given, without repeats."""
    if isinstance(queues, str):
        raise InvalidArgument(
            f"queues is one str: {short(queues)}", hint=f"pass a list: [{short(queues)}]"
        )
    names = list(dict.fromkeys(check_name(q, f"queues[{i}]") for i, q in enumerate(queues)))
    check_length(names, "queues", MAX_QUEUES)
    return names


def check_dedup_key(value: str | None, what: str = "dedup_key") -> str | None:
    if value is None:
        return None
    data = _check_text(value, what, DEDUP_KEY_MAX_BYTES)
    if not data:
        raise InvalidArgument(f"{what} is empty", hint="pass None for a job without a key")
    if "\0" in value:
        raise InvalidArgument(f"{what} has a NUL: {short(value)}", hint="leave it out")
    return value


def stored_dedup_key(key: str | None) -> str | None:
    """The key as the tables keep it."""
    if key is None:
        return None
    data = key.encode()
    return key if len(data) <= DEDUP_KEY_BYTES else "sha256:" + sha256(data).hexdigest()


def check_int(value: int, what: str, least: int, most: int) -> int:
    if type(value) is int and least <= value <= most:
        return value
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidArgument(f"{what} is not an int: {short(value)}", hint=f"{least} to {most}")
    if not least <= value <= most:
        raise InvalidArgument(f"{what} is out of range: {short(value)}", hint=f"{least} to {most}")
    return value


def check_bool(value: bool, what: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidArgument(f"{what} is not a bool: {short(value)}", hint="pass True or False")
    return value


def check_job_id(value: int, what: str = "job_id") -> int:
    return check_int(value, what, -MAX_BIGINT, MAX_BIGINT)


def check_token(value: int, what: str = "token") -> int:
    return check_int(value, what, -MAX_BIGINT, MAX_BIGINT)


def check_length(values: object, what: str, most: int) -> None:
    if not isinstance(values, Collection) or isinstance(values, str):
        raise InvalidArgument(f"{what} is not a list: {short(values)}", hint="pass a list")
    if not 1 <= len(values) <= most:
        raise InvalidArgument(f"{what} has {len(values)} members", hint=f"1 to {most}")


def check_interval(
    value: timedelta, what: str, least: timedelta = timedelta(0), most: timedelta = TEN_YEARS
) -> timedelta:
    if not isinstance(value, timedelta):
        raise InvalidArgument(
            f"{what} is not a timedelta: {short(value)}", hint="such as timedelta(seconds=30)"
        )
    if not least <= value <= most:
        raise InvalidArgument(
            f"{what} is out of range: {_seconds(value)}",
            hint=f"{_seconds(least)} to {_seconds(most)}",
        )
    return value


def check_lease_for(value: timedelta) -> timedelta:
    return check_interval(value, "lease_for", SHORTEST_LEASE, LONGEST_LEASE)


def check_delay(value: timedelta | None, what: str = "delay") -> timedelta | None:
    return None if value is None else check_interval(value, what)


def check_timeout(value: timedelta | None, what: str = "timeout") -> timedelta | None:
    return None if value is None else check_interval(value, what, SHORTEST_TIMEOUT)


def check_instant(value: datetime, what: str) -> datetime:
    """An aware moment, as UTC."""
    if not isinstance(value, datetime):
        raise InvalidArgument(f"{what} is not a datetime: {short(value)}", hint="pass an aware one")
    if value.utcoffset() is None:
        raise InvalidArgument(
            f"{what} has no time zone: {value.isoformat()}", hint="such as datetime.now(UTC)"
        )
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise InvalidArgument(
            f"{what} is out of range: {value.isoformat()}", hint="the years 1 to 9999 in UTC"
        ) from None


def short(value: object) -> str:
    """`value` as a message may show it."""
    if isinstance(value, str):
        return repr(value) if len(value) <= 40 else repr(value[:40]) + "…"
    if isinstance(value, int) and abs(value) > 10**40:  # its repr could be refused for its length
        return "a very large int"
    if isinstance(value, (int, float, type(None))):
        return repr(value)
    return f"a {type(value).__qualname__}"


def _check_text(value: str, what: str, max_bytes: int) -> bytes:
    if not isinstance(value, str):
        raise InvalidArgument(f"{what} is not a str: {short(value)}", hint="pass a str")
    try:
        data = value.encode()
    except UnicodeEncodeError:
        raise InvalidArgument(
            f"{what} has a lone surrogate: {short(value)}", hint="leave it out"
        ) from None
    if len(data) > max_bytes:
        raise InvalidArgument(
            f"{what} is {len(data)} bytes: {short(value)}", hint=f"at most {max_bytes} bytes"
        )
    return data


def _seconds(value: timedelta) -> str:
    return f"{value.total_seconds():.15g} s"
