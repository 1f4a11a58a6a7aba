"""The sets of scripts whose interleavings are performed."""

from __future__ import annotations

from tests.schedules.statement_families import STATEMENTS
from tests.schedules.transaction_families import TRANSACTIONS

FAMILIES = (*STATEMENTS, *TRANSACTIONS)
BY_NAME = {family.name: family for family in FAMILIES}
assert len(BY_NAME) == len(FAMILIES)
