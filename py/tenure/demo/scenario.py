"""What happens in the demo: the work, and the accidents arranged on the way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from tenure.app import Tenure
from tenure.demo.analyse import KIND
from tenure.demo.crew import Crew, WorkerProcess
from tenure.demo.display import Display
from tenure.demo.library import Source, sample, sources, take
from tenure.demo.stage import Point
from tenure.limits import MAX_NEW_JOBS
from tenure.values import Enqueued, JobStatus, NewJob

WORKERS = 2
NAMED = ("json.decoder", "sched", "calendar", "colorsys")


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """The jobs to which something was made to happen, by id."""

    enqueued: int
    healed: int
    """Its worker was killed between seal and complete."""
    stale: int
    """Its worker was stopped with the outcome under way, and another did it."""
    cancelled_running: int
    cancelled_queued: int


class Scenario:
    """One run of the demo, on a queue of its own."""

    def __init__(self, app: Tenure, crew: Crew, queue: str, display: Display) -> None:
        self._app = app
        self._crew = crew
        self._queue = queue
        self._display = display
        self._records = app.store.records()
        self._enqueued = 0

    def play(self, most: int | None = None) -> Story:
        """All acts; raises `NotAsArranged` when one cannot be played."""
        found = sources()
        sealed, sealing, running, queued = take(found, NAMED)
        files = sample(found, (most or MAX_NEW_JOBS) - len(NAMED))
        later = self._new_job(queued, delay=timedelta(hours=1))
        self._display.begin(len(files) + len(NAMED))
        for _ in range(WORKERS):
            self._crew.hire()
        added = self._add(*map(self._new_job, files), later)
        self._display.say(f"enqueued {len(added)} jobs for {WORKERS} worker processes")

        story = Story(
            healed=self._kill_after_seal(sealed),
            cancelled_queued=self._cancel_queued(added[-1].job_id, queued),
            cancelled_running=self._cancel_running(running),
            stale=self._freeze_before_seal(sealing),
            enqueued=self._enqueued,
        )
        self._until(lambda: self._live() == 0, "the queue is worked off", seconds=600.0)
        self._crew.dismiss()
        return story

    def _kill_after_seal(self, source: Source) -> int:
        job_id = self._add(self._new_job(source, pause=Point.SEALED))[0].job_id
        worker = self._kept_at(Point.SEALED)
        worker.kill()
        held = self._running_on(worker)
        self._display.say(
            f"killed {worker.name}, which held {held} jobs;"
            f" {source.module} (job {job_id}) was sealed and not completed"
        )
        self._crew.hire()
        return job_id

    def _cancel_queued(self, job_id: int, source: Source) -> int:
        answer = self._app.cancel(job_id)
        self._display.say(f"cancelled {source.module} (job {job_id}) in the queue")
        return answer.job_id

    def _cancel_running(self, source: Source) -> int:
        job_id = self._add(self._new_job(source, pause=Point.RUNNING))[0].job_id
        worker = self._kept_at(Point.RUNNING)
        self._app.cancel(job_id)
        self._until(lambda: self._status(job_id) is JobStatus.CANCELLED, "the job is cancelled")
        self._display.say(f"cancelled {source.module} (job {job_id}) while {worker.name} ran it")
        return job_id

    def _freeze_before_seal(self, source: Source) -> int:
        job_id = self._add(self._new_job(source, pause=Point.SEALING))[0].job_id
        worker = self._kept_at(Point.SEALING)
        worker.freeze()
        try:
            self._until(
                lambda: self._status(job_id) is JobStatus.COMPLETED,
                "another worker completes the job of the one that was stopped",
            )
        finally:
            worker.thaw()
        self._display.say(
            f"stopped {worker.name} with the outcome of {source.module} (job {job_id}) under way,"
            " until another had done the job"
        )
        worker.cue(job_id, Point.SEALING)
        self._until(lambda: self._refusals(job_id) > 0, "the late write is refused")
        self._display.say(f"let {worker.name} go on: what it wrote for job {job_id} was refused")
        return job_id

    def _new_job(
        self, source: Source, *, pause: Point | None = None, delay: timedelta | None = None
    ) -> NewJob:
        return NewJob(
            queue=self._queue,
            kind=KIND,
            payload={"module": source.module, "path": str(source.path), "pause": pause},
            priority=5 if pause is None else 0,
            delay=delay,
            retry_base=timedelta(milliseconds=200),
        )

    def _add(self, *jobs: NewJob) -> Sequence[Enqueued]:
        added = self._app.enqueue_many(jobs)
        self._enqueued += len(added)
        return added

    def _kept_at(self, point: Point) -> WorkerProcess:
        self._until(lambda: self._crew.waiting(point) is not None, f"a job is {point}")
        worker = self._crew.waiting(point)
        assert worker is not None
        return worker

    def _until(self, ready: Callable[[], bool], what: str, *, seconds: float = 60.0) -> None:
        self._crew.until(ready, what, meanwhile=self._show, seconds=seconds)

    def _show(self) -> None:
        self._display.reached(self._enqueued - self._live())

    def _status(self, job_id: int) -> JobStatus | None:
        job = self._records.job(job_id)
        return None if job is None else job.status

    def _running_on(self, worker: WorkerProcess) -> int:
        running = self._records.jobs(queue=self._queue, status=JobStatus.RUNNING)
        return sum(f":{worker.process.pid}:" in (job.worker_id or "") for job in running)

    def _refusals(self, job_id: int) -> int:
        return sum(refused == job_id for refused, *_ in self._crew.heard.refused)

    def _live(self) -> int:
        return sum(
            queue.queued + queue.scheduled + queue.retrying + queue.running
            for queue in self._records.queues()
            if queue.queue == self._queue
        )
