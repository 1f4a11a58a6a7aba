"""The contract as pure functions over frozen values: what any backend must answer.

Written from the design and docs/lifecycle.md, not from the SQL. A `World` is all jobs with their
attempts, the paused queues and the present moment. One function per verb takes a world with the
arguments of `ControlPlane`'s method of that name, and returns the world afterwards with the
answer, a value of `tenure.values`:

    world = model.World(now=clock.now)
    world, enqueued = model.enqueue(world, "q", "work", job_id=real.job_id)
    world = model.at(world, clock.now)
    world, settled = model.complete(world, job_id, "ada", 1, {"done": True})

- An error is answered, not raised: as its class (`LeaseLost`, `CancelRequested`, `JobUnknown`,
  `Busy`), with the world as it was. `guard` that passes answers None.
- Time is `world.now`; move it by `at`. Nothing else moves it.
- The ids of new jobs are reality's choice: pass `job_id=` (`job_ids=` to enqueue_many). Without,
  it is the next one.
- Backoff is reality's choice within bounds. A job that was queued by fail or sweep is due between
  `next_attempt_at` and `due_by`; `adopt(world, mine, real)` compares an answer with the real one,
  raises `Disagreement`, or returns the world with the real due time. `observe` does that for one
  job, `adopt_shown` compares the job with `Records.job`. A claim that depends on a due time that
  was not adopted raises `Undetermined`.
- Two backends with their own jitter: a world for each.
- `world.shown(job_id)` is the `JobRecord`; `world.jobs[job_id].attempts` the `AttemptRecord`s.
- What others hold in open transactions is in `world.held`, `held_keys`, `busy`: the owner's verbs
  answer `deferred`; claims, reclaims, sweeps pass over; guard, operators, producers of a held key
  answer `Waits`, or `Busy` on SQLite. Leave them empty where no transaction stays open.
- Arguments are taken to be valid, texts to be within their documented sizes.

`broken(before, after, verb)` lists the invariants that a step makes untrue.
"""

from tests.model.agreement import Disagreement, adopt, adopt_shown, observe
from tests.model.endings import (
    acknowledge_cancel,
    complete,
    fail,
    release,
    seal,
    settle,
    sweep,
)
from tests.model.invariants import INVARIANTS, broken
from tests.model.leases import (
    cancel_requested,
    claim,
    claim_job,
    guard,
    held,
    lapsed,
    next_eligible_job_id,
    reclaim,
    renew,
    update_owned,
)
from tests.model.operators import cancel, enqueue, enqueue_many, pause, resume, retry
from tests.model.world import Job, Undetermined, Waits, World, at

__all__ = [
    "INVARIANTS",
    "Disagreement",
    "Job",
    "Undetermined",
    "Waits",
    "World",
    "acknowledge_cancel",
    "adopt",
    "adopt_shown",
    "at",
    "broken",
    "cancel",
    "cancel_requested",
    "claim",
    "claim_job",
    "complete",
    "enqueue",
    "enqueue_many",
    "fail",
    "guard",
    "held",
    "lapsed",
    "next_eligible_job_id",
    "observe",
    "pause",
    "reclaim",
    "release",
    "renew",
    "resume",
    "retry",
    "seal",
    "settle",
    "sweep",
    "update_owned",
]
