"""Where the handler of each job runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tenure.event_loop import EventLoop
from tenure.processes import Processes
from tenure.slots import Place
from tenure.standing import Standing
from tenure.tasks import Task, Tasks
from tenure.threads import Threads
from tenure.transactions import Transactions
from tenure.worker import Handler, Worker, is_async


class Places:
    """The places of one runner, each made when it is first needed.

    A task with `slots="process"`, and every task of a queue of `processes`, runs in a child
    process; any other `async def` on the event loop; all else in threads.
    """

    def __init__(
        self,
        worker: Worker,
        handlers: Mapping[str, Handler],
        *,
        transactions: Transactions | None,
        processes: Collection[str] = (),
    ) -> None:
        """Raises `InvalidArgument` when a handler that may run in a child cannot be found there.
        Where queues are given as `processes`, that may be any."""
        tasks = (
            handlers.known()
            if isinstance(handlers, Tasks)
            else [Task(kind=kind, handler=handler) for kind, handler in handlers.items()]
        )
        self._handlers = handlers
        self._in_processes = {task.kind for task in tasks if task.slots == "process"}
        self._process_queues = frozenset(processes)
        self._usual: dict[str, Place] = {}
        self._threads = Threads(worker.execute)
        self._loop = EventLoop(worker.execute_async, after_error=worker.after_error)
        self._processes = Processes(
            worker,
            [task for task in tasks if processes or task.kind in self._in_processes],
            transactions=transactions,
        )

    def of(self, standing: Standing) -> Place:
        """The place for this job; a kind without a handler is for a thread to give back."""
        lease = standing.lease
        if lease.kind in self._in_processes or lease.queue in self._process_queues:
            return self._processes if lease.kind in self._handlers else self._threads
        place = self._usual.get(lease.kind)
        if place is None and (handler := self._handlers.get(lease.kind)) is not None:
            place = self._usual[lease.kind] = self._loop if is_async(handler) else self._threads
        return place or self._threads

    def close(self) -> None:
        for place in (self._threads, self._loop, self._processes):
            place.close()
