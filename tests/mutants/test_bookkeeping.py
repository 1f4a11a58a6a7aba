"""Every predicate of the SQL is found, and none is forgotten."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from pglast.parser import fingerprint

from tenure.install import choose_schema
from tenure.postgres import PostgresControlPlane
from tenure.values import Failure, Verdict
from tests.mutants import found, postgres_predicates, sqlite_predicates
from tests.mutants.equivalents import EQUIVALENTS
from tests.mutants.mutant import Mutant
from tests.mutants.postgres_source import functions, pieces


@pytest.fixture(scope="module")
def predicates() -> list[Mutant]:
    return found.predicates()


def test_each_predicate_is_a_mutant_or_is_named_as_an_equivalent(
    predicates: list[Mutant],
) -> None:
    keys = Counter(mutant.key for mutant in predicates)
    assert [key for key, count in keys.items() if count > 1] == []
    assert sorted(EQUIVALENTS.keys() - keys) == []
    assert len(keys - Counter([*EQUIVALENTS])) + len(EQUIVALENTS) == len(predicates)
    assert [key for key, reason in EQUIVALENTS.items() if not reason.strip()] == []


OWNED = [
    "postgres guard: and j.token = p_token",
    "postgres reclaim: and j.token = p_token",
    "postgres renew: and j.token = a.token",
    "postgres seal: and j.token = p_token",
    "postgres settle_jobs: and j.token = a.token",
    "postgres update_owned: and j.token = p_token",
    *(
        f"sqlite {statement}: and token = :token"
        for statement in (
            "sqlite_lease.GUARD",
            "sqlite_lease.RECLAIM",
            "sqlite_lease.RENEW",
            "sqlite_lease.UPDATE_OWNED",
            "sqlite_settle.COMPLETE",
            "sqlite_settle.END_CANCELLED",
            "sqlite_settle.END_UNSEALED",
            "sqlite_settle.FAIL_AND_QUEUE",
            "sqlite_settle.RELEASE_AND_QUEUE",
            "sqlite_settle.SEAL",
        )
    ),
]
REST = [
    "postgres claim_job: and CAST(c.status AS text) = 'queued'",
    "postgres reclaim: and j.lease_expires_at = p_lease_expires_at",
    "postgres reclaim: and j.lease_expires_at <= v_now",
    "postgres settle_jobs: when m.cancel_requested",
    "sqlite sqlite_claim.LEASE_CANDIDATE: and status = 'queued'",
    "sqlite sqlite_lease.RECLAIM: and lease_expires_at = :lease_expires_at",
    "sqlite sqlite_lease.RECLAIM: and lease_expires_at <= :now",
    "sqlite sqlite_settle.COMPLETE: and cancel_requested = 0",
]


@pytest.mark.parametrize("key", OWNED + REST)
def test_a_predicate_that_ownership_rests_on_is_found_and_no_equivalent(
    predicates: list[Mutant], key: str
) -> None:
    assert key in {mutant.key for mutant in predicates}
    assert key not in EQUIVALENTS


def test_every_branch_of_every_function_is_found() -> None:
    for path in functions():
        body = re.sub(r"--.*|'[^']*'", "", path.read_text("utf-8"))
        changes = " ".join(mutant.change for mutant in postgres_predicates.mutants(path))
        for word, ends in (
            ("if", "end if"),
            ("elsif", ""),
            ("exit when", ""),
            ("continue when", ""),
        ):
            written = len(re.findall(rf"\b{word}\b", body)) - (body.count(ends) if ends else 0)
            assert changes.count(f"{word} ") >= written, (path.stem, word)


@pytest.mark.parametrize("path", functions(), ids=lambda path: path.stem)
def test_a_mutant_of_a_function_differs_in_one_piece_of_sql(path: Path) -> None:
    before = [piece.sql for piece in pieces(path.read_text("utf-8"))]
    for mutant in postgres_predicates.mutants(path):
        after = [piece.sql for piece in pieces(mutant.source)]
        changed = [
            index
            for index, (old, new) in enumerate(zip(before, after, strict=True))
            if fingerprint(old) != fingerprint(new)
        ]
        assert len(changed) <= 1, mutant.key
        assert mutant.source != path.read_text("utf-8")


def test_a_mutant_of_a_statement_differs_from_it() -> None:
    for place, sql in sqlite_predicates.statements().items():
        unchanged = sqlite_predicates.printed(sqlite_predicates.parsed(sql))
        for mutant in sqlite_predicates.mutants(place, sql):
            assert mutant.source != unchanged, mutant.key


def test_printed_sql_means_what_it_meant() -> None:
    for path in functions():
        for piece in pieces(path.read_text("utf-8")):
            if postgres_predicates.without_one(piece):
                printed = postgres_predicates.printed(postgres_predicates.parsed(piece.sql))
                assert fingerprint(printed) == fingerprint(piece.sql), path.stem


def test_functions_whose_sql_is_all_printed_anew_still_work(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for path in functions():
            source = path.read_text("utf-8")
            for piece in reversed(pieces(source)):
                if postgres_predicates.without_one(piece):
                    printed = postgres_predicates.printed(postgres_predicates.parsed(piece.sql))
                    source = replace(piece, source=source).replaced(printed)
            with connection.transaction():
                connection.execute(choose_schema("tenure").encode())
                connection.execute(source.encode())

        plane = PostgresControlPlane(connection)
        plane.enqueue("default", "work")
        [lease] = plane.claim(["default"], "ada", max_jobs=2)
        owner = (lease.job_id, "ada", lease.token)
        with connection.transaction():
            plane.guard(*owner)
        assert plane.update_owned(*owner, progress=1).verdict is Verdict.OK
        assert plane.fail(*owner, Failure(error_type="E")).verdict is Verdict.OK
        assert plane.fail(*owner, Failure(error_type="E")).verdict is Verdict.ALREADY
        assert plane.cancel(lease.job_id).verdict is Verdict.OK
        assert plane.retry(lease.job_id).verdict is Verdict.OK
        assert plane.sweep("ada") == []
