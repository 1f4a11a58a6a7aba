"""The actors' sessions on PostgreSQL: one connection each, and one that watches."""

from __future__ import annotations

import select
import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from psycopg import pq
from psycopg.conninfo import make_conninfo
from psycopg.pq import DiagnosticField, ExecStatus

from tests.model import Disagreement, Waits
from tests.schedules import rows, statements
from tests.schedules.rows import Row
from tests.schedules.stage import SKIPPED, Call

PATIENCE = 30.0
"""Seconds after which a statement that neither ends nor is blocked has failed."""

# The clock of the tests is far from the days that have partitions, each of which every look into
# the history would open in vain.
#
# Waiting is bounded by the holder's steps here: a machine that stands still for 2 s must not end
# it. That guard and the operators wait for 2 s is for other tests.
PREPARE = """
create table application (queue text, actor text);
create index on application (queue);
do $$
declare
  v_partition regclass;
begin
  for v_partition in
    select inhrelid
      from pg_inherits
     where inhparent = 'tenure.job_history'::regclass
       and inhrelid <> 'tenure.job_history_default'::regclass
  loop
    execute format('drop table %s', v_partition);
  end loop;
end;
$$;
alter function tenure.guard set lock_timeout = '30s';
alter function tenure.cancel set lock_timeout = '30s';
alter function tenure.retry set lock_timeout = '30s';
"""

SESSION = "-c statement_timeout=40s -c enable_seqscan=off -c plan_cache_mode=force_generic_plan"
RENEWED_AFTER = 1500
"""Schedules for which a session is used. A claim leaves a setting behind for each queue."""


class Session:
    """One connection, on which a statement may be left waiting."""

    def __init__(self, dsn: str) -> None:
        self._conn = pq.PGconn.connect(dsn.encode())
        if self._conn.status != pq.ConnStatus.OK:
            raise RuntimeError(self._conn.get_error_message())
        self._poll = select.poll()
        self._poll.register(self._conn.socket, select.POLLIN)
        self._prepared: dict[str, bytes] = {}
        self.pid = self._conn.backend_pid

    def prepare(self, statement: str) -> bytes:
        name = self._prepared.get(statement)
        if name is None:
            name = f"s{len(self._prepared)}".encode()
            self._checked(self._conn.prepare(name, statement.encode()))
            self._prepared[statement] = name
        return name

    def run(self, statement: str, values: Sequence[bytes] = ()) -> list[Row]:
        """A statement that waits for nobody."""
        result = self._conn.exec_prepared(self.prepare(statement), values)
        return self._rows(self._checked(result))

    def plain(self, statement: str) -> str:
        """A command; its tag."""
        result = self._checked(self._conn.exec_(statement.encode()))
        return (result.command_status or b"").decode()

    def send(self, statement: str, values: Sequence[bytes | None]) -> None:
        self._conn.send_query_prepared(self.prepare(statement), values)

    def has_answer(self, patience: float) -> bool:
        """Whether the answer has come, after up to so many seconds."""
        self._conn.consume_input()
        if not self._conn.is_busy():
            return True
        if not self._poll.poll(patience * 1000):
            return False
        self._conn.consume_input()
        return not self._conn.is_busy()

    def answer(self) -> list[Row] | type[Exception]:
        """The rows, or the error that the contract knows."""
        first = None
        while (result := self._conn.get_result()) is not None:
            first = first or result
        assert first is not None
        state = first.error_field(DiagnosticField.SQLSTATE)
        known = state and statements.error_of(state.decode())
        return known or self._rows(self._checked(first))

    @property
    def is_in_transaction(self) -> bool:
        return self._conn.transaction_status != pq.TransactionStatus.IDLE

    @property
    def is_active(self) -> bool:
        return self._conn.transaction_status == pq.TransactionStatus.ACTIVE

    def close(self) -> None:
        self._conn.finish()

    def _checked(self, result: Any) -> Any:
        if result.status not in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK):
            raise Disagreement(result.get_error_message().strip())
        return result

    @staticmethod
    def _rows(result: Any) -> list[Row]:
        columns = range(result.nfields)
        return [
            tuple(
                None if (value := result.get_value(n, c)) is None else value.decode()
                for c in columns
            )
            for n in range(result.ntuples)
        ]


