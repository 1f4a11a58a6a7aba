/*
 * Sleep and wake: no job waits beside a worker that sleeps.
 *
 * Producers write one row each, in transactions that commit or roll back; workers claim what they
 * see and sleep when there is nothing, with no poll floor and no time limit: a wake-up that is
 * lost is a job that waits for ever. Beside them a claimer that may roll back, a network that
 * cuts a listener off, and a clock that makes a delayed job due.
 *
 * What a transaction wrote is seen by statements begun after its commit, never before. A horizon
 * is the set of transactions that had an xid when its own was assigned: whether all below it have
 * ended is all that is asked of it. writers_ended asks that of those that hold the table lock, in
 * two scans of pg_locks, one after the other (the snapshot gives the same answer, later).
 *
 * Abstracted away: all but one queue, so there is one key; other writes that make work claimable
 * (release, fail, retry, sweep, resume), which take the producer's steps; the xids of claims,
 * which can only delay. A worker has room for one job, and is done with it at once.
 *
 * Sets are bit masks: of rows and producers, of workers.
 */

#ifndef PRODUCERS
#define PRODUCERS 2
#endif
#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef CLAIMERS
#define CLAIMERS 1
#endif
#ifndef CUTS
#define CUTS 1
#endif

#define bit(n)      (1 << (n))
#define number(row) (row >> 1)  /* of the first three, all there are */
#define last_producer (PRODUCERS - 1)

/* Rows: committed and queued; locked by an uncommitted claim; not due yet; at their end. */
byte queued, locked, later, gone;
#define due (queued & ~later)

/* Producers' transactions that have an xid; that hold the table lock on `job`. */
byte xids, locks;

/* Workers that hold the shared key; whose connection listens; that were notified. */
byte keys, listening, rung;
byte horizon[WORKERS];          /* of the transactions below it, those that have not ended */
bool trying;                    /* a producer holds the key for an instant */

byte cuts;

#ifdef HORIZON_IS_XMAX
/* pg_snapshot_xmax is the latest *completed* xid + 1: below it are only the transactions that one
   with a later xid has overtaken. */
byte before[PRODUCERS], overtaken;
#endif

inline assign_xid(t) {
#ifdef HORIZON_IS_XMAX
    before[t] = xids;
#endif
    xids = xids | bit(t)
}

inline end_transaction(t) {
    xids = xids & ~bit(t);
    locks = locks & ~bit(t);
    horizon[0] = horizon[0] & ~bit(t);
#if WORKERS > 1
    horizon[1] = horizon[1] & ~bit(t);
#endif
#ifdef HORIZON_IS_XMAX
    overtaken = (overtaken | before[t]) & xids;
#endif
}

/* notify_sleepers.sql, somebody_sleeps.sql: the key is tried and given back at once. Another that
   tries is taken for a sleeper. */
inline look() {
    if
    :: atomic { !keys && !trying ->
            trying = true;
            printf("producer %d looks: nobody sleeps\n", i) };
        trying = false
    :: atomic { keys || trying ->
            notify = true;
            printf("producer %d looks: somebody sleeps\n", i) }
    fi
}

/* NOTIFY reaches, at the commit, every connection that listens. */
inline deliver() {
    if
    :: notify ->
        rung = rung | listening;
        notify = false;
        printf("producer %d notifies\n", i)
    :: else
    fi
}

/* enqueue.sql: in the caller's transaction, which may have written rows of its own and so have an
   xid; or, afterwards, with notify => false and wake.sql after the commit. */
