"""What each verb answers after a cancellation, and the status that it leaves."""

from __future__ import annotations

from collections.abc import Mapping

from tenure.verify.words import VERBS

Outcomes = Mapping[str, tuple[str, str]]
"""By verb: its answer, and the job's status after it."""

GONE: Outcomes = {
    "sweep": ("nothing", "cancelled"),
    "claim_job": ("nothing", "cancelled"),
    "claim": ("nothing", "cancelled"),
    "cancel again": ("already", "cancelled"),
    "retry": ("ok", "queued"),
}
"""An operator's retry is no automatic one: it may queue a cancelled job again."""


def late(status: str, others: Mapping[str, str]) -> Outcomes:
    """What a former owner gets, whose every call leaves the job as it is."""
    answers = dict.fromkeys(VERBS, "lost") | {"guard": "TN001", "reclaim": "nothing"}
    return {name: (others.get(name, answer), status) for name, answer in answers.items()}


def ended(status: str) -> Outcomes:
    """Neither a cancellation nor a claim nor a sweep means anything to a finished job."""
    return {
        "sweep": ("nothing", status),
        "claim_job": ("nothing", status),
        "cancel again": ("refused", status),
    }


FAILED_IT = {"fail": "already", "fail for good": "already", "settle fail": "already"}
COMPLETED_IT = {"complete": "already", "settle complete": "already"}
ACKNOWLEDGED_IT = {"acknowledge": "already", "settle acknowledge": "already"}

_STANDS = "running, cancel requested"

REQUESTED: Outcomes = {
    "complete": ("cancel_requested", _STANDS),
    "fail": ("ok", "cancelled"),
    "fail for good": ("ok", "cancelled"),
    "release started": ("ok", "cancelled"),
    "release unstarted": ("ok", "cancelled"),
    "acknowledge": ("ok", "cancelled"),
    "seal": ("cancel_requested", _STANDS),
    "update_owned": ("cancel_requested", _STANDS),
    "update_owned anyway": ("ok", _STANDS),
    "renew": ("renewed, cancel requested", _STANDS),
    "guard": ("TN002", _STANDS),
    "guard anyway": ("passes", _STANDS),
    "settle complete": ("cancel_requested", _STANDS),
    "settle fail": ("ok", "cancelled"),
    "settle release": ("ok", "cancelled"),
    "settle acknowledge": ("ok", "cancelled"),
    "sweep": ("swept", "cancelled"),
    "reclaim": ("leased", _STANDS),
    "claim_job": ("nothing", _STANDS),
    "cancel again": ("already", _STANDS),
    "retry": ("refused", _STANDS),
}
_MOVES_THE_INSTANT = ("renew", "guard anyway", "reclaim")
REQUESTED_LAPSED: Outcomes = {
    name: (
        answer,
        status if name in _MOVES_THE_INSTANT or status != _STANDS else f"{status}, lapsed",
    )
    for name, (answer, status) in REQUESTED.items()
}

_ENDS_IT_OTHERWISE = (
    *("fail", "fail for good", "release started", "release unstarted", "acknowledge"),
    *("settle fail", "settle release", "settle acknowledge"),
)
SEALED: Outcomes = {
    **dict.fromkeys(_ENDS_IT_OTHERWISE, ("sealed", "running")),
    "complete": ("ok", "completed"),
    "settle complete": ("ok", "completed"),
    "seal": ("already", "running"),
    "update_owned": ("ok", "running"),
    "renew": ("renewed", "running"),
    "guard": ("passes", "running"),
    "sweep": ("swept", "completed"),
    "reclaim": ("leased", "running"),
    "claim_job": ("nothing", "running"),
    "cancel again": ("sealed", "running"),
    "retry": ("refused", "running"),
}
