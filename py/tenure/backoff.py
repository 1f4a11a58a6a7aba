"""Growing, jittered pauses between tries."""

from __future__ import annotations

import random
from collections.abc import Iterator


def pauses(first: float, most: float) -> Iterator[float]:
    """Seconds to wait before each further try: doubling from `first` to `most`, less up to a third.

    The jitter keeps workers that lost the same server from coming back at the same instant.
    """
    pause = first
    while True:
        yield pause * random.uniform(2 / 3, 1)
        pause = min(most, pause * 2)
