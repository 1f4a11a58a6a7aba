"""Worker ids: what would let two workers be taken for one."""

from __future__ import annotations

import os
import socket

import pytest

from tenure import new_worker_id


def test_no_two_calls_return_the_same_worker_id() -> None:
    assert len({new_worker_id() for _ in range(10_000)}) == 10_000


def test_a_forked_process_makes_worker_ids_of_its_own() -> None:
    # One call before the fork, so that state kept from it would be inherited.
    new_worker_id()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, new_worker_id().encode())
        os._exit(0)
    here = new_worker_id()
    os.waitpid(child, 0)

    there = os.read(reader, 1000).decode()
    os.close(reader)
    os.close(writer)

    assert there != here
    assert f":{child}:" in there
    assert f":{os.getpid()}:" in here


def test_a_worker_id_is_a_valid_name_on_a_host_with_an_odd_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: " bücher\n" + "x" * 1000)

    worker_id = new_worker_id()

    assert len(worker_id.encode()) <= 256
    assert worker_id == worker_id.strip()
    assert worker_id.isprintable()
