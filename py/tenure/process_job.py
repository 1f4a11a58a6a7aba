"""Jobs and their worker in a child process, where nothing is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from tenure import limits
from tenure.codec import JsonText, dumps
from tenure.ending import not_storable
from tenure.errors import ServerUnavailable
from tenure.job import Job
from tenure.owner import LinkedOwner
from tenure.standing import Standing
from tenure.tasks import Tasks
from tenure.transactions import Transactions
from tenure.values import Json, Outcome, Settled, Verb
from tenure.worker import Handler, Worker

Call: TypeAlias = Callable[[Standing, str, JsonText | None], Any]
"""Has the parent call a method of the job, and returns or raises what it does."""


def _elsewhere(_: object) -> Settled:
    raise ServerUnavailable("only the parent of this process writes")


_NO_OWNER = LinkedOwner(_elsewhere)


class ChildWorker(Worker):
    """A worker whose jobs ask the parent for what the parent has."""

    def __init__(
        self,
        tasks: Tasks,
        transactions: Transactions | None,
        *,
        call: Call,
        guarded: Callable[[Handler], Handler],
    ) -> None:
        handlers = {task.kind: guarded(task.handler) for task in tasks.known()}
        super().__init__(_NO_OWNER, handlers, transactions=transactions, retryable=tasks.retryable)
        self._call = call

    def job(self, standing: Standing) -> Job:
        return ChildJob(self._call, standing, self._transactions)

    def outcome(self, standing: Standing) -> Outcome | None:
        """As `execute`, and ready to cross to the parent."""
        try:
            outcome = self.execute(standing)
        except KeyboardInterrupt as error:  # the handler's own: no keyboard reaches a child
            outcome = self.after_error(error, standing)
        if outcome is None or outcome.verb is not Verb.COMPLETE:
            return outcome
        try:
            text = _json(outcome.result, "result", limits.RESULT_BYTES)
        except Exception as error:  # of any kind: the value may be the handler's own
            return not_storable(standing.lease, "result", error)
        return Outcome(job_id=outcome.job_id, token=outcome.token, verb=Verb.COMPLETE, result=text)


class ChildJob(Job):
    """A job in a child process: the parent writes what it has to say."""

    def __init__(self, call: Call, standing: Standing, transactions: Transactions | None) -> None:
        super().__init__(_NO_OWNER, standing, transactions)
        self._call = call

    def progress(self, value: Json) -> bool:
        self.check()
        text = _json(value, "progress", limits.PROGRESS_BYTES)
        return bool(self._call(self._standing, "progress", text))

    def seal(self, result: Json = None) -> None:
        self._refuse_in_doubt()
        text = _json(result, "result", limits.RESULT_BYTES)
        self._call(self._standing, "seal", text)
        self._standing.sealed = True


def _json(value: Json, what: str, most: int) -> JsonText | None:
    return None if value is None else JsonText(dumps(value, what, most))
