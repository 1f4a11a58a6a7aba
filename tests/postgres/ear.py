"""Hears what is sent on tenure's channel."""

from __future__ import annotations

import pytest

from tests.postgres.races import Connection, one


class Ear:
    """Listens without showing it: a listener that no producer can know of."""

    def __init__(self, listening: Connection, speaking: Connection) -> None:
        (self._channel,) = one(listening, "channel")
        listening.execute(f"listen {self._channel}")
        self._listening, self._speaking = listening, speaking

    def heard(self) -> list[str]:
        """What was sent since it was last asked."""
        # Notifications come in the order of commits, so before this one come all others.
        self._speaking.execute("select pg_notify(%s, 'now')", [self._channel])
        heard: list[str] = []
        for notification in self._listening.notifies(timeout=10):
            if notification.payload == "now":
                return heard
            heard.append(notification.payload)
        pytest.fail("the notification that ends the others did not come")
