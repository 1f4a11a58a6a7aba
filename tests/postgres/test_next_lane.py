"""The next lane of a queue is the first that was met or holds a queued job, whatever else does."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.postgres.races import Connection

LANES = range(1, 21)
"""Lane n is of priority (n - 1) / 2, and solo when n is even."""


def fill(connection: Connection, lanes: list[int], queue: str, status: str = "queued") -> None:
    connection.execute(
        """
        insert into tenure.job
               (queue, kind, priority, solo, status, worker_id, claimed_at, lease_expires_at,
                next_attempt_at, created_at, max_attempts, token_limit)
        select %(queue)s, 'work', (l - 1) / 2, l %% 2 = 0, %(status)s::tenure.job_status,
               case when %(status)s = 'running' then 'ada' end,
               case when %(status)s = 'running' then '2031-01-01'::timestamptz end,
               case when %(status)s = 'running' then '2031-01-01'::timestamptz end,
               '2031-01-01', '2031-01-01', 5, 150
          from unnest(%(lanes)s::int[]) as l
        """,
        {"queue": queue, "status": status, "lanes": lanes},
    )


def test_the_next_lane_is_what_its_definition_says(session: Callable[[], Connection]) -> None:
    connection, dice = session(), random.Random(0)

    def some(share: float) -> list[int]:
        return [lane for lane in LANES if dice.random() < share]

    for _ in range(60):
        connection.execute("delete from tenure.job")
        queued, met = some(dice.choice([0.05, 0.2, 0.5])), some(dice.choice([0, 0.1, 0.3]))
        fill(connection, queued, "q")
        fill(connection, some(0.3), "q", "running")
        fill(connection, some(0.3), "another")
        floors = [0, 0, 0, 0, *(0 if lane in met else -1 for lane in LANES)]

        answers = connection.execute(
            "select p, tenure.next_lane('q', p, %s) from generate_series(0, 20) as p", [floors]
        ).fetchall()

        assert dict(answers) == {
            lane: min((n for n in {*queued, *met} if n > lane), default=None) for lane in range(21)
        }
