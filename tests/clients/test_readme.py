"""The README's Python and shell examples, run word for word."""

from __future__ import annotations

import asyncio
import importlib
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tenure import JobFailed, Tenure
from tests.clients import readme
from tests.runner.waiting import PATIENCE, eventually

BIN = Path(sys.executable).parent


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that has the modules of the README, from which they can be imported."""
    (tmp_path / "shop.py").write_text(readme.code("Run a worker", "python"), encoding="utf-8")
    (tmp_path / "web.py").write_text(
        readme.code("Use it from a web app", "python"), encoding="utf-8"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in ("shop", "web"):
        sys.modules.pop(name, None)


def test_the_example_in_python_prints_what_it_says(tmp_path: Path) -> None:
    (tmp_path / "example.py").write_text(readme.code("In Python", "python"), encoding="utf-8")

    ran = subprocess.run(
        [sys.executable, "-W", "error", "example.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=50,
    )

    assert ran.stderr == ""
    assert ran.stdout == readme.code("In Python", "")


def test_a_worker_runs_as_shown_and_ends_with_0_after_sigterm(
    empty_database: Any, shop: Path
) -> None:
    dsn = empty_database("readme")
    shown = readme.code("Run a worker", "sh")
    script = shown.replace("postgresql://localhost/shop", shlex.quote(dsn))
    assert script != shown
    # The last command takes the shell's place, so that the signal is the worker's.
    script = script.replace("tenure worker", "exec tenure worker")
    environment = os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}", "PYTHONPATH": str(shop)}
    with (
        Tenure(dsn) as app,
        subprocess.Popen(
            ["sh", "-euc", script], cwd=shop, env=environment, stdout=subprocess.PIPE, text=True
        ) as worker,
    ):
        try:
            assert worker.stdout is not None
            assert "is at revision" in worker.stdout.readline()
            sent = app.enqueue("send_receipt", {"to": "ada@example.org"}, queue="mail")
            busy = app.enqueue("send_receipt", {"to": "ada@example.invalid"}, queue="mail")
            wrong = app.enqueue("send_receipt", {"to": "ada"}, queue="mail")
            empty = app.enqueue("send_receipt", {}, queue="mail")
            resized = app.enqueue("resize", {"images": 3})

            assert sent.result(PATIENCE) == {"sent": "ada@example.org"}
            assert resized.result(PATIENCE) is None
            for handle, said in [(wrong, "Fail: ada is no address"), (empty, "KeyError: 'to'")]:
                with pytest.raises(JobFailed, match=said):
                    handle.result(PATIENCE)
            eventually(
                lambda: (job := app.job(busy.job_id)) and job.shade == "retrying", "it is busy"
            )
            finished = app.job(resized.job_id)
            assert finished is not None
            assert finished.progress == {"done": 3}

            worker.send_signal(signal.SIGTERM)
            assert worker.wait(PATIENCE) == 0
        finally:
            worker.kill()


def test_a_web_app_enqueues_in_its_transaction_and_runs_a_worker_for_its_life(
    fresh_dsn: str, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(fresh_dsn, autocommit=True) as connection:
        connection.execute("create table orders (item text not null, customer text not null)")
    monkeypatch.setenv("TENURE_DSN", fresh_dsn)
    web: Any = importlib.import_module("web")

    async def serve() -> Any:
        async with web.lifespan(None):
            assert await asyncio.to_thread(web.jobs.enqueued) == []
            job_id = await asyncio.to_thread(web.buy, "a book", "ada@example.org")
            return await asyncio.to_thread(web.jobs.result, job_id, PATIENCE)

    try:
        assert asyncio.run(serve()) == {"sent": "ada@example.org"}
        with pytest.raises(Exception, match="null value"):
            web.buy(None, "bob@example.org")
        # The worker is gone with the application, and the failed request left no job behind.
        web.buy("another book", "eve@example.org")
        assert [job.payload for job in web.jobs.enqueued()] == [{"to": "eve@example.org"}]
    finally:
        web.jobs.close()
        web.engine.dispose()
