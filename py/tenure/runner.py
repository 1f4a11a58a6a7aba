"""Works off queues: claims, runs handlers, sweeps, until it is told to stop."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from datetime import timedelta

from tenure.backing import Backing, Plane, backing_of
from tenure.chores import RunnerChores
from tenure.claimer import Claimer
from tenure.control_plane import LEASE_FOR
from tenure.ending import not_started
from tenure.handing_back import hand_back
from tenure.heartbeat import Heartbeat, answer_within
from tenure.hooks import Hooks, Telling
from tenure.housekeeping import SWEEP_EVERY, SWEEP_LIMIT, Housekeeping
from tenure.ledger import Ledger
from tenure.limits import POLL_FLOOR
from tenure.link import Link
from tenure.loop import Loop
from tenure.owner import LinkedOwner
from tenure.places import Places
from tenure.postgres_store import PostgresStore
from tenure.process_wire import refuse_while_loading
from tenure.runner_options import GRACE, check_options
from tenure.settler import Settler
from tenure.sleeper import Sleeper
from tenure.slots import BUFFER, Place, Slots
from tenure.sqlite_store import SqliteStore
from tenure.standing import Standing
from tenure.stop_signals import StopSignals
from tenure.supervisor import Supervisor
from tenure.tasks import Tasks
from tenure.transactions import Transactions
from tenure.values import Outcome, Renewal, Settled
from tenure.worker import Handler, Worker, always
from tenure.writing import about

logger = logging.getLogger(__name__)

SHORTEST_PATIENCE = timedelta(seconds=5)
LONGEST_PATIENCE = timedelta(seconds=30)
"""How long a claim or an outcome waits for its answer before a new connection is tried: as long
as a lease, within these bounds."""

LONGEST_TURN = 120.0
"""Seconds; a claim is tried at each poll, and waits for its answer no longer than a poll does."""


class WorkerRunner:
    """A worker process's worth of work, or as much inside another program.

    Owns the worker's identity, the loop, the cadence of sweeps and the shutdown. Handlers run in
    threads, on an event loop or in child processes; the heartbeat, the listener, the claims, the
    endings and the sweeps each have a connection that handlers cannot get at. Nothing that a
    handler or a sweep does stops the loop, and an outage is waited out.

    A runner runs once: `run_forever`, or `run_until_idle`, or `start` and then `stop`.
    """

    def __init__(
        self,
        store: PostgresStore | SqliteStore | Backing,
        handlers: Mapping[str, Handler],
        *,
        queues: Sequence[str] | Mapping[str, int] = ("default",),
        slots: int = 10,
        lease_for: timedelta = LEASE_FOR,
        heartbeat: timedelta | None = None,
        poll_floor: timedelta = POLL_FLOOR,
        grace: timedelta = GRACE,
        sweep_every: timedelta = SWEEP_EVERY,
        buffer: int = BUFFER,
        processes: Collection[str] = (),
        hooks: Hooks | None = None,
    ) -> None:
        """
        `queues`: names in the order in which they are served, sharing `slots` places; or a
        mapping from names to places of their own, and `slots` says nothing.
        `lease_for`: 100 ms to 24 h; how soon the jobs of a dead process are had by another.
        `heartbeat`: how often leases are renewed, at most half of `lease_for`; None: a third.
        `poll_floor`: how long an idle runner goes without claiming, at most 30 s.
        `grace`: how long a stop waits for running handlers.
        `sweep_every`: about how often lapsed leases are looked for.
        `buffer`: how many jobs of a group may be claimed in advance at most, 0 to 500; how many
        are, depends on how fast the handlers are. 0: a job is claimed when a slot is free.
        `processes`: queues whose jobs run in child processes whatever their tasks say; every
        handler must then be found by its module and name. Such a queue needs slots of its own
        only if it is not to take those of others.
        `hooks`: functions to be told of what happens to jobs, for metrics.

        Raises `InvalidArgument` for settings that cannot work. Touches no database.
        """
        options = check_options(
            queues=queues,
            slots=slots,
            lease_for=lease_for,
            heartbeat=heartbeat,
            poll_floor=poll_floor,
            grace=grace,
            sweep_every=sweep_every,
            buffer=buffer,
            processes=processes,
        )
        refuse_while_loading()
        backing = backing_of(store) if isinstance(store, PostgresStore | SqliteStore) else store
        self._backing: Backing = backing
        self._options = options
        self._ledger = Ledger()
        self._signals = StopSignals()
        self._stop_lock = threading.Lock()
        self._is_stopped = False
        self._sleeper: Sleeper | None = None
        patience = min(max(lease_for, SHORTEST_PATIENCE), LONGEST_PATIENCE)
        self._beats = _link(backing, answer_within(options.heartbeat, lease_for))
        self._verbs = _link(backing, patience)
        self._endings = _link(backing, patience)
        self._transactions = (
            Transactions(store) if isinstance(store, PostgresStore | SqliteStore) else None
        )
        self._worker = Worker(
            LinkedOwner(self._verbs.call),
            handlers,
            lease_for=lease_for,
            transactions=self._transactions,
            retryable=handlers.retryable if isinstance(handlers, Tasks) else always,
        )
        self._handlers = handlers
        self._telling = None if hooks is None else Telling(hooks)
        self._ended = None if self._telling is None else self._telling.ended
        self._places = Places(
            self._worker,
            handlers,
            transactions=self._transactions,
            processes=options.processes,
        )
        self._loop = Loop()
        self._settler = Settler(
            self._settle, self._ledger, told=self._ended, eased=self._loop.freed
        )
        self._ledger.no_solo = self._loop.freed
        self.slots = [
            Slots(
                queues,
                size,
                place_for=self._place_for,
                ended=self._job_ended,
                freed=self._loop.freed,
                buffer=options.buffer,
            )
            for queues, size in options.groups
        ]
        """How many jobs run: one group for each queue, or one for all."""
        self._claimer = Claimer(
            backing.open,
            self.slots,
            self._ledger,
            lease_for=lease_for,
            patience=patience,
            clogged=self._settler.clogged,
            told=None if self._telling is None else self._telling.claimed,
        )
        self._heartbeat = Heartbeat(self._ledger, self._renew, period=options.heartbeat)
        self.chores = RunnerChores(
            backing.open, self._claimer, options.queues, sum(s.size for s in self.slots)
        )
        """What the housekeeping thread does; each may be called by hand as well."""
        self._housekeeping = Housekeeping(
            self.chores, every=sweep_every, swept=self._loop.wake, tidy=self._tidy
        )
        self._thread: threading.Thread | None = None

    @property
    def worker_id(self) -> str:
        """The name under which it claims just now; it changes with every new connection."""
        return self._claimer.worker_id

    @property
    def queues(self) -> list[str]:
        return self._options.queues

    @property
    def running(self) -> int:
        """How many leases it has just now."""
        return len(self._ledger.all())

    @property
    def listening(self) -> bool:
        """Whether commits wake it just now; False while it polls for want of a listener."""
        return self._sleeper is not None and self._sleeper.listening

    @property
    def stopping(self) -> bool:
        """Whether it was told to stop."""
        return self._signals.requested

    @property
    def alive(self) -> bool:
        """Whether its threads run, and the loop has come round within the last two minutes.

        Also when it cannot reach the database; and once it was told to stop, because a stop takes
        no longer than its grace.
        """
        parts = (self._settler, self._heartbeat, self._housekeeping)
        return self.stopping or (
            all(part.alive for part in parts)
            and self._thread is not None
            and self._thread.is_alive()
            and time.monotonic() - self._claimer.asked_at < LONGEST_TURN
        )

    def start(self) -> None:
        """Start working, in threads, and return.

        Raises `ServerUnavailable` or `SchemaOutdated` when it cannot begin; later outages are
        waited out.
        """
        self._backing.check()
        self._sleeper = self._backing.sleeper(
            self._options.queues,
            poll_floor=self._options.poll_floor,
            on_cancel=self._ledger.request_cancel,
        )
        self._thread = threading.Thread(
            target=self._loop.run,
            args=(self._claimer, self._sleeper),
            name="tenure-runner",
            daemon=True,
        )
        self._settler.start()
        self._heartbeat.start()
        self._housekeeping.start()
        self._thread.start()
        logger.info("worker %s serves %s", self.worker_id, ", ".join(self.queues))

    def stop(self, grace: timedelta | None = None) -> None:
        """Stop: claim no more, let running handlers end, give back the rest.

        What was claimed and not started is given back at once, uncharged. Handlers have `grace`
        (None: as constructed) to end. What still runs then is handed back under its token: its
        attempt stays spent, and it is queued again at once for another worker, or failed when
        that was its last attempt; `Job.check` raises `LeaseLost` from then on, and the thread is
        left behind. The heartbeat stops last. Any thread may call this; a second call waits for
        the first.
        """
        self._claimer.stop()
        self._loop.stop()
        self._signals.request()
        with self._stop_lock:
            if not self._is_stopped:
                self._is_stopped = True
                self._wind_up(self._options.grace if grace is None else grace)

    def run_forever(self) -> None:
        """Work until SIGTERM or SIGINT, then stop as `stop` does, and return.

        Blocks, and returns normally, so that a process which ends with it has exit code 0. A
        second signal ends the process at once, with 143 for SIGTERM and 130 for SIGINT; its
        leases lapse. Outside the main thread there are no signals: only `stop` ends it. Under
        systemd it tells the manager that it is ready, alive and stopping.
        """
        with self._signals:
            self.start()
            with Supervisor(lambda: self.alive) as supervisor:
                self._signals.wait()
                supervisor.stopping()
                logger.info("worker %s stops", self.worker_id)
                self.stop()

    def run_until_idle(self) -> None:
        """Work until nothing is due and nothing runs, then return.

        Sweeps once at first. Signals do as in `run_forever`. Raises `ServerUnavailable` or
        `SchemaOutdated` when the database cannot be asked for work.
        """
        with self._signals:
            self._backing.check()
            self.chores.sweep(SWEEP_LIMIT)
            self._settler.start()
            self._heartbeat.start()
            self._housekeeping.start()
            try:
                self._loop.drain(
                    self._claimer,
                    running=lambda: self.running,
                    stopped=lambda: self._signals.requested,
                )
            finally:
                self.stop()

    def _place_for(self, standing: Standing) -> Place:
        if self._telling is not None and standing.lease.kind in self._handlers:
            self._telling.started(standing)
        return self._places.of(standing)

    def _job_ended(self, standing: Standing, outcome: Outcome | None) -> None:
        if outcome is None:
            if self._ended is not None:
                self._ended(standing, None)
            self._ledger.drop(standing)
        else:
            self._settler.put(standing, outcome)

    def _tidy(self) -> None:
        self._give_back_waiting()
        for slots in self.slots:
            for standing in slots.give_up_overdue():
                logger.warning(
                    "job %d goes on although its timeout is over: its slot is given to others",
                    standing.lease.job_id,
                    extra=about(standing.lease),
                )

    def _give_back_waiting(self) -> None:
        for slots in self.slots:
            for standing in slots.take_back():
                self._settler.put(standing, not_started(standing.lease))

    def _settle(self, worker_id: str, outcomes: Sequence[Outcome]) -> list[Settled]:
        return self._endings.call(lambda plane: plane.settle(worker_id, outcomes))

    def _renew(
        self, worker_id: str, leases: Sequence[tuple[int, int]], lease_for: timedelta
    ) -> list[Renewal]:
        return self._beats.call(lambda plane: plane.renew(worker_id, leases, lease_for=lease_for))

    def _wind_up(self, grace: timedelta) -> None:
        for slots in self.slots:
            slots.close()
        if self._thread is not None:
            self._thread.join(5.0)
        self._hand_back([s for s in self._ledger.all() if s.outcome is None and s.withdraw()])
        if not self._ledger.wait_empty(grace.total_seconds()):
            # What has an outcome is the settler's to end, and no other verb may come before it.
            late = [standing for standing in self._ledger.all() if standing.outcome is None]
            for standing in late:
                standing.lose("it was handed back when the worker stopped")
            self._hand_back(late)
        self._places.close()
        self._settler.stop()
        self._housekeeping.stop()
        if self._sleeper is not None:
            self._sleeper.close()
        self._heartbeat.stop()
        for link in (self._beats, self._verbs, self._endings, self.chores, self._claimer):
            link.close()
        if self._transactions is not None:
            self._transactions.close()

    def _hand_back(self, standings: Sequence[Standing]) -> None:
        if not standings:
            return
        try:
            with closing(self._backing.open()) as plane:
                hand_back(plane, standings, told=self._ended)
        except Exception as error:
            logger.warning("%d leases are left to lapse: %s", len(standings), error)
        for standing in standings:
            self._ledger.drop(standing)


def _link(backing: Backing, patience: timedelta) -> Link[Plane]:
    return Link(backing.open, on_open=lambda plane: plane.answer_within(patience))