class Postgres:
    """One database, prepared with PREPARE, in which time obeys test_clock."""

    name = "postgres"
    holds_rows = True

    def __init__(self, dsn: str) -> None:
        self._dsn = make_conninfo(dsn, options=SESSION)
        self._watcher = Session(self._dsn)
        self._sessions: dict[str, Session] = {}
        self._calls: dict[str, Call] = {}
        self._schedules = 0

    def set_clock(self, now: datetime) -> None:
        self._watcher.run("update tenure.test_clock set at = $1", [now.isoformat().encode()])

    def do(self, actor: str, call: Call, queue: str, *, waits: bool) -> Any:
        """The answer, or `Waits` when the call was seen to be blocked."""
        session = self._session(actor)
        if call.verb in ("begin", "commit", "rollback"):
            tag = session.plain(call.verb)
            return SKIPPED if call.verb == "commit" and tag == "ROLLBACK" else None
        if call.verb == "write":
            session.run("insert into application values ($1, $2)", [queue.encode(), actor.encode()])
            return None
        self._calls[actor] = call
        session.send(statements.prepared(call), statements.values(call))
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if waits and self._is_blocked(session):
                return Waits
            if session.has_answer(0.001 if waits else 0.2):
                return self._answer(actor)
            if not waits and self._is_blocked(session):
                return Waits
        raise Disagreement(f"{call.verb} neither ended nor was it blocked")

    def late(self, actor: str) -> Any:
        """The answer of a call that was left waiting, once nobody is in its way."""
        if not self._session(actor).has_answer(PATIENCE):
            raise Disagreement(f"{self._calls[actor].verb} of {actor} goes on waiting")
        return self._answer(actor)

    def has_gone_on(self, actor: str) -> bool:
        """Whether a call that was left waiting has been answered."""
        return self._session(actor).has_answer(0)

    def rows(self, job_ids: Sequence[int], queue: str) -> list[Row]:
        ids = "{" + ",".join(map(str, job_ids)) + "}"
        return self._watcher.run(rows.POSTGRES, [ids.encode(), queue.encode()])

    def clear(self, job_ids: Sequence[int]) -> None:
        """End what is open, and leave no job that a later schedule's sweep would meet."""
        self._schedules += 1
        worn = self._schedules % RENEWED_AFTER == 0
        for actor, session in list(self._sessions.items()):
            if session.is_active or worn:
                session.close()
                del self._sessions[actor]
            elif session.is_in_transaction:
                session.plain("rollback")
        if job_ids:
            ids = "{" + ",".join(map(str, job_ids)) + "}"
            self._watcher.run("delete from tenure.job where id = any ($1)", [ids.encode()])

    def close(self) -> None:
        for session in (self._watcher, *self._sessions.values()):
            session.close()
        self._sessions = {}

    def _session(self, actor: str) -> Session:
        session = self._sessions.get(actor)
        if session is None:
            session = self._sessions[actor] = Session(self._dsn)
        return session

    def _answer(self, actor: str) -> Any:
        found = self._session(actor).answer()
        if isinstance(found, type):
            return found
        return statements.FUNCTIONS[self._calls[actor].verb].read(found)

    def _is_blocked(self, session: Session) -> bool:
        """Whether it waits for another actor; the server's own work may be in its way as well."""
        [[blockers]] = self._watcher.run("select pg_blocking_pids($1)", [str(session.pid).encode()])
        actors = {str(other.pid) for other in self._sessions.values()}
        return not actors.isdisjoint(str(blockers).strip("{}").split(","))
