"""How the families of schedules begin."""

from __future__ import annotations

LEASED = "ada: enqueue, claim_job"
LAPSED = f"{LEASED}; clock: lapse"
TAKEN = "ada: enqueue, claim_job; clock: lapse; bob: reclaim"
SWEPT = f"{LAPSED}; broom: sweep; clock: hour"
TWO = "ada: enqueue, enqueue, claim 2"
