"""What the random calls are made of; the simplest comes first, for that is what shrinks to it."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Any

from hypothesis import strategies as st

from tenure.values import Failure, Verb

MICROSECOND = timedelta(microseconds=1)
MILLISECOND = timedelta(milliseconds=1)
SECOND = timedelta(seconds=1)
ZERO = timedelta(0)

WORKERS = ("ada", "bob", "cleo")
QUEUES = ("a", "b")

worker = st.sampled_from(["ada", "ada", *WORKERS])
max_jobs = st.integers(1, 5)
queue = st.sampled_from(QUEUES)
queues = st.sampled_from([["a"], ["a", "b"], ["b", "a"], ["b", "b"]])
pick = st.sampled_from([0, 0, 0, 0, 1, 1, 2, 3, 4, 5, 7, 11])
"""Chooses the latest of something by 0, the one before by 1; mostly one that was chosen before."""
lease_for = st.sampled_from([10 * SECOND, 100 * MILLISECOND, 30 * SECOND])
timeout = st.sampled_from([None, None, 100 * MILLISECOND, 7 * SECOND, 30 * SECOND])
delay = st.sampled_from([None, ZERO, MICROSECOND, SECOND, 61 * SECOND])
run_at = st.sampled_from([None, -SECOND, ZERO, MICROSECOND, 3 * SECOND])
"""From now on."""
json: st.SearchStrategy[Any] = st.sampled_from(
    [None, 1, "text", {"a": [1, None, True]}, [], False, {"é": "\N{SNOWMAN}"}]
)

job_options: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "payload": json,
        "priority": st.sampled_from([5, 0, 9, 4]),
        "delay": delay,
        "max_attempts": st.integers(1, 4),
        "dedup_key": st.sampled_from(["one", "two"]),
        "timeout": timeout,
        "retry_base": st.sampled_from([ZERO, None, SECOND]),
        "retry_cap": st.sampled_from([None, ZERO, 3 * SECOND]),
        "meta": json,
    },
)

failures = st.builds(
    Failure,
    error_type=st.sampled_from(["ValueError", "", "É"]),
    message=st.sampled_from(["broken", "", "line\nline"]),
    traceback=st.sampled_from([None, "line 1"]),
    retryable=st.sampled_from([True, True, True, False]),
    cancel=st.sampled_from([False, False, False, True]),
)

outcome_options: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.fixed_dictionaries({"verb": st.just(Verb.COMPLETE), "result": json}),
    st.fixed_dictionaries({"verb": st.just(Verb.FAIL), "failure": failures, "delay": delay}),
    st.fixed_dictionaries(
        {"verb": st.just(Verb.RELEASE), "started": st.booleans(), "delay": delay}
    ),
    st.fixed_dictionaries({"verb": st.just(Verb.ACKNOWLEDGE_CANCEL)}),
)


class Twist(StrEnum):
    """How what a worker shows differs from the lease that it was granted."""

    NONE = "none"
    OTHER_WORKER = "other worker"
    TOKEN_AFTER = "token after"
    TOKEN_BEFORE = "token before"
    OTHER_JOB = "other job"
    UNKNOWN_JOB = "unknown job"
    PAST = "past"
    """None: but it is any lease that was ever granted, not a current one."""


twist = st.sampled_from([Twist.NONE] * 20 + [Twist.PAST] * 2 + list(Twist))
picks = st.lists(st.tuples(pick, twist), min_size=1, max_size=4)
"""Of what is shown at once."""

step = st.sampled_from([ZERO, ZERO, ZERO, MICROSECOND, -MICROSECOND, MILLISECOND, -MILLISECOND])
"""Beside an instant at which something changes."""
passing = st.sampled_from([SECOND, MICROSECOND, 999 * MICROSECOND, 10 * SECOND, 3600 * SECOND])
