"""One run: makes or finds the install, plays the matrices, removes what was made."""

from __future__ import annotations

import secrets
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

import psycopg

from tenure.errors import TenureError
from tenure.postgres_store import PostgresStore
from tenure.verify.cancelling import CANCEL_MATRIX
from tenure.verify.cells import DONE, Cell, Matrix, Result
from tenure.verify.demands import check_install, check_may_create, check_server
from tenure.verify.dismantle import dismantle
from tenure.verify.hindrances import Hindrances, impossible
from tenure.verify.owner import OWNER
from tenure.verify.racing import RACE_MATRIX
from tenure.verify.script import played
from tenure.verify.session import identifier
from tenure.verify.stage import Stage
from tenure.verify.stale import STALE, STALE_FOR_OWNERS
from tenure.verify.waking import WAKE_MATRIX

PARTS = ("stale", "cancel", "wake", "race")

SCRATCH = "tenure_verify_"


@dataclass(slots=True)
class Report:
    """What a run found."""

    schema: str
    server: str
    role: str
    results: dict[str, list[Result]] = field(default_factory=dict)
    rows_compared: bool = True
    """Whether rows could be read whole; if not, as far as functions show them."""
    left: str = ""
    """What could not be removed, in a sentence."""


def matrices(part: str | None, *, scratch: bool) -> Sequence[Matrix]:
    """Those of one part, or of all parts."""
    parts = {
        "stale": (OWNER, STALE_FOR_OWNERS if scratch else STALE),
        "cancel": (CANCEL_MATRIX,),
        "wake": (WAKE_MATRIX,),
        "race": (RACE_MATRIX,),
    }
    return [matrix for name in PARTS if part in (None, name) for matrix in parts[name]]


def verify(
    dsn: str,
    *,
    schema: str | None,
    part: str | None,
    told: Callable[[Matrix, Report], None] = lambda matrix, report: None,
) -> Report:
    """Play the matrices; `told` is called after each.

    `schema` names an existing install; None makes one under a name of its own and drops it at
    the end, whatever happened. Raises TenureError and psycopg.Error when it cannot be done.
    """
    with _scratch(dsn) if schema is None else _existing(dsn, schema) as (stage, report):
        chosen = matrices(part, scratch=schema is None)
        cells = {matrix.name: [*matrix.cells()] for matrix in chosen}
        check_install(stage, [cell for some in cells.values() for cell in some])
        report.rows_compared = stage.rows_are_seen
        for matrix in chosen:
            report.results[matrix.name] = [*_results(cells[matrix.name], stage)]
            told(matrix, report)
    return report


def _results(cells: Sequence[Cell], stage: Stage) -> Iterator[Result]:
    hindrances = Hindrances(stage) if any(cell.listens for cell in cells) else None
    reasons = [hindrances.of(cell) if hindrances else "" for cell in cells]
    outcomes = played([c for c, reason in zip(cells, reasons, strict=True) if not reason], stage)
    for cell, reason in zip(cells, reasons, strict=True):
        yield impossible(cell, reason) if reason else next(outcomes)


@contextmanager
def _existing(dsn: str, schema: str) -> Iterator[tuple[Stage, Report]]:
    with _stage(dsn, schema, shared=True) as (stage, report):
        try:
            yield stage, report
        finally:
            with _undisturbed():
                if stage.queues:
                    stage.close()  # a session may be in the middle of a cell
                    report.left = dismantle(stage)


@contextmanager
def _scratch(dsn: str) -> Iterator[tuple[Stage, Report]]:
    from tenure.migrate import upgrade  # loads Alembic, which other commands do without

    schema = f"{SCRATCH}{secrets.token_hex(4)}"
    with _stage(dsn, schema, shared=False) as (stage, report):
        check_may_create(stage)
        try:
            upgrade(dsn, schema=schema)
            yield stage, report
        finally:
            with _undisturbed():
                stage.close()
                _drop(stage, schema)


def _drop(stage: Stage, schema: str) -> None:
    # A session that was closed in the middle of a cell may hold its locks for an instant yet.
    statements = (
        "begin; set local client_min_messages = warning; set local lock_timeout = '20s';"
        f" drop schema if exists {identifier(schema)} cascade; commit"
    )
    try:
        answer = str(stage.ask(statements))
    except (TenureError, psycopg.Error) as error:
        answer = str(error)
    if answer != DONE:
        raise psycopg.OperationalError(f"schema {schema} could not be dropped: {answer}")


@contextmanager
def _stage(dsn: str, schema: str, *, shared: bool) -> Iterator[tuple[Stage, Report]]:
    # A pooler between transactions keeps no prepared statements.
    store = PostgresStore(dsn, schema=schema, prepare_threshold=None)
    stage = Stage(store.connect, schema=schema, shared=shared)
    with _terminated_as_interrupted():
        try:
            check_server(stage)
            server, role = stage.ask("show server_version"), stage.ask("select current_user")
            yield stage, Report(schema=schema, server=server.text, role=role.text)
        finally:
            stage.close()


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Let SIGTERM unwind as Ctrl-C does, so that what was made is removed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Keep an impatient second signal from leaving half of it behind."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {s: signal.signal(s, signal.SIG_IGN) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
