"""Everything tenure raises on purpose.

* TenureError
  + LeaseLost           TN001
  + CancelRequested     TN002
  + TransactionOpen     TN003
  + JobUnknown          TN004
  + Busy                TN005
  + WrongIsolation      TN006
  + InvalidArgument     22023, also a ValueError
  + SchemaOutdated
  + ServerUnavailable
  + CommitInDoubt
  + TimedOut
  + JobFailed
  + JobCancelled
  + NotEnded            also a TimeoutError

The codes are SQLSTATEs raised by the functions in sql/; a test keeps this list and those
functions in step.
"""

from __future__ import annotations


class TenureError(Exception):
    """The base of everything tenure raises on purpose; `hint` says what to do."""

    sqlstate: str | None = None

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint

    def __str__(self) -> str:
        message = super().__str__()
        return f"{message} ({self.hint})" if self.hint else message


class LeaseLost(TenureError):
    """The job has been lent to someone else, or has ended.

    Not a failure of the job. Discard the work and stop: whoever has the later lease is doing
    it again.
    """

    sqlstate = "TN001"


class CancelRequested(TenureError):
    """A cancellation of the job was accepted: stop, and acknowledge it."""

    sqlstate = "TN002"


class TransactionOpen(TenureError):
    """The call must be the first in a transaction of its own, and this one has written already."""

    sqlstate = "TN003"


class JobUnknown(TenureError):
    """No job has this id: neither live nor in the history that is kept."""

    sqlstate = "TN004"


class Busy(TenureError):
    """Somebody else held the row, table or file for longer than the call may wait; try again."""

    sqlstate = "TN005"


class WrongIsolation(TenureError):
    """The call needs READ COMMITTED, and the caller's transaction has another isolation level."""

    sqlstate = "TN006"


class InvalidArgument(TenureError, ValueError):
    """An argument can never be right; nothing was written."""

    sqlstate = "22023"


class SchemaOutdated(TenureError):
    """The database has no tenure schema, or one older than this client: run `tenure migrate`."""


class ServerUnavailable(TenureError):
    """The database cannot be reached."""


class CommitInDoubt(TenureError):
    """The answer to the COMMIT of `job.transaction()` never came, and the job has not ended by it.

    What was written in the block may be gone. Let it pass: the attempt ends as a failure, and is
    tried again while attempts are left.
    """


class TimedOut(TenureError):
    """The job's timeout is over but for the moment that it takes to record that: stop.

    Let it pass: the attempt ends as a failure, and is tried again while attempts are left. No
    `TimeoutError`, so that a handler that expects those of its sockets lets it pass.
    """


class JobFailed(TenureError):
    """The job whose result was asked for has failed, and will not be tried again by itself."""

    def __init__(
        self, message: str, *, error_type: str | None = None, error_message: str = ""
    ) -> None:
        super().__init__(message)
        self.error_type = error_type
        """The class of the handler's last exception; None when no handler reported one."""
        self.error_message = error_message
        """Its text, or what happened to the last lease."""


class JobCancelled(TenureError):
    """The job whose result was asked for was cancelled."""


class NotEnded(TenureError, TimeoutError):
    """The job has not ended within the time that was given; it goes on, and may be asked again."""
