"""Which locks a sleeper lets go of: its own keys and no others."""

from __future__ import annotations

from collections.abc import Callable

from tests.postgres.races import Connection, call
from tests.postgres.test_wakeups import advisory_locks

Session = Callable[[], Connection]

OTHERS = """
select pg_advisory_lock_shared((tenure.install_key()::bigint << 32) + 5) as one_number,
       pg_advisory_lock(tenure.install_key(), 6) as exclusive,
       pg_advisory_lock_shared(tenure.install_key() - 1, 7) as of_another_install
"""
"""An application's locks, of forms that are nearly those of a sleeper."""


def test_the_end_of_a_sleep_lets_go_of_its_keys_and_tries_no_other_lock(session: Session) -> None:
    sleeper, beside = session(), session()
    call(beside, "sleep_begin", ["r"])
    before = advisory_locks(beside)
    sleeper.execute(OTHERS)
    call(sleeper, "sleep_begin", ["q"])
    assert advisory_locks(sleeper) > 3

    warnings: list[str] = []
    sleeper.add_notice_handler(lambda notice: warnings.append(notice.message_primary or ""))
    call(sleeper, "sleep_end")

    assert warnings == []
    assert advisory_locks(sleeper) == 3
    assert advisory_locks(beside) == before
