"""A signal to stop is heard whichever thread the system gives it to."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.runner.waiting import PATIENCE

PROGRAM = """
import signal, threading
from tenure.stop_signals import StopSignals

main = threading.main_thread().native_id

def sleeps():
    with open(f"/proc/self/task/{main}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0] == "S"

def interrupt():
    ready.wait()
    while not sleeps():
        pass
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

ready = threading.Event()
before = signal.set_wakeup_fd(-1)
signals = StopSignals()
with signals:
    threading.Thread(target=interrupt, daemon=True).start()
    ready.set()
    signals.wait()
print(signals.requested, signal.set_wakeup_fd(-1) == before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux whether a thread sleeps")
def test_a_signal_that_another_thread_is_given_ends_the_wait_of_the_main_one() -> None:
    said = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    ).stdout
    assert said == "True True\n"
