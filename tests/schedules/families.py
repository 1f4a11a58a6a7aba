"""The sets of scripts whose interleavings are performed."""

from __future__ import annotations

from tests.schedules.play import Family, family

LEASED = "ada: enqueue, claim_job"
LAPSED = f"{LEASED}; clock: lapse"
TAKEN = "ada: enqueue, claim_job; clock: lapse; bob: reclaim"
SWEPT = f"{LAPSED}; broom: sweep; clock: hour"
TWO = "ada: enqueue, enqueue, claim 2"

FAMILIES: tuple[Family, ...] = (
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
    # The application's transaction under guard.
    family(
        "guard-reclaim",
        LAPSED,
        ada="begin, guard, write, complete, commit",
        bob="lapsed, reclaim, give back",
        clock="lapse",
    ),
    family(
        "guard-sweep-cancel",
        LAPSED,
        ada="begin, guard, write, complete, commit",
        broom="sweep, sweep",
        olga="cancel, retry",
    ),
    family(
        "guard-guard-cancel",
        LEASED,
        ada="begin, guard, write, complete, commit",
        ada2="begin, guard, write, rollback",
        olga="cancel",
    ),
    family(
        "guard-proved-twice",
        LAPSED,
        ada="begin, guard, write, guard, commit",
        broom="sweep",
        bob="reclaim, complete",
    ),
    family(
        "guard-anyway-cancel",
        LEASED,
        ada="begin, guard anyway, write, acknowledge, commit",
        ada2="renew, complete",
        olga="cancel, cancel",
    ),
    family(
        "guard-vanishes",
        LAPSED,
        ada="begin, guard, write, update anyway",
        olga="cancel, requested",
        ada2="renew, begin, guard, commit",
    ),
    family(
        "guard-late",
        TAKEN,
        ada="begin, guard, write, commit",
        bob="begin, guard, write, complete, commit",
        olga="cancel",
    ),
    family(
        "guard-lapses",
        LEASED,
        ada="begin, guard, write, complete, commit",
        broom="sweep, sweep",
        clock="lapse, lapse",
    ),
    # Verbs left uncommitted.
    family(
        "complete-uncommitted",
        LAPSED,
        ada="begin, complete, rollback, renew",
        broom="sweep, sweep",
        bob="lapsed, reclaim, complete",
    ),
    family(
        "complete-committed",
        LAPSED,
        ada="begin, complete, commit, complete",
        ada2="renew, fail, complete",
        olga="cancel, retry",
    ),
    family(
        "fail-uncommitted",
        LEASED,
        ada="begin, fail now, commit",
        bob="claim, complete, held",
        olga="cancel, retry",
    ),
    family(
        "cancel-uncommitted",
        LAPSED,
        olga="begin, cancel, commit",
        ada="renew, seal, complete",
        broom="sweep, sweep",
    ),
    family(
        "cancel-rolled-back",
        LEASED,
        olga="begin, cancel, rollback",
        olga2="cancel, retry",
        ada="renew, complete, acknowledge",
    ),
    family(
        "retry-uncommitted",
        f"{LEASED}, fail for good",
        olga="begin, retry, commit",
        olga2="retry, cancel",
        bob="claim, complete, claim",
    ),
    family(
        "claim_job-uncommitted",
        "ada: enqueue",
        ada="begin, claim_job, commit, complete",
        bob="candidate, claim_job, complete",
        olga="cancel",
    ),
    family(
        "claim_job-rolled-back",
        "ada: enqueue",
        ada="begin, claim_job, rollback, claim_job",
        bob="begin, claim_job, commit, complete",
        olga="cancel",
    ),
    family(
        "reclaim-uncommitted",
        LAPSED,
        bob="begin, reclaim, commit, complete",
        ada="renew, complete",
        broom="sweep, sweep",
    ),
    family(
        "reclaim-rolled-back",
        LAPSED,
        bob="begin, reclaim, rollback",
        ada="begin, guard, write, commit",
        cleo="reclaim, release",
    ),
    family(
        "claim-uncommitted",
        "ada: enqueue, enqueue",
        ada="begin, claim 2, rollback, claim 2",
        bob="claim, complete, claim",
        olga="pause, resume",
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
        "seal-uncommitted",
        LAPSED,
        ada="begin, seal, commit, complete",
        olga="cancel, cancel",
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
    family(
        "settle-uncommitted",
        TWO,
        ada="settle, settle back",
        ada2="begin, complete b, commit",
        olga="cancel, cancel b",
    ),
    family(
        "settle-guard",
        f"{TWO}; clock: lapse",
        ada="settle, settle back",
        ada2="begin, guard b, write, commit",
        broom="sweep, sweep",
    ),
    # A dedup key, and the end of the job that has it.
    family(
        "key-complete",
        "pat: enqueue keyed; ada: claim",
        pat="enqueue keyed, enqueue keyed",
        ada="begin, complete, commit",
        olga="cancel, retry",
    ),
    family(
        "key-guard",
        "pat: enqueue keyed; ada: claim",
        pat="enqueue keyed, enqueue keyed",
        ada="begin, guard, complete, rollback",
        broom="sweep",
    ),
    family(
        "key-producers",
        "ada: held",
        pat="begin, enqueue keyed, commit",
        quin="begin, enqueue keyed, rollback",
        ada="claim, complete",
    ),
    family(
        "key-cancel-retry",
        "pat: enqueue keyed",
        pat="begin, enqueue keyed, commit, enqueue keyed",
        olga="cancel, retry, cancel",
        ada="claim, complete",
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

BY_NAME = {family.name: family for family in FAMILIES}
