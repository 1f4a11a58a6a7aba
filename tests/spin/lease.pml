/*
 * The lease protocol: who may write a job's row, and where the job goes.
 *
 * One row of `job`; workers, of which two bear one name, as a paused one and its successor
 * might; a sweeper, an operator and the clock. Each verb is one step, as each is one statement
 * in sql/functions; reading a candidate, or a lapsed lease, and acting on it are two. Calls
 * that change nothing (deferred, already, lost, sealed, refused) are left out; but a worker
 * that ended or lost its lease knows only once it hears. A worker may stop at any point for as
 * long as it likes, so act late, and may die.
 *
 * Abstracted away: payloads, results and progress; all other jobs, so a batch is a lease marked
 * `buffered`; lengths of time: a lease lapses, and a backoff ends, when the clock process says
 * so. lease_expires_at is the number of the renewal: a pin compares no more. A handler may have
 * started under any lease but one that is released as not started. Renewals are bounded, as by
 * a timeout; so are reclaims, cancellations and retries. Attempts and tokens are bounded by the
 * contract alone, with a token_limit that is soon met.
 *
 * The comment beside an assertion names the property. The number beside a worker's name is its
 * process.
 */

#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef MAX_ATTEMPTS
#define MAX_ATTEMPTS 2
#endif
#ifndef TOKEN_LIMIT
#define TOKEN_LIMIT 4
#endif
#ifndef RENEWALS
#define RENEWALS 1
#endif
#ifndef RECLAIMS
#define RECLAIMS 1
#endif
#ifndef CANCELS
#define CANCELS 2
#endif
#ifndef RETRIES
#define RETRIES 1
#endif

mtype = { none, ada, bob };
mtype = { queued, running, completed, failed, cancelled };
mtype = { fail, fail_for_good, release, acknowledge_cancel };

/* The row. */
mtype status = queued;
mtype owner = none;             /* worker_id */
byte  token;
byte  token_limit = TOKEN_LIMIT;
byte  attempt;
byte  max_attempts = MAX_ATTEMPTS;
byte  instant;                  /* lease_expires_at */
bool  lapsed;                   /* lease_expires_at <= clock() */
bool  due = true;               /* next_attempt_at <= clock() */
bool  buffered, solo, reclaimed, cancel_requested, sealed;
byte  lock;                     /* the process whose open transaction holds the row */

/* What only the properties read. */
byte  holder;                   /* the process that has the current lease */
byte  free_starts;              /* refunded though perhaps started, since the last report */
bool  cancel_accepted, was_sealed;
mtype was_status = queued;
byte  was_token;

byte  reclaims, cancels, retries;

#define ended(s)   (s == completed || s == failed || s == cancelled)
#define to_cancel  (status == cancelled || (status == running && cancel_requested))
#define to_heal    (status == completed || status == running)

#ifdef WITHOUT_TOKEN
#define owned   (status == running && owner == me)
#else
#ifdef ATTEMPT_FOR_TOKEN
#define owned   (attempt == held_attempt && owner == me)
#else
#define owned   (token == held && owner == me)
#endif
#endif
#define mine    (held && !lock && owned)

inline kept_promises(by_retry) {
    assert(token >= was_token);                         /* tokens only grow */
    assert(attempt <= max_attempts);                    /* attempts are bounded */
    assert(free_starts <= 1);                           /* one start more, out of a batch */
    assert(!cancel_accepted || to_cancel);              /* an accepted cancellation holds */
    assert(!was_sealed || to_heal);                     /* what is sealed never runs again */
    assert(by_retry || !ended(was_status) || status == was_status); /* only retry leaves an end */
    assert((status == running) == (owner != none));     /* running means owned */
    assert(status != queued || attempt < max_attempts); /* queued means claimable */
    was_status = status;
    was_token = token
}

inline by_owner() {
    assert(holder == _pid)                              /* one owner: nobody else writes */
}

inline forget() {
#ifdef ATTEMPT_FOR_TOKEN
    held_attempt = 0;
#endif
    held = 0
}

inline lend(step) {
    token = token + step;
    owner = me;
    held = token;
#ifdef ATTEMPT_FOR_TOKEN
    held_attempt = attempt;
#endif
    holder = _pid;
    instant = 0;
    lapsed = false
}

inline end(as) {
    status = as;
    owner = none; holder = 0;
    instant = 0; lapsed = false;
    buffered = false; solo = false; reclaimed = false; cancel_requested = false; sealed = false;
    due = true
}

inline requeue(refund, as_solo, at_once) {
    status = queued;
    owner = none; holder = 0;
    instant = 0; lapsed = false;
    attempt = attempt - refund;
    solo = as_solo;
    buffered = false; reclaimed = false;
    due = at_once
}

#ifdef CLAIM_MINTS_NOTHING
#define minted (token == 0)
#else
#define minted 1
#endif

