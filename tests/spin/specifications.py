"""The specifications, the sizes in which they hold and the variants in which they must not."""

from __future__ import annotations

from tests.spin.specification import Size, Specification, Variant

LEASE = Specification(
    "lease.pml",
    rest="no job is lost: it ends",
    sizes=(
        Size("2 workers, 3 attempts, a retry", "-DMAX_ATTEMPTS=3"),
        Size("3 workers, 2 attempts", "-DWORKERS=3 -DRETRIES=0 -DCANCELS=1 -DTOKEN_LIMIT=2"),
        Size("2 workers, 2 attempts", "-DRETRIES=0 -DCANCELS=1 -DTOKEN_LIMIT=2", liveness=True),
    ),
    small="",
    variants=(
        Variant("WITHOUT_TOKEN", "a worker's verb proves the worker_id alone"),
        Variant("ATTEMPT_FOR_TOKEN", "a worker's verb proves the attempt, which is refunded"),
        Variant("CLAIM_MINTS_NOTHING", "a claim leaves the token as it is"),
        Variant("CLAIM_TRUSTS_CANDIDATE", "claim_job believes what was read before"),
        Variant("RECLAIM_WITHOUT_INSTANT", "reclaim does not pin the lease's instant"),
        Variant("RECLAIM_WITHOUT_PIN", "reclaim pins neither the instant nor that it is past"),
        Variant("REFUND_AFTER_RECLAIM", "a lease that was taken over is released for free"),
        Variant("SEAL_FORGETS_CANCEL", "seal does not look for a cancellation"),
        Variant("COMPLETE_FORGETS_CANCEL", "complete does not look for a cancellation"),
        Variant("SETTLE_FORGETS_CANCEL", "fail and release do not look for a cancellation"),
        Variant("GUARD_HOLDS_NOTHING", "guard tests the row and does not hold it"),
        Variant("SWEEP_FORGETS_CANCEL", "the sweep does not look for a cancellation"),
        Variant("SWEEP_FORGETS_SEAL", "the sweep does not look for a seal"),
        Variant("SWEEP_WITHOUT_SOLO", "the sweep refunds a batch's lapse, and solo is not set"),
        Variant("CANCEL_FORGETS_SEAL", "cancel does not look for a seal"),
        Variant("RETRY_RESETS_TOKEN", "retry begins the tokens anew"),
        Variant("WITHOUT_SWEEP", "nobody sweeps"),
        Variant(
            "WITHOUT_TIMEOUT",
            "a handler that hangs is renewed without end",
            "-DRETRIES=0 -DCANCELS=0 -DRECLAIMS=0",
            liveness=True,
        ),
    ),
)

SLEEP = Specification(
    "sleep.pml",
    rest="no wake-up is lost: no job waits for ever",
    sizes=(
        Size("2 workers, 2 producers", "-DWORKERS=2 -DPRODUCERS=2"),
        Size("1 worker, 3 producers", "-DWORKERS=1 -DPRODUCERS=3"),
        Size("1 worker, 2 producers", "-DWORKERS=1 -DPRODUCERS=2", liveness=True),
    ),
    small="-DWORKERS=1 -DPRODUCERS=1",
    variants=(
        Variant("WITHOUT_HORIZON", "a sleeper waits for no transaction", "-DCLAIMERS=0 -DCUTS=0"),
        Variant(
            "HORIZON_IS_XMAX",
            "the horizon is pg_snapshot_xmax: the latest completed xid + 1",
            "-DCLAIMERS=0 -DCUTS=0",
        ),
        Variant(
            "WITHOUT_LAST_CLAIM",
            "a sleeper that settled does not look again",
            "-DCLAIMERS=0 -DCUTS=0",
        ),
        Variant(
            "KEYS_AFTER_HORIZON",
            "a sleeper notes its horizon before it shows its key",
            "-DCLAIMERS=0 -DCUTS=0",
        ),
        Variant(
            "LOOK_BEFORE_XID",
            "a producer looks for sleepers before it writes",
            "-DCLAIMERS=0 -DCUTS=0",
        ),
        Variant(
            "WAKE_BEFORE_COMMIT",
            "a producer with notify => false calls wake before its commit",
            "-DCLAIMERS=0 -DCUTS=0",
        ),
        Variant(
            "WITHOUT_NEXT_DUE",
            "a sleeper does not ask whether a due row was skipped",
            "-DCUTS=0",
        ),
        Variant(
            "NEXT_DUE_ONCE",
            "a sleeper does not ask for the next due time after a notification",
            "-DCLAIMERS=0 -DCUTS=0",
        ),
        Variant(
            "RECONNECT_DOZES",
            "a sleeper whose listener reconnects only listens again",
            "-DCLAIMERS=0",
        ),
        Variant(
            "HELD_FOR_EVER",
            "a claim whose client vanished stays open",
            "-DCUTS=0",
            liveness=True,
        ),
    ),
)

FLOOR = Specification(
    "floor.pml",
    rest="every writer ends",
    sizes=(
        Size("2 sessions, 2 writers", "-DSESSIONS=2 -DWRITERS=2"),
        Size("1 session, 3 writers", "-DSESSIONS=1 -DWRITERS=3"),
    ),
    small="-DSESSIONS=1 -DWRITERS=1",
    variants=(
        Variant("CLOCK_BEFORE_XID", "a writer reads the clock before it has an xid"),
        Variant("WITHOUT_TABLE_LOCK", "a writer has the table lock only once it inserts"),
        Variant("KEEPS_PAST_DUE_TIME", "a writer stores a due time in the past"),
        Variant("HORIZON_IS_XMAX", "the horizon is pg_snapshot_xmax: the latest completed xid + 1"),
        Variant("T_AFTER_XID", "T is read in a transaction that has an xid already"),
        Variant("MINIMUM_BEFORE_TEST", "the first row is read before the writers have ended"),
        Variant("MINIMUM_SKIPS_LOCKED", "the first row is read without those that a claim holds"),
    ),
)

SPECIFICATIONS = (LEASE, SLEEP, FLOOR)