proctype Producer(byte i) {
    bool notify, afterwards;

    if
    :: atomic { true ->
            assign_xid(i);
            printf("producer %d has an xid, for rows of its own\n", i) }
    :: i == 0 -> afterwards = true
    :: true
    fi;

#ifdef LOOK_BEFORE_XID
    look();
#endif

    /* due_clock.sql: the table lock, the xid (and the clock: floor.pml). One step with the write,
       for nobody sees the lock without the xid, or the row before the commit. */
    atomic {
        locks = locks | bit(i);
        if
        :: !(xids & bit(i)) -> assign_xid(i)
        :: else
        fi;
        if
        :: i == last_producer -> later = later | bit(i)
        :: true
        fi;
        printf("producer %d writes job %d under its lock and xid\n", i, i)
    };

#ifndef LOOK_BEFORE_XID
    if
#ifdef WAKE_BEFORE_COMMIT
    :: afterwards -> look(); atomic { deliver() }
#else
    :: afterwards
#endif
    :: !afterwards -> look()
    fi;
#endif

    if
    :: atomic { true ->
            queued = queued | bit(i);
            end_transaction(i);
            printf("producer %d commits\n", i);
            deliver() }
    :: atomic { true ->
            gone = gone | bit(i);
            end_transaction(i);
            notify = false;
            printf("producer %d rolls back\n", i) }
    fi;

#ifndef WAKE_BEFORE_COMMIT
    if
    :: afterwards -> look(); atomic { deliver() }
    :: !afterwards
    fi
#endif
}

/* A claim chooses among the rows that its snapshot saw: skip locked, and looked at again under
   read committed. `took` is the row's bit, or 0. */
inline choose() {
    if
    :: saw & queued & ~locked & 1 -> took = 1
    :: saw & queued & ~locked & 2 -> took = 2
    :: saw & queued & ~locked & 4 -> took = 4
    :: !(saw & queued & ~locked)
    fi;
    locked = locked | took;
    saw = 0
}

inline commit_claim() {
    queued = queued & ~took;
    locked = locked & ~took;
    gone = gone | took;
    took = 0
}

/* The own xid of sleep_begin: above all that were assigned before, and ended at once. */
inline note_horizon() {
    atomic {
#ifdef WITHOUT_HORIZON
        horizon[s] = 0;
#else
#ifdef HORIZON_IS_XMAX
        horizon[s] = overtaken;
        overtaken = xids;
#else
        horizon[s] = xids;
#endif
#endif
        printf("worker %d notes its horizon\n", s) }
}

mtype = { awake, settling, settled, dozing };

#define connected (listening & bit(s))

/* A worker and its sleeper: sleep_begin.sql has the order of the steps, sleeper_postgres.py the
   loop. */
