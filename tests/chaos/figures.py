"""What happened in a soak, counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from tests.chaos.checker import Lives
from tests.chaos.history import History
from tests.chaos.steps import Step


def figures(history: History, lives: Lives, done: Mapping[str, int]) -> dict[str, int]:
    """Name to number, in the order in which they are printed; `done` are the faults."""
    steps = Counter(taken.step for life in lives.values() for taken in life)
    ends = Counter(row.status for row in history.rows)
    lapses = Counter(lapse.outcome for lapse in history.lapses)
    accepted = Counter(act.verb for act in history.acts if act.verdict == "ok")
    sweeps = (Step.SWEPT, Step.REFUNDED, Step.SWEPT_FAILED, Step.SWEPT_CANCELLED, Step.HEALED)
    return {
        "jobs": len(history.rows),
        **{f"  {status}": ends[status] for status in ("completed", "failed", "cancelled")},
        "leases": steps[Step.CLAIMED] + steps[Step.RECLAIMED],
        "starts": len(history.starts),
        "row versions": len(history.versions),
        **done,
        "batches not answered": sum(batch.job_ids is None for batch in history.batches),
        "operator's calls not answered": sum(act.verdict is None for act in history.acts),
        "cancellations accepted": accepted["cancel"],
        "  while running": sum(
            taken.before is not None
            and taken.after.cancel_requested
            and not taken.before.cancel_requested
            for life in lives.values()
            for taken in life
        ),
        "retries accepted": accepted["retry"],
        "leases lapsed": sum(steps[step] for step in sweeps),
        "  recovered": steps[Step.SWEPT] + steps[Step.REFUNDED],
        "  refunded, made solo": steps[Step.REFUNDED],
        "  failed on the last attempt": steps[Step.SWEPT_FAILED],
        "  healed": steps[Step.HEALED],
        "  timed out": lapses["timed out"],
        "given back unstarted": steps[Step.GIVEN_BACK],
        "leases lost by runners": history.lost,
        "effects in job.transaction()": len(history.effects),
    }
