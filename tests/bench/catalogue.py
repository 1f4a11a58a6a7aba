"""Who takes part: how each peer is installed and started, and how the database shows its work."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from tests.bench.adapter import ROOT, Adapter
from tests.bench.environments import PLACE, node_environment, python_environment


@dataclass(frozen=True)
class Installed:
    """How to start a peer's adapter program."""

    command: tuple[str, ...]
    cwd: Path = ROOT


@dataclass(frozen=True)
class Peer:
    """A job queue that takes part."""

    name: str
    install: Callable[[], Installed]
    unfinished: str
    """SQL: how many jobs have not ended yet."""
    history: bool
    """Whether finished jobs are kept, as it is set up here."""
    counts: bool = True
    """Whether it is compared, or only shown beside the others."""
    share: float = 1
    """Of the jobs that the others drain; less where all of them would take minutes."""


def _python(
    name: str, *arguments: str, lock: str | None = None, **options: tuple[int, int]
) -> Installed:
    python = str(python_environment(lock, **options)) if lock else sys.executable
    return Installed((python, "-m", f"tests.bench.peers.{name}", *arguments))


def _node(name: str) -> Installed:
    node, place = node_environment(name)
    return Installed((str(node), str(ROOT / "tests" / "bench" / "peers" / f"{name}.mjs")), place)


TENURE = Peer(
    "tenure",
    lambda: _python("tenure"),
    "select count(*) from tenure.job",
    history=True,
)
GRAPHILE = Peer(
    "graphile-worker",
    lambda: _node("graphile-worker"),
    "select count(*) from graphile_worker._private_jobs",
    history=False,
)
PGMQ = Peer(
    "pgmq",
    lambda: _python("pgmq", lock="pgmq"),
    "select count(*) from pgmq.q_bench",
    history=False,
)
PGQUEUER = Peer(
    "pgqueuer",
    lambda: _python("pgqueuer", lock="pgqueuer"),
    "select count(*) from pgqueuer",
    history=True,
)
PROCRASTINATE = Peer(
    "procrastinate",
    lambda: _python("procrastinate", lock="procrastinate"),
    "select count(*) from procrastinate_jobs where status in ('todo', 'doing')",
    history=True,
    share=0.05,
)
OBAN = Peer(
    "oban",
    lambda: _python("oban", lock="oban", oldest=(3, 12)),
    "select count(*) from oban_jobs where state in ('available', 'executing', 'retryable')",
    history=True,
    share=0.2,
)
AWA = Peer(
    "awa",
    lambda: _python("awa", lock="awa"),
    "select 0",
    history=True,
)
PG_BOSS = Peer(
    "pg-boss",
    lambda: _node("pg-boss"),
    "select count(*) from pgboss.job where name = 'bench' and state < 'completed'",
    history=True,
)
CEILING = Peer(
    "bare table",
    lambda: _python("bare"),
    "select count(*) from bare",
    history=False,
    counts=False,
)
PEERS = (TENURE, GRAPHILE, PGMQ, PGQUEUER, PG_BOSS, AWA, OBAN, PROCRASTINATE, CEILING)
"""The faster ones first."""
LITEQUEUE_AS_IT_COMES = "litequeue, not durable"
SQLITE = (
    Peer("tenure", lambda: _python("tenure"), "select count(*) from tenure_job", history=True),
    Peer("huey", lambda: _python("huey", lock="huey"), "select count(*) from task", history=False),
    Peer(
        "litequeue",
        lambda: _python("litequeue", "--durable", lock="litequeue"),
        "select count(*) from Queue where status < 2",
        history=True,
    ),
    Peer(
        LITEQUEUE_AS_IT_COMES,
        lambda: _python("litequeue", lock="litequeue"),
        "select count(*) from Queue where status < 2",
        history=True,
        counts=False,
    ),
)
QUICK = (TENURE, GRAPHILE, PGMQ, PGQUEUER, CEILING)


def start(peer: Peer, installed: Installed, url: str) -> Adapter:
    """A new process of the peer's adapter program, for one database."""
    log = PLACE / "logs" / f"{peer.name.replace(' ', '-')}.log"
    return Adapter(installed.command, log, dsn=dsn(url), cwd=installed.cwd)


def dsn(url: str) -> Mapping[str, str]:
    """The database as the adapter programs' environment names it, or the file."""
    if not url.startswith("postgresql:"):
        return {"BENCH_DSN": url}
    parts = urlsplit(url)
    at = parse_qs(parts.query)
    return {
        "BENCH_DSN": url,
        "PGHOST": at["host"][0],
        "PGPORT": at["port"][0],
        "PGUSER": parts.username or "",
        "PGDATABASE": parts.path.lstrip("/"),
    }
