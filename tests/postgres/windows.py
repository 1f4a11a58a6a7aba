"""Opens a window inside one statement of a function: after it saw a row, before it locked it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.postgres.races import Connection, pid

_WINDOW = 11


class Window:
    """Holds a function of the test's database up at one of its predicates.

    The function is made anew with one more predicate beside the given one, which waits as long
    as the window is open to its session and is then true. The statement has its snapshot by
    then, and no lock on a row.
    """

    def __init__(self, keeper: Connection, function: str, beside: str) -> None:
        self.keeper = keeper
        keeper.execute(_HOLD)
        [(source,)] = keeper.execute(
            """
            select pg_get_functiondef(p.oid)
              from pg_proc as p
             where p.pronamespace = 'tenure'::regnamespace and p.proname = %s
            """,
            [function],
        ).fetchall()
        assert source.count(beside) == 1
        keeper.execute(source.replace(beside, f"{beside} and hold()").encode())

    @contextmanager
    def open(self, to: Connection) -> Iterator[None]:
        """Hold one session up there for as long as the block lasts."""
        self.keeper.execute("select pg_advisory_lock(%s, %s)", [_WINDOW, pid(to)])
        try:
            yield
        finally:
            self.keeper.execute("select pg_advisory_unlock_all()")


_HOLD = f"""
create or replace function tenure.hold()
  returns boolean
  language plpgsql
  volatile
as $$
begin
  perform pg_advisory_lock_shared({_WINDOW}, pg_backend_pid()),
          pg_advisory_unlock_shared({_WINDOW}, pg_backend_pid());
  return true;
end;
$$;
"""
