"""Settings of a runner, checked."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from tenure import limits
from tenure.errors import InvalidArgument
from tenure.heartbeat import check_period
from tenure.slots import BUFFER

GRACE = timedelta(seconds=30)
LONGEST_GRACE = timedelta(hours=24)
SHORTEST_POLL = timedelta(milliseconds=10)
SHORTEST_SWEEP = timedelta(milliseconds=100)
LONGEST_SWEEP = timedelta(hours=1)
MAX_SLOTS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerOptions:
    """What `WorkerRunner` was told; `check_options` makes one."""

    groups: tuple[tuple[tuple[str, ...], int], ...]
    """Queues that share a number of slots."""
    lease_for: timedelta
    heartbeat: timedelta
    poll_floor: timedelta
    grace: timedelta
    sweep_every: timedelta
    buffer: int
    processes: frozenset[str]

    @property
    def queues(self) -> list[str]:
        return [queue for queues, _ in self.groups for queue in queues]


def check_options(
    *,
    queues: Sequence[str] | Mapping[str, int],
    slots: int,
    lease_for: timedelta,
    heartbeat: timedelta | None,
    poll_floor: timedelta,
    grace: timedelta,
    sweep_every: timedelta,
    buffer: int,
    processes: Collection[str],
) -> RunnerOptions:
    """Raise `InvalidArgument` for what cannot work."""
    limits.check_lease_for(lease_for)
    groups = _groups(queues, slots)
    return RunnerOptions(
        groups=groups,
        processes=_processes(processes, [queue for names, _ in groups for queue in names]),
        lease_for=lease_for,
        heartbeat=check_period(heartbeat, lease_for),
        poll_floor=limits.check_interval(
            poll_floor, "poll_floor", SHORTEST_POLL, limits.POLL_FLOOR
        ),
        grace=limits.check_interval(grace, "grace", most=LONGEST_GRACE),
        sweep_every=limits.check_interval(
            sweep_every, "sweep_every", SHORTEST_SWEEP, LONGEST_SWEEP
        ),
        buffer=limits.check_int(buffer, "buffer", 0, BUFFER),
    )


def _processes(processes: Collection[str], queues: Sequence[str]) -> frozenset[str]:
    if isinstance(processes, str):
        raise InvalidArgument("processes is a str", hint="pass a list of queues")
    for queue in processes:
        if queue not in queues:
            raise InvalidArgument(
                f"processes names {limits.short(queue)}", hint="it is no queue of this runner"
            )
    return frozenset(processes)


def _groups(
    queues: Sequence[str] | Mapping[str, int], slots: int
) -> tuple[tuple[tuple[str, ...], int], ...]:
    names = tuple(limits.check_queues(list(queues) if isinstance(queues, Mapping) else queues))
    if isinstance(queues, Mapping):
        return tuple(
            ((name,), limits.check_int(queues[name], f"queues[{name!r}]", 1, MAX_SLOTS))
            for name in names
        )
    return ((names, limits.check_int(slots, "slots", 1, MAX_SLOTS)),)
