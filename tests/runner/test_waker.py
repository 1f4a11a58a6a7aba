"""When the wakes for committed jobs are sent."""

from __future__ import annotations

import queue
import time
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from tenure.waker import Waker

SOON = 10.0


@pytest.fixture
def sent() -> queue.Queue[list[str]]:
    return queue.Queue()


@pytest.fixture
def waker(sent: queue.Queue[list[str]]) -> Iterator[Waker]:
    waker = Waker(sent.put)
    yield waker
    waker.close()


def test_what_is_noted_while_the_waker_pauses_is_sent_together_after_it(
    waker: Waker, sent: queue.Queue[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenure.waker.EVERY", 0.2)
    began = time.monotonic()
    waker.note(["a"])
    assert sent.get(timeout=SOON) == ["a"]

    for name in "bcb":
        waker.note([name])

    assert sent.get(timeout=SOON) == ["b", "c"]
    assert time.monotonic() - began >= 0.2
    assert waker.flush()
    assert sent.empty()


def test_every_note_is_sent_however_the_waker_stands(
    waker: Waker, sent: queue.Queue[list[str]]
) -> None:
    """Some come while it waits for one, some while it wakes, some while it pauses."""
    for n in range(300):
        waker.note([str(n)])
        time.sleep(0.001 * (n % 9))

    assert waker.flush()
    assert [int(name) for names in sent.queue for name in names] == list(range(300))


def test_a_commit_wakes_by_itself_while_there_is_nothing_to_send(
    waker: Waker, sent: queue.Queue[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr("tenure.waker.time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr("tenure.waker.EVERY", 0.2)
    began = time.monotonic()
    assert waker.yields()
    assert not waker.yields()

    waker.note(["a"])
    assert not waker.yields()

    assert sent.get(timeout=SOON) == ["a"]
    assert time.monotonic() - began >= 0.2
    assert waker.flush()
    assert not waker.yields()
    now[0] += 0.2
    assert waker.yields()


def test_a_waker_that_pauses_closes_at_once_and_can_be_used_again(
    waker: Waker, sent: queue.Queue[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenure.waker.EVERY", 600.0)
    for name in "ab":
        waker.note([name])
        assert sent.get(timeout=SOON) == [name]
        thread = waker._thread
        waker.close()
        assert thread is not None
        assert not thread.is_alive()
