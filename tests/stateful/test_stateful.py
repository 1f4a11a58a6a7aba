"""Both databases live the same random lives, and answer alike at every step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.contract.backends import Pool
from tests.stateful.lives import Lives
from tests.tools import databases


@pytest.fixture
def lives(template: str, tmp_path: Path) -> Iterator[Lives]:
    with (
        databases.database(databases.new_name("stateful"), template=template) as name,
        closing(Pool(databases.url(name))) as pool,
    ):
        yield Lives(pool, tmp_path)


@pytest.mark.timeout(300)
def test_both_databases_answer_alike_through_random_lives(lives: Lives) -> None:
    lives.run(examples=50, steps=40)
