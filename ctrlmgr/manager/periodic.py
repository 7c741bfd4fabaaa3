"""Work that is due because time has passed: resync, compaction, repair.

Guarantees:
- A job does one thing: it puts a key on a workqueue. It never reconciles, so an overdue job costs nothing, two of
  them are one (the queue deduplicates), and a slow reconcile delays no other job.
- Every key is enqueued once when it starts, unless it was said otherwise, and then every so many seconds.

APScheduler keeps its own wall clock and starts its own thread: the one exception to `ctrlmgr.threads.start`. That
is why nothing but a job's one line happens on it, and why tests call the jobs instead of stepping a clock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from datetime import UTC
from typing import TYPE_CHECKING, TypeVar

from ctrlmgr.workqueue import LOW, WorkQueue

if TYPE_CHECKING:
    from apscheduler.schedulers.background import BackgroundScheduler

K = TypeVar("K", bound=Hashable)


class Periodic:
    """A `Runnable` that enqueues keys at intervals."""

    name = "periodic"

    def __init__(self) -> None:
        """Start with no jobs."""
        self.jobs: dict[str, Callable[[], None]] = {}
        """What each job does, by name; calling one is what the scheduler does when it is due."""
        self._first: list[Callable[[], None]] = []
        self._seconds: dict[str, float] = {}

    def add(self, name: str, every_seconds: float, queue: WorkQueue[K], key: K, *, at_start: bool = True) -> None:
        """Put `key` on `queue` every so many seconds, and at the start; raises ValueError for a name that is taken."""
        if name in self.jobs:
            raise ValueError(f"there is a job {name!r} already")

        def job() -> None:
            queue.add(key, priority=LOW)

        self.jobs[name] = job
        self._seconds[name] = every_seconds
        if at_start:
            self._first.append(job)

    def run(self, stop: threading.Event) -> None:
        """Enqueue everything once, then at its intervals, until `stop` is set; but see `add`. May be run again."""
        scheduler = self._scheduler()
        for job in self._first:
            job()
        scheduler.start()
        try:
            stop.wait()
        finally:
            scheduler.shutdown()

    def _scheduler(self) -> BackgroundScheduler:
        # Loaded on the thread that runs it: it takes longer than all of our own controllers, and no request needs it.
        from apscheduler.executors.debug import DebugExecutor
        from apscheduler.jobstores.memory import MemoryJobStore
        from apscheduler.schedulers.background import BackgroundScheduler

        scheduler = BackgroundScheduler(
            timezone=UTC,
            jobstores={"default": MemoryJobStore()},
            # Jobs take microseconds, so they run on the scheduler's own thread instead of in a pool of ten.
            executors={"default": DebugExecutor()},
            # However late (a suspended machine), a job is due once and never too late to be worth doing.
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
        )
        for name, job in self.jobs.items():
            scheduler.add_job(job, "interval", seconds=self._seconds[name], id=name, name=name)
        return scheduler
