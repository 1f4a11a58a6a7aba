"""The database of a soak: what may be done to it, and what it has to tell in the end."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, LiteralString, Protocol

import psycopg

from tenure import Tenure, embedded
from tests.chaos import sqlite_audit
from tests.chaos.history import Effect, History, Lapse, Row, Version, by_job

AUDIT = Path(__file__).with_name("audit.sql")

VERSIONS: LiteralString = """
select seq, xid, at, op, place, job_id, status, token, worker_id, attempt, max_attempts, buffered,
       solo, cancel_requested, sealed, claimed_at, lease_expires_at, timeout, progress
  from {}
"""
ROWS: LiteralString = """
select id, 'job', kind, {text}, token, {payload}, {result} from {job}
 union all
select id, 'history', kind, {text}, token, {payload}, {result} from {history}
"""
COLUMNS = list(Version.__dataclass_fields__)


class Stage(Protocol):
    """A store that is installed and audited. One thread, which outlives a server it starts."""

    target: str

    def crash(self) -> None:
        """End the server at once and start it again."""
        ...

    def hang_up(self) -> bool:
        """End a random session of the server; False where there is none."""
        ...

    def live(self) -> dict[str, int]:
        """How many jobs of each kind have not ended."""
        ...

    def history(self) -> History:
        """What the tables say."""
        ...

    def close(self) -> None: ...


class PostgresStage:
    """A server of its own that keeps what it reported committed."""

    def __init__(self) -> None:
        self._server = embedded.temporary(embedded.DURABLE).start()
        try:
            self.target = self._server.url()
            with Tenure(self.target) as app:
                app.install()
            self._ask(AUDIT.read_text("utf-8"))
        except BaseException:
            self.close()
            raise

    def crash(self) -> None:
        self._server.restart("immediate")

    def hang_up(self) -> bool:
        return bool(
            self._ask(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where backend_type = 'client backend' and pid <> pg_backend_pid()"
                " order by random() limit 1"
            )
        )

    def live(self) -> dict[str, int]:
        return dict(self._ask("select kind, count(*) from tenure.job group by kind"))

    def history(self) -> History:
        rows = ROWS.format(
            text="status::text",
            payload="payload::text",
            result="result::text",
            job="tenure.job",
            history="tenure.job_history",
        )
        return _history(
            self._ask(VERSIONS.format("audit.version")),
            self._ask(rows),
            self._ask("select job_id, token, worker_id, outcome from tenure.attempt"),
            self._ask("select job_id, token, worker_id, child_id, xid from audit.effect"),
        )

    def close(self) -> None:
        self._server.close()

    def _ask(self, statement: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.target, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []


class SqliteStage:
    """A file."""

    def __init__(self, folder: Path) -> None:
        self.target = str(folder / "jobs.db")
        with Tenure(self.target) as app:
            app.install()
        with closing(sqlite3.connect(self.target)) as connection:
            connection.executescript(sqlite_audit.statements())

    def crash(self) -> None: ...

    def hang_up(self) -> bool:
        return False

    def live(self) -> dict[str, int]:
        return dict(self._ask("select kind, count(*) from tenure_job group by kind"))

    def history(self) -> History:
        rows = ROWS.format(
            text="status",
            payload="payload",
            result="result",
            job="tenure_job",
            history="tenure_history",
        )
        history = _history(
            self._ask(VERSIONS.format("audit_version")),
            self._ask(rows),
            self._ask("select job_id, token, worker_id, outcome from tenure_attempt"),
            self._ask("select job_id, token, worker_id, child_id, xid from audit_effect"),
        )
        return replace(history, versions=list(_committed(history.versions)))

    def close(self) -> None: ...

    def _ask(self, statement: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.target, timeout=10)) as connection:
            return connection.execute(statement).fetchall()


def _committed(versions: Sequence[Version]) -> Iterator[Version]:
    """Without what nobody else ever sees: a sweep first takes the token, then decides.

    Such a version differs from the one before it by the token only, and another follows.
    """
    for of_job in by_job(versions).values():
        for number, version in enumerate(of_job):
            before = of_job[number - 1] if number else version
            following = of_job[number + 1 : number + 2]
            mere_token = replace(
                before, seq=version.seq, at=version.at, op="update", token=before.token + 1
            )
            if version != mere_token or not following or following[0].token != version.token:
                yield version


def _history(
    versions: Sequence[tuple[Any, ...]],
    rows: Sequence[tuple[Any, ...]],
    lapses: Sequence[tuple[Any, ...]],
    effects: Sequence[tuple[Any, ...]],
) -> History:
    return History(
        versions=[Version(**dict(zip(COLUMNS, values, strict=True))) for values in versions],
        rows=[_row(*values) for values in rows],
        lapses=[Lapse(*values) for values in lapses],
        effects=[Effect(*values) for values in effects],
    )


def _row(
    job_id: int,
    place: str,
    kind: str,
    status: str,
    token: int,
    payload: str | None,
    result: str | None,
) -> Row:
    made_by = json.loads(payload) if payload else None
    return Row(
        job_id=job_id,
        place=place,
        kind=kind,
        status=status,
        token=token,
        batch=made_by["batch"] if made_by else None,
        result=json.loads(result) if result else None,
    )
