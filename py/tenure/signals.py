"""What a handler raises to say how its attempt is to end.

* HandlerSignal
  + Retry      failed, and queued again after a delay of the handler's choice
  + Fail       failed for good
  + Release    given back, without an error
  + Cancel     cancelled

They are no `TenureError`: a handler that catches what tenure raises lets them pass.
"""

from __future__ import annotations

from datetime import timedelta

from tenure.limits import check_delay, check_interval


class HandlerSignal(Exception):
    """The base of what a handler raises to say how its attempt is to end.

    Raised `from` another exception and without a message, it is recorded as that one.
    """

    def __init__(self, message: str = "") -> None:
        super().__init__(message)
        self.message = message

    @property
    def recorded(self) -> BaseException:
        """The exception whose type, text and traceback are kept."""
        return self if self.message or self.__cause__ is None else self.__cause__


class Retry(HandlerSignal):
    """The attempt has failed; try again, if attempts are left.

    `after` is how long to wait; None: the job's own backoff. It comes before the task's
    `retry_on` and `no_retry_on`. Raises `InvalidArgument` for a delay that no job may have.
    """

    def __init__(self, message: str = "", *, after: timedelta | None = None) -> None:
        super().__init__(message)
        self.after = check_delay(after, "after")


class Fail(HandlerSignal):
    """The attempt has failed, and so would every other: the job fails, whatever is left."""


class Release(HandlerSignal):
    """Not now: the job is given back, and is due again `after` this long.

    No error is recorded. The attempt was started, so it stays spent; on the last one the job
    fails. Raises `InvalidArgument` for a delay that no job may have.
    """

    def __init__(self, message: str = "", *, after: timedelta = timedelta(0)) -> None:
        super().__init__(message)
        self.after = check_interval(after, "after")


class Cancel(HandlerSignal):
    """There is nothing to be done any more: the job ends cancelled, with the reason as its error.

    It is accepted from the job's owner only, and not once the job is sealed. `retry` may queue
    the job again, as after any cancellation.
    """
