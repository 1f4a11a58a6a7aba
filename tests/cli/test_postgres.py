"""The commands on PostgreSQL, where a transaction elsewhere can hold a job's row."""

from __future__ import annotations

import psycopg

from tests.cli.conftest import Tenure


def test_a_job_can_be_followed_through_its_life(bare_tenure: Tenure, dsn: str) -> None:
    at = ["--dsn", dsn]
    enqueued = bare_tenure("enqueue", "mail", '{"to": "é"}', "--priority", 3, "--json", *at).json
    job_id = enqueued["job_id"]
    [listed] = bare_tenure("jobs", "--json", *at).json
    assert (listed["job_id"], listed["payload"], listed["priority"]) == (job_id, {"to": "é"}, 3)
    assert listed["created_at"].endswith("Z")

    with psycopg.connect(dsn, autocommit=True) as worker:
        [token] = (
            worker.execute("select token from tenure.claim('{default}', 'w')").fetchone() or ()
        )
        assert bare_tenure("cancel", job_id, *at).code == 0
        worker.execute("select tenure.acknowledge_cancel(%s, 'w', %s)", (job_id, token))

    shown = bare_tenure("show", job_id, "--json", *at).json
    assert shown["status"] == "cancelled"
    assert [attempt["outcome"] for attempt in shown["attempts"]] == ["cancelled"]
    assert bare_tenure("cancel", job_id, *at).out == f"job {job_id} is cancelled already\n"
    assert bare_tenure("retry", job_id, *at).out == f"job {job_id} is queued again\n"
    assert bare_tenure("pause", "default", *at).out == "queue default is paused\n"
    assert bare_tenure("queues", "--json", *at).json[0]["paused_at"].endswith("Z")
    assert bare_tenure("resume", "default", *at).code == 0
    assert bare_tenure("sweep", *at).out == "no lease has lapsed\n"


def test_a_row_that_is_held_says_by_which_process(bare_tenure: Tenure, dsn: str) -> None:
    job_id = bare_tenure("enqueue", "mail", "--json", "--dsn", dsn).json["job_id"]
    with psycopg.connect(dsn) as holder:
        holder.execute("select from tenure.job where id = %s for update", (job_id,))
        ran = bare_tenure("cancel", job_id, "--dsn", dsn)
        assert ran.code == 1
        assert f"server process {holder.info.backend_pid}" in ran.complaint
        assert "nothing was changed" in ran.complaint


def test_an_unknown_id_is_one_line(bare_tenure: Tenure, dsn: str) -> None:
    for verb in ("show", "cancel", "retry"):
        ran = bare_tenure(verb, 99, "--dsn", dsn)
        assert ran.code == 1
        assert ran.complaint.startswith("tenure: job 99 is unknown")


def test_a_job_that_enqueue_refuses_is_one_line(bare_tenure: Tenure, dsn: str) -> None:
    ran = bare_tenure("enqueue", "mail", "--queue", " x", "--dsn", dsn)
    assert ran.code == 1
    assert "queue has a blank at its edge: ' x'" in ran.complaint
