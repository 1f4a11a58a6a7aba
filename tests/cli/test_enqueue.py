"""`tenure enqueue`."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta

import pytest

from tenure.cli_options import duration
from tenure.store import OwnedControlPlane
from tests.cli.conftest import Tenure


def test_a_job_gets_the_payload_and_the_settings_given(
    tenure: Tenure, plane: OwnedControlPlane
) -> None:
    ran = tenure(
        *("enqueue", "mail", '{"to": ["é", null]}', "--queue", "out", "--priority", 2),
        *("--max-attempts", 3, "--timeout", "1m30s", "--meta", '{"by": "me"}', "--json"),
    )
    assert ran.json == {"job_id": 1, "created": True}
    [lease] = plane.claim(["out"], "w")
    assert (lease.kind, lease.payload, lease.meta) == ("mail", {"to": ["é", None]}, {"by": "me"})
    assert (lease.priority, lease.max_attempts) == (2, 3)
    assert lease.timeout == timedelta(seconds=90)


def test_a_delay_makes_the_job_due_later(tenure: Tenure) -> None:
    tenure("enqueue", "mail", "--delay", "2h")
    job = tenure("show", 1, "--json").json
    due, made = (datetime.fromisoformat(job[key]) for key in ("next_attempt_at", "created_at"))
    assert timedelta(hours=1, minutes=59) < due - made <= timedelta(hours=2, seconds=1)
    assert job["shade"] == "scheduled"


def test_run_at_may_be_in_any_time_zone(tenure: Tenure) -> None:
    year = datetime.now(UTC).year + 2
    tenure("enqueue", "mail", "--run-at", f"{year}-01-31T08:00:00+02:00")
    assert tenure("show", 1, "--json").json["next_attempt_at"] == f"{year}-01-31T06:00:00.000000Z"


def test_a_taken_dedup_key_answers_with_the_live_job(tenure: Tenure) -> None:
    tenure("enqueue", "mail", "--dedup-key", "7")
    ran = tenure("enqueue", "mail", "--dedup-key", "7")
    assert ran.code == 0
    assert ran.out == "job 1 is live and has that dedup key; nothing was added\n"


def test_a_dash_reads_the_payload_from_standard_input(
    tenure: Tenure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO('["ü"]'.encode())))
    assert tenure("enqueue", "mail", "-").code == 0
    assert tenure("show", 1, "--json").json["payload"] == ["ü"]

    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'["\xff"]')))
    assert tenure("enqueue", "mail", "-").complaint == "tenure: payload is not UTF-8 at byte 2"


@pytest.mark.parametrize(
    ("payload", "complaint"),
    [
        ('{"a": 1, b}', "payload is not JSON at line 1, column 10: "),
        ('{"a":\n tru}', "payload is not JSON at line 2, column 2: "),
        ("hello", "payload is not JSON at line 1, column 1: "),
        ('{"a": [1, NaN]}', "payload.a[1]: nan is not JSON"),
        ('{"a": "\\u0000"}', "payload.a: a str with a NUL"),
        ("[" * 100_000, "payload is nested too deep"),
        ("9" * 5000, "payload is not JSON: "),
    ],
)
def test_a_bad_payload_is_refused_with_the_place(
    tenure: Tenure, payload: str, complaint: str
) -> None:
    ran = tenure("enqueue", "mail", payload)
    assert ran.code == 1
    assert ran.complaint.startswith(f"tenure: {complaint}")
    assert tenure("jobs", "--json").json == []


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("500ms", 0.5), ("90s", 90), ("5m", 300), ("2h", 7200), ("1.5m", 90), ("1h30m", 5400)],
)
def test_a_duration_is_a_number_with_its_unit(text: str, seconds: float) -> None:
    assert duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text", ["", "5", "five", "-5s", "5s ", "5 s", "5x", "1h-1m", "9" * 400 + "d"]
)
def test_other_durations_are_a_usage_error(tenure: Tenure, text: str) -> None:
    ran = tenure("enqueue", "mail", f"--delay={text}")
    assert ran.code == 2
    assert "--delay" in ran.complaint


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["enqueue"], 2, "Missing argument 'KIND'"),
        (["enqueue", "mail", "--run-at", "2090-01-31T08:00"], 2, "has no time zone"),
        (["enqueue", "mail", "--run-at", "tomorrow"], 2, "is no time"),
        (["enqueue", "mail", "--run-at", "2090-01-01T00:00Z", "--delay", "1s"], 1, "run_at"),
        (["enqueue", ""], 1, "kind is empty"),
        (["enqueue", "a\nb"], 1, "kind has a control character: 'a\\nb'"),
        (["enqueue", "mail", "--queue", "x" * 129], 1, "queue is 129 bytes"),
        (["enqueue", "mail", "--priority", "10"], 1, "priority is out of range: 10"),
        (["enqueue", "mail", "--max-attempts", "0"], 1, "max_attempts is out of range: 0"),
        (["enqueue", "mail", "--timeout", "1ms"], 1, "timeout is out of range: 0.001 s"),
        (["enqueue", "mail", "--delay", "9999999h"], 1, "delay is out of range"),
        (["enqueue", "mail", "--dedup-key", ""], 1, "dedup_key is empty"),
    ],
)
def test_a_bad_argument_is_refused_before_anything_is_written(
    tenure: Tenure, arguments: list[str], code: int, complaint: str
) -> None:
    ran = tenure(*arguments)
    assert ran.code == code
    assert complaint in ran.complaint
    assert tenure("jobs", "--json").json == []