/* claim.sql and claim_job.sql: the same update. */
inline claim(in_batch) {
    assert(holder == 0);                                /* one owner: nobody else has it */
    assert(!was_sealed);                                /* what is sealed never runs again */
    status = running;
    attempt++;
    buffered = in_batch && !solo;
    lend(minted)
}

/* settle_jobs.sql, `decided`: where a lease that ends without completion leaves the job. */
inline settle() {
    if
#ifndef SETTLE_FORGETS_CANCEL
    :: cancel_requested -> end(cancelled)
#else
    :: verb == acknowledge_cancel -> end(cancelled)
#endif
    :: else ->
        if
        :: verb == fail_for_good -> end(failed)
        :: verb == release && token >= token_limit -> end(failed)
        :: else ->
            if
            :: refund || attempt < max_attempts ->
                requeue(refund, !reported && (solo || (reclaimed && buffered)), verb == release)
            :: else -> end(failed)
            fi
        fi
    fi
}

#ifdef REFUND_AFTER_RECLAIM
#define refundable true
#else
#define refundable (buffered || !reclaimed)
#endif

proctype Worker(mtype me) {
    byte held;                  /* the token of the lease that it believes to have */
#ifdef ATTEMPT_FOR_TOKEN
    byte held_attempt;
#endif
    bool candidate;
    mtype verb = none;          /* of the statement under way */
    bool refund, reported;
    byte pinned;                /* of lapsed(): token, owner, instant */
    mtype pinned_owner = none;
    byte pinned_instant;

end_idle:
    do
    /* next_eligible_job_id.sql: a read, which reserves nothing. */
    :: atomic { !held && !candidate && !pinned && status == queued && due ->
            candidate = true;
            printf("%e %d sees that the job is due\n", me, _pid) }

    /* claim_job.sql: compare and swap on the candidate. */
    :: atomic { candidate ->
            candidate = false;
            if
#ifdef CLAIM_TRUSTS_CANDIDATE
            :: !ended(status) ->
#else
            :: status == queued && due ->
#endif
                printf("%e %d claims it, token %d\n", me, _pid, token + minted);
                claim(false)
            :: else ->
                printf("%e %d claims too late\n", me, _pid)
            fi;
            kept_promises(false) }

    /* claim.sql, more than one job: chosen and locked in one statement. */
    :: atomic { !held && !candidate && !pinned && status == queued && due ->
            printf("%e %d claims it in a batch, token %d\n", me, _pid, token + minted);
            claim(true);
            kept_promises(false) }

    /* lapsed.sql: a read; reclaim.sql: pins what was read, and that it still holds. */
    :: atomic { !held && !candidate && !pinned && status == running && lapsed &&
                reclaims < RECLAIMS ->
            pinned = token; pinned_owner = owner; pinned_instant = instant;
            printf("%e %d sees lease %d lapsed\n", me, _pid, token) }
    :: atomic { pinned ->
            if
#ifdef RECLAIM_WITHOUT_INSTANT
            :: status == running && token == pinned && owner == pinned_owner && lapsed && !lock ->
#else
#ifdef RECLAIM_WITHOUT_PIN
            :: status == running && token == pinned && owner == pinned_owner && !lock ->
#else
            :: status == running && token == pinned && owner == pinned_owner &&
               instant == pinned_instant && lapsed && !lock ->
#endif
#endif
                printf("%e %d reclaims it, token %d\n", me, _pid, token + 1);
                assert(lapsed);                         /* only a lapsed lease is taken over */
                assert(instant == pinned_instant);      /* a renewal in between wins */
                reclaims++;
                reclaimed = true;
                lend(1)
            :: else ->
                printf("%e %d reclaims too late\n", me, _pid)
            fi;
            pinned = 0; pinned_owner = none; pinned_instant = 0;
            kept_promises(false) }

    /* renew.sql: the token decides, not the clock. */
    :: atomic { mine && instant < RENEWALS ->
            printf("%e %d renews lease %d\n", me, _pid, held);
            by_owner();
#ifndef WITHOUT_TIMEOUT
            instant++;
#endif
            lapsed = false;
            kept_promises(false) }

    /* seal.sql: refused when a cancellation stands. */
    :: atomic {
#ifndef SEAL_FORGETS_CANCEL
            !cancel_requested &&
#endif
            mine && !sealed ->
            printf("%e %d seals the outcome under token %d\n", me, _pid, held);
            by_owner();
            assert(!cancel_accepted);                   /* an accepted cancellation holds */
            sealed = true;
            was_sealed = true;
            kept_promises(false) }

    /* complete.sql: changes nothing when a cancellation stands. */
    :: atomic {
#ifndef COMPLETE_FORGETS_CANCEL
            !cancel_requested &&
#endif
            mine ->
            printf("%e %d completes the job under token %d\n", me, _pid, held);
            by_owner();
            end(completed);
            kept_promises(false) }

    /* fail.sql, release.sql, acknowledge_cancel.sql: refused once sealed. To fail for good is to
       be not retryable, or to give the job up. */
    :: atomic { mine && !sealed ->
            if
            :: verb = fail; reported = true
            :: verb = fail_for_good; reported = true
            :: !reclaimed -> verb = release; reported = true
            :: verb = release; refund = refundable;
               free_starts = free_starts + (refund && reclaimed)
            :: cancel_requested -> verb = acknowledge_cancel; reported = true
            fi;
            if
            :: reported -> free_starts = 0
            :: else
            fi;
            printf("%e %d calls %e under token %d\n", me, _pid, verb, held);
            by_owner();
            settle();
            verb = none; refund = false; reported = false;
            kept_promises(false) }

    /* guard.sql: one update that tests, and holds the row to the end of the transaction. It
       extends the lease, so counts as a renewal. A rollback leaves all as it was: no step. */
    :: atomic { mine && instant < RENEWALS && !cancel_requested ->
            printf("%e %d guards a transaction by token %d\n", me, _pid, held);
            by_owner();
#ifndef GUARD_HOLDS_NOTHING
            lock = _pid
#endif
        };
        if
        :: atomic { true ->
            printf("%e %d commits what it wrote under guard\n", me, _pid);
            by_owner();
            assert(!cancel_requested);                  /* no cancellation comes in between */
            instant++;
            lapsed = false;
            lock = 0;
            kept_promises(false) }
        /* job.transaction(): complete is the last statement. */
        :: atomic { owned && !cancel_requested ->
            printf("%e %d completes and commits under guard\n", me, _pid);
            by_owner();
            lock = 0;
            end(completed);
            kept_promises(false) }
        :: atomic { true ->
            lock = 0;
            printf("%e %d dies in its transaction\n", me, _pid);
            forget() }
        fi

    /* It hears that it has lost its lease, or ended it. Until then it may call again, as after
       a disconnect; the answer is `lost` or `already`. */
    :: atomic { held && !owned ->
            printf("%e %d hears that lease %d is over\n", me, _pid, held);
            forget() }

    :: atomic { held ->
            printf("%e %d dies\n", me, _pid);
            forget() }
    od
}

