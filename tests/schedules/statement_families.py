"""Scripts of statements in autocommit, but for one late guard."""

from __future__ import annotations

from tests.schedules.beginnings import LAPSED, LEASED, SWEPT, TAKEN, TWO
from tests.schedules.play import Family, family

STATEMENTS: tuple[Family, ...] = (
    # Claims, renewals, completions; a sweep; time that goes on.
    family(
        "claim-sweep-clock",
        "ada: enqueue",
        ada="claim, renew, update, complete",
        broom="sweep, sweep",
        clock="lapse, lapse, lapse",
    ),
    family(
        "two-claims",
        "ada: enqueue",
        ada="candidate, claim_job, renew, complete",
        bob="candidate, claim_job, fail now, claim",
        clock="lapse",
    ),
    family(
        "claim-fail-sweep",
        "ada: enqueue twice",
        ada="claim, fail now, claim, fail",
        bob="claim, release, renew",
        broom="sweep, sweep",
    ),
    family(
        "lapse-on-the-last-attempt",
        "ada: enqueue once, claim",
        ada="renew, give back, claim",
        broom="sweep, sweep",
        clock="lapse, lapse, hour",
    ),
    family(
        "timeout",
        "ada: enqueue timed, claim",
        ada="renew, update anyway, complete",
        broom="sweep, sweep",
        clock="lapse, lapse, lapse",
    ),
    # A lapsed lease is handed on.
    family(
        "reclaim-renew-complete",
        LAPSED,
        ada="renew, update, complete",
        bob="lapsed, reclaim, give back",
        clock="lapse, lapse",
    ),
    family(
        "reclaim-early",
        LEASED,
        ada="renew, complete",
        bob="reclaim, reclaim, give back",
        clock="lapse, lapse",
    ),
    family(
        "reclaim-twice-sweep",
        LAPSED,
        bob="lapsed, reclaim, renew, complete",
        cleo="lapsed, reclaim, fail",
        broom="sweep, sweep",
    ),
    family(
        "reclaim-chain",
        TAKEN,
        ada="complete, fail",
        bob="renew, seal, complete",
        cleo="lapsed, reclaim, complete",
    ),
    # The outcome is sealed first.
    family(
        "seal-cancel-sweep",
        LAPSED,
        ada="update, seal, complete",
        olga="cancel, requested, retry",
        broom="sweep, sweep",
    ),
    family(
        "seal-reclaim",
        f"{LEASED}, seal; clock: lapse",
        ada="seal, fail, complete",
        bob="lapsed, reclaim, complete",
        broom="sweep, sweep",
    ),
    # A cancellation and whoever else ends the job.
    family(
        "cancel-fail",
        LEASED,
        ada="renew, fail now, complete",
        olga="cancel, retry, cancel",
        bob="claim, complete",
    ),
    family(
        "cancel-release",
        LEASED,
        ada="give back, claim, release",
        olga="cancel, retry twice",
        bob="claim, acknowledge, complete",
    ),
    family(
        "cancel-complete",
        LAPSED,
        ada="update, complete, acknowledge",
        olga="cancel, cancel, retry",
        broom="sweep, sweep",
    ),
    family(
        "cancel-reclaim",
        LAPSED,
        ada="update anyway, fail",
        bob="reclaim, acknowledge, give back",
        olga="cancel, retry",
    ),
    # A job that is run again, and verbs that come late.
    family(
        "retry-late",
        f"{LEASED}, fail for good",
        olga="retry, cancel, retry",
        bob="claim, complete",
        ada="fail, release, complete",
    ),
    family(
        "requeued-late",
        SWEPT,
        ada="renew, complete, claim",
        bob="claim, fail for good",
        olga="retry, retry",
    ),
    # Its own first lease comes back to a worker that has the job again.
    family(
        "own-late-verbs",
        SWEPT,
        ada="claim, renew, complete",
        ada2="late complete, late renew, late fail",
        broom="sweep",
        clock="lapse",
    ),
    family(
        "own-late-endings",
        SWEPT,
        ada="claim, fail now, claim",
        ada2="late release, late settle, late acknowledge",
        olga="cancel, retry",
    ),
    family(
        "own-late-guard",
        SWEPT,
        ada="claim, complete",
        ada2="begin, late guard, write, commit",
        ada3="late update, late seal",
    ),
    # Batches.
    family(
        "batch-sweep-clock",
        "ada: enqueue, enqueue",
        ada="claim 2, complete, give back b",
        broom="sweep, sweep",
        clock="lapse, lapse, lapse",
    ),
    family(
        "batch-solo",
        f"{TWO}; clock: lapse",
        ada="renew both, give back b, complete",
        bob="claim 2, claim 2 but solo, complete",
        broom="sweep, sweep",
    ),
    family(
        "batch-reclaim",
        f"{TWO}; clock: lapse",
        ada="complete, renew both",
        bob="reclaim b, give back b, claim 2",
        broom="sweep, sweep",
    ),
    family(
        "settle-single",
        TWO,
        ada="settle, settle",
        ada2="complete b, release, renew both",
        olga="cancel, cancel b",
    ),
    # A queue is stopped.
    family(
        "pause-claim",
        "ada: enqueue",
        olga="pause, resume, pause",
        ada="claim, give back, claim",
        bob="candidate, claim_job",
    ),
)
