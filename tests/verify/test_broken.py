"""`tenure verify` fails at exactly the cells that a broken function breaks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import psycopg
import pytest

from tenure.verify import run, session, stage
from tenure.verify.cancelling import CANCEL_MATRIX
from tenure.verify.cells import Mark, Matrix
from tenure.verify.owner import STATES
from tenure.verify.racing import COMMITS, RACE_MATRIX, RACES, ROLLS_BACK
from tenure.verify.run import verify
from tenure.verify.waking import ASLEEP, ELSEWHERE, NOBODY, SLEEPERS, WAKE, WRITES
from tests.cli.conftest import Tenure
from tests.conftest import Psql
from tests.verify.conftest import changed, live_jobs

Cells = set[tuple[str, str]]

SETTLING = (
    "complete",
    "fail",
    "fail for good",
    "release started",
    "release unstarted",
    "acknowledge",
    "settle complete",
    "settle fail",
    "settle release",
    "settle acknowledge",
)
SAME_WORKER = "swept, and claimed again under the same worker_id"
NOT_ITS_OWN = "never its own: the current token under another worker_id"
QUEUED_UNDER_THE_TOKEN = (
    "its caller failed the job, which is queued again",
    "its caller released the job",
)
REQUESTED = (
    "running",
    "running on its last attempt",
    "running, claimed in a batch",
    "running, reclaimed from another",
    "lapsed, and nobody took it over",
)
WAKING = [name for name, (_, _, brings) in WRITES.items() if brings == WAKE] + [
    "enqueue, committed at last"
]


def cells(rows: Iterable[str], columns: Iterable[str]) -> Cells:
    return set(product(rows, columns))


def without(text: str, instead: str = "") -> Callable[[str], str]:
    def change(definition: str) -> str:
        assert text in definition
        return definition.replace(text, instead)

    return change


@contextmanager
def broken(dsn: str, breaks: Iterable[Break]) -> Iterator[None]:
    with ExitStack() as stack:
        for function, change, _ in breaks:
            stack.enter_context(changed(dsn, function, change))
        yield


def emptied(definition: str) -> str:
    head, tail = definition.split("\nbegin\n", 1)
    return f"{head}\nbegin\nend;\n{tail[tail.rindex('$function$') :]}"


def selected_only(definition: str) -> str:
    """guard with a plain SELECT where its UPDATE was."""
    start, end = definition.index("    update job as j"), definition.index("     where j.id")
    return f"{definition[:start]}    perform from job as j\n{definition[end:]}"


class Break(NamedTuple):
    function: str
    change: Callable[[str], str]
    fails: Cells


SETTLE_TAKES_ANY_TOKEN = Break(
    "settle_jobs",
    without("where j.token = a.token\n       and", "where"),
    cells(SETTLING, [SAME_WORKER]),
)
SETTLE_TAKES_ANY_WORKER_ID = Break(
    "settle_jobs",
    without("       and j.worker_id = p_worker_id\n"),
    cells(SETTLING, [NOT_ITS_OWN, *QUEUED_UNDER_THE_TOKEN]),
)
RENEW_TAKES_ANY_TOKEN = Break(
    "renew",
    without("where j.token = a.token\n       and", "where"),
    cells(["renew"], [SAME_WORKER]),
)
RECLAIM_TAKES_WHAT_HAS_NOT_LAPSED = Break(
    "reclaim",
    without("       and j.lease_expires_at <= v_now\n"),
    cells(["reclaim"], [state for state in STATES if not state.startswith("lapsed")]),
)
THE_SWEEP_FORGETS_CANCELLATIONS = Break(
    "sweep_jobs",
    without("             when l.cancel_requested then 'cancelled'\n"),
    cells(["sweep"], REQUESTED),
)
COMPLETE_OVERRULES_A_CANCELLATION = Break(
    "settle_jobs",
    without("case when m.cancel_requested then 'cancel_requested' else 'ok' end", "'ok'"),
    cells(["complete", "settle complete"], REQUESTED),
)
NOBODY_IS_WOKEN = Break("notify_sleepers", emptied, cells(WAKING, [ASLEEP]))
NO_CANCELLATION_IS_NOTIFIED = Break(
    "cancel",
    without("    perform pg_notify(channel(), 'c' || p_job_id);\n", "    null;\n"),
    cells(["cancel of a running job"], SLEEPERS),
)
EVERYBODY_IS_NOTIFIED = Break(
    "somebody_sleeps",
    without("  return case\n", "  return true or case\n"),
    cells(WAKING, [ELSEWHERE, NOBODY]),
)
GUARD_HOLDS_NOTHING = Break(
    "guard",
    selected_only,
    cells([name for name in RACES if "guard" in name.split(" | ")], [COMMITS, ROLLS_BACK]),
)


@pytest.mark.parametrize(
    ("part", "breaks"),
    [
        (
            "stale",
            [
                SETTLE_TAKES_ANY_TOKEN,
                RENEW_TAKES_ANY_TOKEN,
                RECLAIM_TAKES_WHAT_HAS_NOT_LAPSED,
            ],
        ),
        ("stale", [SETTLE_TAKES_ANY_WORKER_ID]),
        ("cancel", [THE_SWEEP_FORGETS_CANCELLATIONS, COMPLETE_OVERRULES_A_CANCELLATION]),
        ("wake", [NOBODY_IS_WOKEN, NO_CANCELLATION_IS_NOTIFIED]),
        ("wake", [EVERYBODY_IS_NOTIFIED]),
        ("race", [GUARD_HOLDS_NOTHING]),
    ],
    ids=["tokens", "worker_ids", "cancellations", "silence", "noise", "guard"],
)
def test_broken_functions_fail_their_cells_and_no_others(
    part: str, breaks: list[Break], install: str, role: Callable[..., str]
) -> None:
    dsn = role("produce", "work", "operate")
    with broken(install, breaks):
        report = verify(dsn, schema="tenure", part=part)

    failed = [r for results in report.results.values() for r in results if r.mark is Mark.FAIL]
    assert {(result.row, result.column) for result in failed} == set().union(
        *(each.fails for each in breaks)
    )
    for result in failed:
        assert result.statements
        assert not any("@" in statement for statement in result.statements)
        assert result.came != result.must
    assert live_jobs(install) == 0


def test_a_database_that_refuses_everything_does_not_pass(
    install: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "STALE", Matrix(name="stale", title="", cells=list))
    monkeypatch.setattr(stage, "TRIES_AGAIN", 0)
    refusal = Break(
        "settle_jobs", without("     where j.token = a.token\n", "     where false\n"), set()
    )
    with broken(install, [refusal]):
        report = verify(install, schema="tenure", part="stale")

    # Nor can it end the jobs that it made.
    assert re.match(r"\d+ live and \d+ finished jobs in queues verify-", report.left)
    with psycopg.connect(install) as owner:
        owner.execute("delete from tenure.job")
    refused = {(r.row, r.column) for r in report.results["owner"] if r.mark is Mark.FAIL}
    assert refused >= cells(SETTLING, ["running", "lapsed, and nobody took it over"])


def test_a_verb_that_waits_is_a_failure_and_no_hang(
    install: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    patient = Break(
        "claim_job", without("for no key update of c skip locked", "for no key update of c"), set()
    )
    rivals = [cell for cell in RACE_MATRIX.cells() if cell.row == "claim_job | claim_job"]
    monkeypatch.setattr(session, "WITHIN", 1.0)
    monkeypatch.setattr(run, "RACE_MATRIX", Matrix(name="race", title="", cells=lambda: rivals))
    with broken(install, [patient]):
        report = verify(install, schema="tenure", part="race")

    assert [result.came for result in report.results["race"]] == ["no answer within 1 s"] * 2


def test_a_failure_is_told_as_statements_for_psql_and_a_broken_promise(
    bare_tenure: Tenure, install: str, psql: Psql, monkeypatch: pytest.MonkeyPatch
) -> None:
    told_of = [cell for cell in CANCEL_MATRIX.cells() if cell.column == "running"]
    monkeypatch.setattr(run, "CANCEL_MATRIX", replace(CANCEL_MATRIX, cells=lambda: told_of))
    with broken(install, [COMPLETE_OVERRULES_A_CANCELLATION]):
        ran = bare_tenure("verify", "--dsn", install, "--schema", "tenure", "--only", "cancel")

        assert ran.code == 1
        [told] = [p for p in ran.out.split("\n\n") if p.startswith("cancel: complete, running\n")]
        *statements, came, must, breaks = told.splitlines()[1:]
        # The ids are those of that run: another's are filled in, as somebody at psql would.
        assert statements[0].startswith("  select job_id as job from tenure.enqueue('verify-")
        assert statements[-1].startswith("  select verdict from tenure.complete(")
        assert [came, must] == ["  came: ok", "  must: cancel_requested"]
        assert breaks.startswith("  breaks: Cancellation holds. ")
        assert psql(install, "-At", "-c", f"begin; {statements[0]} rollback").strip().isdecimal()
    assert ran.out.endswith("\n21 cells: 19 pass, 2 fail, 0 not possible here\n")