/* sweep_jobs.sql: rows that somebody holds are skipped; the decision mints a token. */
proctype Sweeper() {
end_idle:
    do
    :: atomic { status == running && lapsed && !lock ->
            token++;
            if
#ifndef SWEEP_FORGETS_SEAL
            :: sealed -> end(completed)
#endif
            :: else ->
                if
#ifndef SWEEP_FORGETS_CANCEL
                :: cancel_requested -> end(cancelled)
#endif
                :: else ->
                    if
                    :: buffered && token <= token_limit ->
#ifdef SWEEP_WITHOUT_SOLO
                        requeue(1, false, true);
#else
                        requeue(1, true, true);
#endif
                        free_starts++
                    :: buffered && token > token_limit -> end(failed)
                    :: !buffered && attempt >= max_attempts -> end(failed)
                    :: else -> requeue(0, solo, false)
                    fi
                fi
            fi;
            printf("the sweeper decides: %e, token %d\n", status, token);
            kept_promises(false) }
    od
}

/* cancel.sql and retry.sql: they wait for the row, or answer `deferred`, which accepts nothing. */
proctype Operator() {
end_idle:
    do
    :: atomic { status == queued && !lock && cancels < CANCELS ->
            cancels++;
            cancel_accepted = true;
            end(cancelled);
            printf("the operator cancels it, queued\n");
            kept_promises(false) }
    :: atomic {
#ifndef CANCEL_FORGETS_SEAL
            !sealed &&
#endif
            status == running && !lock && !cancel_requested && cancels < CANCELS ->
            cancels++;
            cancel_accepted = true;
            cancel_requested = true;
            printf("the operator cancels it, running\n");
            kept_promises(false) }
    :: atomic { (status == failed || status == cancelled) && retries < RETRIES ->
            retries++;
            free_starts = 0;
            cancel_accepted = false;
#ifdef RETRY_RESETS_TOKEN
            token = 0;
#endif
            max_attempts = attempt + 1;
            token_limit = token_limit + 1;
            status = queued;
            printf("the operator retries it\n");
            kept_promises(true) }
    od
}

/* Time passes: a lease lapses, a backoff ends. */
proctype Clock() {
end_idle:
    do
    :: atomic { status == running && !lapsed ->
            lapsed = true;
            printf("the lease lapses\n") }
    :: atomic { status == queued && !due ->
            due = true;
            printf("the job is due\n") }
    od
}

init {
    atomic {
        run Worker(ada);
        run Worker(ada);
#if WORKERS > 2
        run Worker(bob);
#endif
#ifndef WITHOUT_SWEEP
        run Sweeper();
#endif
        run Operator();
        run Clock()
    }
    /* No job is lost: nothing comes to rest before this one has ended. */
    (ended(status))
}

/* No job is lost: with every process given its turn, it ends, and stays so. */
ltl ends { <>[] ended(status) }
