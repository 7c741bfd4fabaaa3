"""Periodic work such as resync, compaction and repair.

Guarantees:
- A periodic job only puts a key on a workqueue; it never reconciles. Therefore a late job is harmless, because the
  queue merges duplicates. A slow reconcile does not delay other jobs.
- Every key is queued at its interval, and also once at the start unless `at_start` is False.

APScheduler uses its own wall clock, so tests call the jobs instead of advancing a clock. APScheduler also starts its
own thread; `ctrlmgr.threads.start` starts all other threads.
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
    """A `Runnable` that queues keys at intervals."""

    name = "periodic"

    def __init__(self) -> None:
        """Create an instance without jobs."""
        self.jobs: dict[str, Callable[[], None]] = {}
        """The periodic jobs by name; the scheduler calls a job when the job is due."""
        self._first: list[Callable[[], None]] = []
        self._seconds: dict[str, float] = {}

    def add(self, name: str, every_seconds: float, queue: WorkQueue[K], key: K, *, at_start: bool = True) -> None:
        """Queue `key` on `queue` every `every_seconds` seconds, and at the start.

        Raises ValueError if another job has the same name.
        """
        if name in self.jobs:
            raise ValueError(f"a job {name!r} exists already")

        def job() -> None:
            queue.add(key, priority=LOW)

        self.jobs[name] = job
        self._seconds[name] = every_seconds
        if at_start:
            self._first.append(job)

    def run(self, stop: threading.Event) -> None:
        """Queue keys at their intervals until `stop` is set.

        At the start, every key is queued once, except keys that were added with `at_start=False`.

        `run` may be called again after it has returned.
        """
        scheduler = self._scheduler()
        for job in self._first:
            job()
        scheduler.start()
        try:
            stop.wait()
        finally:
            scheduler.shutdown()

    def _scheduler(self) -> BackgroundScheduler:
        # The module is imported on the running thread, because the import is slow and no request needs it.
        from apscheduler.executors.debug import DebugExecutor
        from apscheduler.jobstores.memory import MemoryJobStore
        from apscheduler.schedulers.background import BackgroundScheduler

        scheduler = BackgroundScheduler(
            timezone=UTC,
            jobstores={"default": MemoryJobStore()},
            # Jobs take microseconds, so they run on the scheduler's own thread instead of a pool of ten.
            executors={"default": DebugExecutor()},
            # If a job is late, for example because the machine was suspended, the job runs once, regardless of the
            # delay.
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
        )
        for name, job in self.jobs.items():
            scheduler.add_job(job, "interval", seconds=self._seconds[name], id=name, name=name)
        return scheduler