proctype Worker(byte s) {
    byte saw, took, alarm;
    byte scanned;               /* of pg_locks: who holds the table lock */
    mtype phase = awake;

    goto connect;

/* claim.sql, in the steps of a statement: its snapshot, the row locked, the commit. */
claim:
    saw = due;
    if
    :: atomic { choose();
        if
        :: took ->
            printf("worker %d claims job %d, %e\n", s, number(took), phase)
        :: else ->
            printf("worker %d claims nothing, %e\n", s, phase);
            if
            :: phase == awake -> goto begin
            :: phase == settling ->
#ifdef WITHOUT_LAST_CLAIM
                alarm = queued & later;
                goto settle
#else
                goto pause
#endif
            :: phase == settled -> goto doze
            :: phase == dozing ->
#ifdef NEXT_DUE_ONCE
                goto end_asleep
#else
                goto doze
#endif
            fi
        fi }
    fi;
    /* No room for another: sleep_end. */
    atomic {
        commit_claim();
        keys = keys & ~bit(s);
        horizon[s] = 0;
        alarm = 0;
        phase = awake;
        printf("worker %d commits its claim\n", s) };
    goto claim;

/* LISTEN, committed before all else. A new connection has no keys, and missed what was sent while
   there was none: the whole protocol again. */
connect:
    atomic {
        listening = listening | bit(s);
        horizon[s] = 0;
        alarm = 0;
        printf("worker %d listens\n", s);
#ifdef RECONNECT_DOZES
        if
        :: phase == dozing -> goto doze
        :: else
        fi;
#endif
        phase = awake
    };

/* sleep_begin.sql, show_keys.sql: the shared keys, then the horizon. */
begin:
#ifdef KEYS_AFTER_HORIZON
    note_horizon();
#endif
    if
    :: atomic { connected && !trying ->
            keys = keys | bit(s);
            printf("worker %d shows its key\n", s) }
    :: connected && trying -> goto claim            /* there is no key to be had: poll */
    :: !connected -> goto connect
    fi;
#ifndef KEYS_AFTER_HORIZON
    note_horizon();
#endif
    phase = settling;
#ifdef WITHOUT_LAST_CLAIM
    goto claim;
#else
    goto settle;
#endif

/* Until a notification, or a growing while. */
pause:
    rung = rung & ~bit(s);

/* sleep_settled.sql, writers_ended.sql. What counts is a look after the answer: next_due alone
   would do, only later. So WITHOUT_LAST_CLAIM relies on the claim and the due time that came
   before it. */
settle:
    scanned = horizon[s] & locks;
    if
    :: atomic { connected ->
            scanned = horizon[s] & scanned;
            if
            :: !scanned ->
                phase = settled;
                horizon[s] = 0;
                printf("worker %d asks: settled\n", s);
#ifdef WITHOUT_LAST_CLAIM
                phase = dozing;
                printf("worker %d sleeps\n", s);
                goto end_asleep
#endif
            :: else ->
                scanned = 0;
                printf("worker %d asks: not settled\n", s)
            fi };
        goto claim
    :: atomic { !connected -> scanned = 0 };
        goto connect
    fi;

/* next_due.sql, which sees rows whether somebody locked them or not. */
doze:
    if
#ifndef WITHOUT_NEXT_DUE
    :: atomic { connected && due ->
            phase = dozing;
            printf("worker %d sees a due job that somebody holds\n", s) };
        goto claim
    :: atomic { connected && !due ->
#else
    :: atomic { connected ->
#endif
            phase = dozing;
            alarm = queued & later;
            printf("worker %d sleeps\n", s) }
    :: !connected -> goto connect
    fi;

end_asleep:
    if
    :: atomic { rung & bit(s) ->
            rung = rung & ~bit(s);
            printf("worker %d is woken\n", s) }
    :: atomic { alarm & ~later ->
            alarm = 0;
            printf("worker %d wakes at the due time\n", s) }
    :: !connected -> goto connect
    fi;
    goto claim
}

/* Another's claim, which commits or rolls back. */
proctype Claimer() {
    byte saw, took;

end_idle:
    atomic { due & ~locked ->
        saw = due;
        choose();
        printf("another worker claims job %d\n", number(took)) };
#ifdef HELD_FOR_EVER
end_held:
    false;
#endif
    if
    :: atomic { true ->
            commit_claim();
            printf("the other worker commits its claim\n") }
    :: atomic { true ->
            locked = locked & ~took;
            took = 0;
            printf("the other worker rolls back\n") }
    fi
}

/* A listener's connection breaks: its keys go, and what was on its way. */
proctype Network() {
    byte s;

end_idle:
    do
    :: atomic { cuts < CUTS && listening ->
            if
            :: listening & 1 -> s = 0
            :: listening & 2 -> s = 1
            fi;
            cuts++;
            listening = listening & ~bit(s);
            keys = keys & ~bit(s);
            rung = rung & ~bit(s);
            printf("the network cuts worker %d off\n", s);
            s = 0 }
    od
}

proctype Clock() {
end_idle:
    do
    :: atomic { later ->
            later = 0;
            printf("the delayed job is due\n") }
    od
}

#define all_gone (gone == bit(PRODUCERS) - 1)

init {
    atomic {
        run Producer(0);
#if PRODUCERS > 1
        run Producer(1);
#endif
#if PRODUCERS > 2
        run Producer(2);
#endif
        run Worker(0);
#if WORKERS > 1
        run Worker(1);
#endif
#if CLAIMERS > 0
        run Claimer();
#endif
#if CUTS > 0
        run Network();
#endif
        run Clock()
    }
    /* No wake-up is lost: nothing comes to rest before each job was claimed or rolled back. */
    (all_gone)
}

/* No wake-up is lost: with every process given its turn, each job is claimed or rolled back, and
   no worker polls for ever instead. */
ltl woken { <>[] all_gone }
