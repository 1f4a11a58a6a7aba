"""Where `tenure verify` cannot run it says why in one line, with exit code 2."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from tests.cli.conftest import Tenure
from tests.verify.conftest import schemas


def refusal(tenure: Tenure, *arguments: object) -> str:
    ran = tenure("verify", *arguments)
    assert ran.code == 2
    assert ran.out == ""
    return ran.complaint.removeprefix("tenure: ")


def test_a_database_must_be_named(bare_tenure: Tenure) -> None:
    assert refusal(bare_tenure).startswith("no database was named: pass --dsn or set TENURE_DSN")


def test_the_wrong_server_is_said_to_be_out_of_reach(bare_tenure: Tenure, tmp_path: Path) -> None:
    said = refusal(bare_tenure, "--dsn", f"host={tmp_path} dbname=shop")
    assert said.startswith("cannot connect: ")


def test_an_sqlite_file_has_no_functions_to_verify(bare_tenure: Tenure, tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    assert refusal(bare_tenure, "--dsn", path).startswith("verify is for PostgreSQL: ")
    assert not path.exists()


def test_a_schema_that_is_not_there_is_named(bare_tenure: Tenure, install: str) -> None:
    said = refusal(bare_tenure, "--dsn", install, "--schema", "tenur")
    assert said == "there is no schema tenur (leave --schema out for a scratch schema)"


def test_a_schema_without_tenure_lacks_functions(bare_tenure: Tenure, install: str) -> None:
    said = refusal(bare_tenure, "--dsn", install, "--schema", "public")
    assert said.startswith("schema public has no function acknowledge_cancel, cancel, ")
    assert said.endswith("(tenure migrate)")


def test_a_role_is_told_what_to_be_granted(
    bare_tenure: Tenure, install: str, role: Callable[..., str]
) -> None:
    dsn = role("work")
    name = psycopg.conninfo.conninfo_to_dict(dsn)["user"]
    said = refusal(bare_tenure, "--dsn", dsn, "--schema", "tenure")
    assert said == (
        f"role {name} may not call cancel, enqueue, enqueue_many, pause, resume, retry in schema"
        f" tenure (its owner can: select tenure.grant_role('{name}', 'operate');"
        f" select tenure.grant_role('{name}', 'produce');)"
    )


def test_a_role_that_may_make_no_schema_is_told_of_both_ways_out(
    bare_tenure: Tenure, install: str, role: Callable[..., str]
) -> None:
    before = schemas(install)
    said = refusal(bare_tenure, "--dsn", role())
    assert "may not make a scratch schema" in said
    assert "grant create on database" in said
    assert "--schema" in said
    assert schemas(install) == before


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ("default_transaction_read_only=on", "this session may only read"),
        ("default_transaction_isolation=serializable", "sessions here begin under serializable"),
    ],
)
def test_a_session_in_which_nothing_can_work_is_refused_beforehand(
    setting: str, complaint: str, bare_tenure: Tenure, install: str
) -> None:
    dsn = psycopg.conninfo.make_conninfo(install, options=f"-c {setting}")
    assert refusal(bare_tenure, "--dsn", dsn).startswith(complaint)


def test_there_are_four_parts(bare_tenure: Tenure, install: str) -> None:
    said = refusal(bare_tenure, "--dsn", install, "--only", "claims")
    assert "'stale', 'cancel', 'wake', 'race'" in said
