"""How an exception is written down."""

from __future__ import annotations

import traceback

from tenure import limits
from tenure.codec import cut_text
from tenure.values import Failure


def failure_of(error: BaseException, *, retryable: bool = True, cancel: bool = False) -> Failure:
    """The exception as text, cut and cleaned.

    Never raises an `Exception`, whatever the exception's own methods do.
    """
    return Failure(
        error_type=cut_text(type(error).__name__, limits.ERROR_TYPE_BYTES),
        message=_message(error),
        traceback=_traceback(error),
        retryable=retryable,
        cancel=cancel,
    )


def _message(error: BaseException) -> str:
    try:
        return cut_text(str(error), limits.MESSAGE_BYTES)
    except Exception as second:
        return f"(its text cannot be had: {type(second).__name__})"


def _traceback(error: BaseException) -> str | None:
    try:
        return cut_text("".join(traceback.format_exception(error)), limits.TRACEBACK_BYTES)
    except Exception:
        return None
