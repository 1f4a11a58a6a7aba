/*
 * Lane floors: no job appears below a floor.
 *
 * Writers put one row each into a lane, in transactions that commit or roll back. Sessions that
 * claim bring the lane's floor forward: they note an instant T and a horizon, and once no writer
 * below the horizon is left, the floor becomes the earlier of T and the first row they see. A
 * claimer holds rows and may roll back. The floor here is the highest that any session has, as
 * publish_floors and merged_floors spread it.
 *
 * Time is a small number that only grows. A horizon is the set of transactions that had an xid
 * when its own was assigned, as in sleep.pml; writers_ended asks whether those that hold the
 * table lock have ended, in two scans of pg_locks, one after the other (the snapshot gives the
 * same answer, later).
 *
 * Abstracted away: all but one lane; the pace of refreshes; delays and run_at, which only make a
 * due time later; an update that makes a row due again, which is a writer's too.
 */

#ifndef WRITERS
#define WRITERS 3
#endif
#ifndef SESSIONS
#define SESSIONS 2
#endif
#ifndef TICKS
#define TICKS 2
#endif

#define bit(n)  (1 << (n))
#define never   255

byte now = 1;                   /* clock() */
byte floor;

/* Rows: committed and queued; locked by an uncommitted claim. */
byte queued, locked;
byte due_at[WRITERS];

/* Writers' transactions that have an xid; that hold the table lock on `job`. */
byte xids, locks;
byte horizon[SESSIONS];         /* of the transactions below it, those that have not ended */

#ifdef HORIZON_IS_XMAX
/* pg_snapshot_xmax is the latest *completed* xid + 1: below it are only the transactions that one
   with a later xid has overtaken. */
byte before[WRITERS], overtaken;
#endif

inline nothing_below() {
    assert(!(queued & 1) || due_at[0] >= floor);        /* no queued job is below the floor */
#if WRITERS > 1
    assert(!(queued & 2) || due_at[1] >= floor);        /* no queued job is below the floor */
#endif
#if WRITERS > 2
    assert(!(queued & 4) || due_at[2] >= floor)         /* no queued job is below the floor */
#endif
}

inline take_lock() {
    atomic {
        locks = locks | bit(i);
        printf("writer %d takes the table lock\n", i) }
}

inline take_xid() {
    atomic {
        if
        :: !(xids & bit(i)) ->
#ifdef HORIZON_IS_XMAX
            before[i] = xids;
#endif
            xids = xids | bit(i);
            printf("writer %d takes an xid\n", i)
        :: else
        fi }
}

inline read_clock() {
    atomic {
#ifdef KEEPS_PAST_DUE_TIME
        due_at[i] = now - 1;
#else
        due_at[i] = now;
#endif
        printf("writer %d reads the clock: due at %d\n", i, due_at[i]) }
}

inline end_transaction() {
    xids = xids & ~bit(i);
    locks = locks & ~bit(i);
    horizon[0] = horizon[0] & ~bit(i);
#if SESSIONS > 1
    horizon[1] = horizon[1] & ~bit(i);
#endif
#ifdef HORIZON_IS_XMAX
    overtaken = (overtaken | before[i]) & xids;
#endif
}

/* due_clock.sql, called first by whatever writes a due time; but the caller's transaction may
   have had an xid before. */
proctype Writer(byte i) {
    if
    :: take_xid()
    :: true
    fi;

#ifdef WITHOUT_TABLE_LOCK
    take_xid();
    read_clock();
    take_lock();                /* the INSERT's own */
#else
    take_lock();
#ifdef CLOCK_BEFORE_XID
    read_clock();
    take_xid();
#else
    take_xid();
    read_clock();
#endif
#endif

    if
    :: atomic { true ->
            queued = queued | bit(i);
            end_transaction();
            printf("writer %d commits\n", i);
            nothing_below() }
    :: atomic { true ->
            end_transaction();
            printf("writer %d rolls back\n", i) }
    fi
}

inline read_t() {
    atomic {
        t = now;
        printf("session %d reads T: %d\n", s, t) }
}

/* Of the rows visible, whether somebody locked them or not. */
#ifdef MINIMUM_SKIPS_LOCKED
#define seen (queued & ~locked)
#else
#define seen queued
#endif

inline earlier(n) {
    if
    :: seen & bit(n) && due_at[n] < first -> first = due_at[n]
    :: else
    fi
}

inline read_first() {
    atomic {
        first = never;
        earlier(0);
#if WRITERS > 1
        earlier(1);
#endif
#if WRITERS > 2
        earlier(2);
#endif
        printf("session %d reads the first row\n", s) }
}

/* claim.sql and lane_floors.sql, in one session. */
proctype Session(byte s) {
    byte t;                     /* the instant that is being proved */
    byte first;                 /* the first row seen */
    byte scanned;               /* of pg_locks: who holds the table lock */

end_idle:
    do
    :: now > floor ->
        /* A transaction without an xid reads T, then takes its xid as the horizon. */
#ifndef T_AFTER_XID
        read_t();
#endif
        atomic {
#ifdef HORIZON_IS_XMAX
            horizon[s] = overtaken;
            overtaken = xids;
#else
            horizon[s] = xids;
#endif
            printf("session %d notes its horizon\n", s) };
#ifdef T_AFTER_XID
        read_t();
#endif

        /* Perhaps another claim: once the writers below the horizon have ended ... */
#ifdef MINIMUM_BEFORE_TEST
        read_first();
#endif
        scanned = horizon[s] & locks;
        atomic { !(horizon[s] & scanned) ->
            scanned = 0;
            horizon[s] = 0;
            printf("session %d: the writers have ended\n", s) };
        /* ... a statement begun after that reads the first row. */
#ifndef MINIMUM_BEFORE_TEST
        read_first();
#endif
        atomic {
            if
            :: first < t -> t = first
            :: else
            fi;
            if
            :: t > floor ->
                floor = t;
                printf("session %d moves the floor to %d\n", s, floor)
            :: else
            fi;
            t = 0;
            first = 0;
            nothing_below() }
    od
}

/* A claim holds a row until it commits, then the row is gone, or rolls back. */
proctype Claimer() {
end_idle:
    do
    :: atomic { queued & ~locked ->
            locked = queued;
            printf("a claim holds what is queued\n") }
    :: atomic { locked ->
            queued = queued & ~locked;
            locked = 0;
            printf("the claim commits\n") }
    :: atomic { locked ->
            locked = 0;
            printf("the claim rolls back\n") }
    od
}

proctype Clock() {
    do
    :: atomic { now <= TICKS ->
            now++;
            printf("it is %d\n", now) }
    :: atomic { now > TICKS -> break }
    od
}

init {
    atomic {
        run Writer(0);
#if WRITERS > 1
        run Writer(1);
#endif
#if WRITERS > 2
        run Writer(2);
#endif
        run Session(0);
#if SESSIONS > 1
        run Session(1);
#endif
        run Claimer();
        run Clock()
    }
}
