"""The sweep reads its candidates before it takes the write lock."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tenure.sqlite import SqliteControlPlane
from tenure.sqlite_records import SqliteRecords
from tenure.values import JobStatus, LeaseRenewal
from tests.sqlite.conftest import Clock


def test_a_renewal_between_the_read_and_the_write_wins(
    control_plane: SqliteControlPlane, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    control_plane.enqueue("mail", "send")
    [lease] = control_plane.claim(["mail"], "ada")
    clock.now = lease.lease_expires_at
    write: Callable[..., Any] = control_plane._database.write
    renewals = []

    def renew_first(*arguments: Any, **options: Any) -> Any:
        monkeypatch.undo()
        renewals.extend(control_plane.renew("ada", [(lease.job_id, lease.token)]))
        return write(*arguments, **options)

    monkeypatch.setattr(control_plane._database, "write", renew_first)

    assert control_plane.sweep("broom") == []

    [renewal] = renewals
    assert renewal.outcome is LeaseRenewal.RENEWED
    assert [held.token for held in control_plane.held("ada")] == [lease.token]


def test_a_row_that_cannot_be_decided_does_not_keep_the_others_from_it(
    control_plane: SqliteControlPlane,
    records: SqliteRecords,
    raw: sqlite3.Connection,
    clock: Clock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    one, bad, other = (control_plane.enqueue("mail", "send").job_id for _ in range(3))
    for _ in range(3):
        control_plane.claim(["mail"], "ada")
    raw.execute(
        f"create trigger cursed before insert on tenure_attempt when new.job_id = {bad}"
        " begin select raise(abort, 'cursed'); end"
    )
    clock.advance(timedelta(minutes=1))

    swept = control_plane.sweep("broom")

    assert [s.job_id for s in swept] == [one, other]
    assert f"job {bad} could not be swept: cursed" in caplog.text
    left = records.job(bad)
    assert left is not None
    assert (left.status, left.token) == (JobStatus.RUNNING, 1)


def test_an_idle_sweep_does_not_take_the_write_lock(
    control_plane: SqliteControlPlane, raw: sqlite3.Connection
) -> None:
    raw.execute("begin immediate")

    assert control_plane.sweep("broom") == []
