"""Random arguments: what a caller would pass, what exists, and what nobody should."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from tests.fuzz.literals import Sql

NAMES = [
    "q", "paused", "mail", "ada", "bob", "", " ", " q", "q ", "it's", '"q"', "a\tb", "a\nb",
    "\x01", "\x7f", "\x9f", "\u00a0q", "q\u3000", "\u2028", "\u200b", "\ufeff", "Grüße",
    "\U0001f44b", "%", "%s %I", "$1", "a\\b", "{}", "{a,b}", "null", "NULL",
    "'; drop table tenure.job; --", "x" * 128, "x" * 129, "é" * 64, "é" * 64 + "x", "w" * 256,
    "w" * 257, "y" * 5000, Sql("repeat('€', 40000)"), Sql("repeat('z', 1048577)"), "public", "none",
    "current_user", "pg_monitor", "produce", "work", "operate", "observe", None,
]  # fmt: skip
INTEGERS = [
    0, 1, 1, 2, 3, 5, 9, 10, 20, 100, 1000, 1001, 10_000, 10_001, -1, -2, 2**31 - 1, -(2**31),
    None,
]  # fmt: skip
BIGINTS = [*INTEGERS, 2**31, 2**32, 2**53, 2**62, 2**63 - 1, -(2**63) + 1]
INTERVALS = [
    "0", "1 microsecond", "-1 microsecond", "99.9 ms", "100 ms", "100 ms", "1 s", "30 s", "30 s",
    "24 hours", "1 day", "24 hours 1 microsecond", "-1 s", "3653 days", "3653 days 1 microsecond",
    "1 month", "1 month -30 days", "-12 months 360 days", "-12 months 361 days",
    "1 day -24 hours", "-1 day 48 hours", "-12 months 360 days 30 s", "1 day -23 hours -59 minutes",
    "1 year", "10 years", "178000000 years", "-178000000 years", "71582788 months -2147483640 days",
    "-71582788 months 2147483640 days", "2147483647 days", "-2147483648 days",
    "2562047788 hours", "2147483647 days -2562047788 hours", "infinity", "-infinity", None,
]  # fmt: skip
INSTANTS = [
    "now", "epoch", "infinity", "-infinity", "4714-11-24 00:00:00+00 BC",
    "294276-12-31 23:59:59+00", "0001-01-01 00:00:00+00", "9999-12-31 23:59:59.999999+00",
    "2026-03-29 02:30:00 Europe/Berlin", Sql("now() + interval '1 hour'"),
    Sql("now() - interval '1 microsecond'"), Sql("now() + interval '3653 days'"),
    Sql("now() + interval '3654 days'"), None,
]  # fmt: skip
JSON: list[Any] = [
    None, 0, 1, -1, 1.5, "", "text", True, False, [], {}, [None], {"": {}}, {"a": "\u2028'%$1"},
    {"error_type": 1, "message": {"a": 1}, "retryable": True}, {"retryable": None, "cancel": False},
    {"retryable": "x"}, {"cancel": 1}, {"error_type": "E" * 300, "message": "m" * 9000},
    Sql("'1e1000'"), Sql("'1e-1000'"), Sql("repeat('[', 64) || repeat(']', 64)"),
    Sql("repeat('[', 65) || repeat(']', 65)"), Sql("repeat('[', 2000) || repeat(']', 2000)"),
    Sql("""repeat('{"a":', 64) || '1' || repeat('}', 64)"""),
    Sql("""repeat('{"a":', 65) || '1' || repeat('}', 65)"""),
    Sql("to_jsonb(repeat('x', 16382))"), Sql("to_jsonb(repeat('x', 16383))"),
    Sql("to_jsonb(repeat('x', 1048574))"), Sql("to_jsonb(repeat('x', 1048575))"),
    Sql("'null'"),
]  # fmt: skip
TIMES_IN_JSON = ["infinity", "-infinity", "tomorrow", "2026-01-01", "25:00", "", 5, [], None,
                 "2026-01-01 00:00 Nowhere/Land", "99999-01-01"]  # fmt: skip
SPANS_IN_JSON = [
    *[span for span in INTERVALS if span],
    "",
    "many",
    5,
    {},
    "1 fortnight",
    "P1Y",
    "1e400 s",
]
FIELDS: dict[str, list[Any]] = {
    "queue": [*[name for name in NAMES if not isinstance(name, Sql)], 1, [], {}],
    "kind": ["work", "work", "", None, 5, "k" * 129, "a\tb"],
    "payload": [value for value in JSON if not isinstance(value, Sql)],
    "priority": [0, 9, 5, 10, -1, 1.5, "5", "x", 1e300, 2**40, None, [], True],
    "run_at": TIMES_IN_JSON,
    "delay": SPANS_IN_JSON,
    "max_attempts": [1, 1000, 1001, 0, -1, "1", 2**31, None, 1.5],
    "dedup_key": ["key", "", "k" * 513, "k" * 8193, None, 1, [1], "\x01", "it's"],
    "timeout": SPANS_IN_JSON,
    "retry_base": SPANS_IN_JSON,
    "retry_cap": SPANS_IN_JSON,
    "meta": [None, {}, "m", [[]], "m" * 16_383],
    "surplus": [1],
}  # fmt: skip
VERBS = ["complete", "fail", "release", "acknowledge_cancel", "seal", "", None, "COMPLETE", "it's"]
ODD_ARRAYS = {
    "empty": "'{}'",
    "only null": "'{null}'",
    "odd lower bound": "'[-5:-4]={%s,%s}'",
    "two dimensions": "'{{%s,%s},{%s,%s}}'",
    "three dimensions": "'{{{%s}}}'",
    "one row": "'{{%s,%s}}'",
}


@dataclass(frozen=True, slots=True)
class Known:
    """What is there: (id, token, worker_id, lease_expires_at as text) of jobs."""

    jobs: list[tuple[int, int, str | None, str | None]]
    horizon: int
    infinite_spans: bool
    """Whether this PostgreSQL has them."""


class Arguments:
    """Draws the arguments of one call; they fit each other half of the time."""

    def __init__(self, draw: random.Random, known: Known) -> None:
        self._draw = draw
        self._known = known
        count = draw.choice([1, 1, 2, 3, len(known.jobs)])
        self._focus = draw.sample(known.jobs, min(count, len(known.jobs)))
        self._fits = bool(self._focus) and draw.random() < 0.6
        self._length = draw.choice([0, 1, 1, 2, 2, 3, 30])
        if draw.random() < 0.02:
            self._length = draw.choice([1000, 1001, 10_001])
        self._odd = draw.random() < 0.1

    def value(self, name: str, type_: str) -> Any:
        """One argument; name as the parameter's, without p_."""
        if type_.endswith("[]"):
            return self._array(name, type_)
        if self._fits and self._draw.random() < 0.9:
            fitting = self._fitting(name)
            if fitting is not None:
                return fitting[0]
        return self._scalar(name, type_)

    def _fitting(self, name: str) -> list[Any] | None:
        place = {"job_id": 0, "token": 1, "worker_id": 2, "lease_expires_at": 3}
        singular = name.removesuffix("s")
        if singular in place:
            return [job[place[singular]] for job in self._focus]
        return {"verbs": [self._draw.choice(VERBS[:4]) for _ in self._focus]}.get(name)

    def _array(self, name: str, type_: str) -> Any:
        member = type_[:-2]
        draw = self._draw
        if draw.random() < 0.03:
            return None
        if self._fits and draw.random() < 0.9:
            fitting = self._fitting(name)
            if fitting is None:
                fitting = [self._scalar(name, member) for _ in self._focus]
                if "queue" in name:
                    fitting = [draw.choice(["q", "mail", "paused"]) for _ in self._focus]
            if not (self._odd and draw.random() < 0.5):
                return fitting
        if self._odd or draw.random() < 0.1:
            return self._odd_array(member)
        length = self._length if draw.random() < 0.8 else draw.choice([0, 1, 2, 3])
        if length > 30:
            return self._long_array(length, member)
        return [self._scalar(name, member) for _ in range(length)]

    def _odd_array(self, member: str) -> Sql:
        shape = self._draw.choice(list(ODD_ARRAYS.values()))
        samples = {
            "bigint": ["1", "2", "null", str(self._focus[0][0] if self._focus else 7)],
            "text": ["q", "mail", "null", "complete"],
            "interval": ["1s", "null", "infinity" if self._known.infinite_spans else "-1s"],
            "boolean": ["t", "f", "null"],
            "jsonb": ["1", "null", "true"],
        }[member]
        while "%s" in shape:
            shape = shape.replace("%s", self._draw.choice(samples), 1)
        return Sql(shape)

    def _long_array(self, length: int, member: str) -> Sql:
        element = {
            "bigint": "i",
            "text": "'q' || i",
            "interval": "interval '1 s'",
            "boolean": "true",
            "jsonb": "'1'::jsonb",
        }[member]
        return Sql(f"select array_agg({element}) from generate_series(1, {length}) as i")

    def _scalar(self, name: str, type_: str) -> Any:
        draw = self._draw
        match type_:
            case "bigint" if name.startswith("horizon"):
                return draw.choice([self._known.horizon, *BIGINTS])
            case "bigint":
                return draw.choice(BIGINTS)
            case "integer" | "smallint":
                return draw.choice(INTEGERS)
            case "interval":
                return draw.choice([s for s in INTERVALS if self._has(s)])
            case "timestamp with time zone":
                return draw.choice(INSTANTS)
            case "boolean":
                return draw.choice([True, False, None])
            case "jsonb" if name == "jobs":
                return self._new_jobs()
            case "jsonb" if name == "shared" and draw.random() < 0.8:
                return draw.choice([None, self._new_job()])
            case "jsonb":
                return draw.choice(JSON)
            case "text" if name == "verbs":
                return draw.choice(VERBS)
            case "text" | "name":
                return draw.choice(NAMES if draw.random() < 0.5 else ["q", "mail", "ada", "paused"])
        raise AssertionError(f"no values for {type_}: add some")

    def _has(self, span: str | None) -> bool:
        return self._known.infinite_spans or span not in ("infinity", "-infinity")

    def _new_jobs(self) -> Any:
        draw = self._draw
        if draw.random() < 0.15:
            return draw.choice(JSON)
        if draw.random() < 0.03:
            count = draw.choice([10_000, 10_001])
            return Sql(
                "select jsonb_agg(jsonb_build_object('queue', 'many', 'kind', 'work'))"
                f" from generate_series(1, {count})"
            )
        return [self._new_job() for _ in range(draw.choice([0, 1, 1, 2, 5]))]

    def _new_job(self) -> Any:
        draw = self._draw
        if draw.random() < 0.05:
            return draw.choice([None, 1, "x", [], [1], {}])
        job: dict[str, Any] = {"queue": "q", "kind": "work"}
        for field in draw.sample(list(FIELDS), draw.choice([0, 1, 1, 2, 4])):
            job[field] = draw.choice(FIELDS[field])
        return job
