"""Proves from a soak's history that every promise was kept."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from tests.chaos.history import Batch, History, Row, by_job
from tests.chaos.steps import ENDED, Step, Taken, Violation, steps_of

KEPT_LAPSES = 20
"""Rows of the attempt table that each job keeps."""

Lives = Mapping[int, list[Taken]]


def check(history: History) -> tuple[Lives, list[Violation]]:
    """The steps of each job, and everything that is wrong."""
    lives: dict[int, list[Taken]] = {}
    violations: list[Violation] = []
    for job_id, versions in by_job(history.versions).items():
        lives[job_id], found = steps_of(versions)
        violations += found
    for rule in (_ends, _nothing_lost, _starts, _effects, _results, _cancels, _lapses):
        violations += rule(history, lives)
    return lives, violations


def _ends(history: History, lives: Lives) -> Iterator[Violation]:
    """Each job is in one place, ended, as its last version says."""
    places = Counter(row.job_id for row in history.rows)
    for job_id, count in places.items():
        if count > 1:
            yield Violation("one place", job_id, f"{count} rows")
    for row in history.rows:
        if row.status not in ENDED:
            yield Violation("one end", row.job_id, f"it is still {row.status}")
        if not lives.get(row.job_id):
            yield Violation("one place", row.job_id, "nobody saw it enqueued")
            continue
        last = lives[row.job_id][-1].after
        if (row.place, row.status, row.token) != (last.place, last.status, last.token):
            seen = f"{last.status} with token {last.token}"
            yield Violation("one place", row.job_id, f"{row.status}, but was last seen {seen}")


def _nothing_lost(history: History, lives: Lives) -> Iterator[Violation]:
    """Every job that was seen is there; a batch is there as a whole, and if it was answered."""
    there = {row.job_id for row in history.rows}
    for job_id in lives.keys() - there:
        yield Violation("nothing lost", job_id, "it was enqueued and is gone")
    made: defaultdict[int | None, set[int]] = defaultdict(set)
    for row in history.rows:
        made[row.batch].add(row.job_id)
    for batch in history.batches:
        yield from _batch_lost(batch, made[batch.number])


def _batch_lost(batch: Batch, made: set[int]) -> Iterator[Violation]:
    if batch.job_ids is not None:
        for job_id in set(batch.job_ids) ^ made:
            yield Violation("nothing lost", job_id, f"the answer to batch {batch.number} differs")
    elif len(made) not in (0, batch.size):
        part = f"{len(made)} of {batch.size} jobs of batch {batch.number}"
        yield Violation("nothing lost", min(made), f"only {part} are there")


def _starts(history: History, lives: Lives) -> Iterator[Violation]:
    """Handlers were entered under granted leases only, once each, and not too often."""
    starts: defaultdict[int, Counter[int]] = defaultdict(Counter)
    workers = _workers(lives)
    for start in history.starts:
        starts[start.job_id][start.token] += 1
        if workers.get((start.job_id, start.token)) != start.worker_id:
            what = f"{start.worker_id} started it under token {start.token}, never its own"
            yield Violation("starts", start.job_id, what)
    for job_id, life in lives.items():
        started = starts[job_id]
        for token, count in started.items():
            if count > 1:
                yield Violation("starts", job_id, f"token {token} was started {count} times")
        yield from _started_too_often(job_id, life, started)


def _started_too_often(
    job_id: int, life: list[Taken], started: Counter[int]
) -> Iterator[Violation]:
    steps = Counter(taken.step for taken in life)
    refunded = 0
    for taken in life:
        if taken.before is None:
            continue
        token = taken.before.token
        if taken.step is Step.GIVEN_BACK and started[token]:
            what = f"token {token} was given back as not started"
            yield Violation("starts", job_id, what)
        if taken.step in (Step.COMPLETED, Step.HEALED) and not started[token]:
            yield Violation("starts", job_id, f"token {token} completed without a start")
        refunded += taken.step is Step.REFUNDED and started[token] > 0
    most = life[-1].after.max_attempts if life else 0
    if started.total() - refunded > most:
        what = f"{started.total()} starts, {refunded} of them refunded, of {most}"
        yield Violation("attempts", job_id, what)
    # A batch may be blamed on a job once; then it is solo until it reports, or is retried.
    bound = 1 + steps[Step.REQUEUED] + steps[Step.RETRIED]
    if steps[Step.REFUNDED] > bound:
        what = f"{steps[Step.REFUNDED]} lapses were refunded, {bound} might be"
        yield Violation("poison", job_id, what)


def _workers(lives: Lives) -> dict[tuple[int, int], str | None]:
    return {
        (job_id, taken.after.token): taken.after.worker_id
        for job_id, life in lives.items()
        for taken in life
        if taken.after.status == "running"
    }


def _effects(history: History, lives: Lives) -> Iterator[Violation]:
    """Exactly one effect for each job that is completed by one, in the completing transaction."""
    ends = {
        job_id: taken.after
        for job_id, life in lives.items()
        for taken in life
        if taken.step is Step.COMPLETED
    }
    there = {row.job_id for row in history.rows}
    effects = Counter(effect.job_id for effect in history.effects)
    for job_id, count in effects.items():
        if count > 1:
            yield Violation("effects", job_id, f"{count} effects")
    for effect in history.effects:
        end = ends.get(effect.job_id)
        if end is None or (end.token, end.xid) != (effect.token, effect.xid):
            what = f"token {effect.token} left an effect and did not complete the job"
            yield Violation("effects", effect.job_id, what)
        elif effect.child_id not in there:
            yield Violation("nothing lost", effect.child_id, "its parent enqueued it")
    for row in history.rows:
        if row.kind == "ledger" and row.status == "completed" and not effects[row.job_id]:
            yield Violation("effects", row.job_id, "completed without its effect")
        if row.kind == "receipt" and row.batch is None and row.job_id not in lives:
            yield Violation("effects", row.job_id, "nobody enqueued it")


def _results(history: History, lives: Lives) -> Iterator[Violation]:
    """The result that stands is that of the lease that completed the job, or sealed it."""
    for row in history.rows:
        if row.status != "completed" or not lives.get(row.job_id):
            continue
        last = lives[row.job_id][-1]
        if last.before is None or last.before.status != "running":
            continue  # reported as a broken step
        want = {"token": last.before.token, "worker_id": last.before.worker_id}
        if last.before.sealed:
            want["sealed"] = True
        if row.result != want:
            yield Violation("stale write", row.job_id, f"its result is {row.result}, not {want}")


def _cancels(history: History, lives: Lives) -> Iterator[Violation]:
    """What was cancelled last, and not retried after that, is cancelled."""
    last: dict[int, str] = {}
    for act in history.acts:
        if act.verb == "cancel" and act.verdict in ("ok", "already"):
            last[act.job_id] = "cancelled"
        elif act.verb == "retry" and act.verdict in ("ok", None):
            last[act.job_id] = "retried"
    rows: dict[int, Row] = {row.job_id: row for row in history.rows}
    for job_id, what in last.items():
        row = rows.get(job_id)
        if what == "cancelled" and row is not None and row.status != "cancelled":
            message = f"{row.status} after an accepted cancellation"
            yield Violation("cancel", job_id, message)


def _lapses(history: History, lives: Lives) -> Iterator[Violation]:
    """The attempt table has each lease that ended without completing, the last 20 of a job."""
    noted: defaultdict[int, dict[int, str]] = defaultdict(dict)
    for lapse in history.lapses:
        noted[lapse.job_id][lapse.token] = lapse.worker_id
    for job_id, life in lives.items():
        ended = {
            taken.before.token: taken.before.worker_id
            for taken in life
            if taken.before is not None
            and taken.before.status == "running"
            and taken.step.ends_lease
            and taken.step is not Step.COMPLETED
        }
        found = noted[job_id]
        if any(ended.get(token) != worker_id for token, worker_id in found.items()) or len(
            found
        ) < min(len(ended), KEPT_LAPSES):
            what = f"attempts {sorted(found)} are noted, {sorted(ended)} ended"
            yield Violation("attempts", job_id, what)
