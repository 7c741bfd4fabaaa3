"""Tests of `Periodic`, whose jobs only add keys to queues."""

from __future__ import annotations

import threading
from datetime import UTC

import pytest

from ctrlmgr.clock import SystemClock
from ctrlmgr.manager import Periodic
from ctrlmgr.testing import FakeClock
from ctrlmgr.workqueue import WorkQueue
from tests.background import DEADLINE, background


def test_a_job_adds_its_key_to_its_queue() -> None:
    queue: WorkQueue[str] = WorkQueue("periodic", clock=FakeClock())
    periodic = Periodic()
    periodic.add("resync", 3600, queue, "everything")
    assert len(queue) == 0
    periodic.jobs["resync"]()
    delivery = queue.get(timeout=0)
    assert delivery is not None
    assert delivery.item == "everything"


def test_overdue_jobs_are_deduplicated_by_the_queue() -> None:
    queue: WorkQueue[str] = WorkQueue("periodic", clock=FakeClock())
    periodic = Periodic()
    periodic.add("resync", 3600, queue, "everything")
    periodic.jobs["resync"]()
    periodic.jobs["resync"]()
    assert len(queue) == 1


def test_two_jobs_of_one_name_are_refused() -> None:
    queue: WorkQueue[str] = WorkQueue("periodic", clock=FakeClock())
    periodic = Periodic()
    periodic.add("resync", 3600, queue, "a")
    with pytest.raises(ValueError, match="'resync' exists already"):
        periodic.add("resync", 3600, queue, "b")


def test_a_job_can_wait_for_its_first_period() -> None:
    later: WorkQueue[str] = WorkQueue("later", clock=FakeClock())
    now: WorkQueue[str] = WorkQueue("now", clock=SystemClock())
    periodic = Periodic()
    periodic.add("later", 3600, later, "key", at_start=False)
    periodic.add("now", 3600, now, "key")
    stop = threading.Event()
    running = background(lambda: periodic.run(stop))
    with now.processing(timeout=DEADLINE) as delivery:
        assert delivery is not None
    stop.set()
    running.result(DEADLINE)
    assert len(later) == 0


def test_keys_are_added_at_the_start_and_periodically_until_stopped() -> None:
    clock = SystemClock()
    often: WorkQueue[str] = WorkQueue("often", clock=clock)
    seldom: WorkQueue[str] = WorkQueue("seldom", clock=clock)
    periodic = Periodic()
    periodic.add("often", 0.01, often, "tick")
    periodic.add("seldom", 3600, seldom, "tock")
    stop = threading.Event()
    running = background(lambda: periodic.run(stop))
    for _ in range(3):
        with often.processing(timeout=DEADLINE) as delivery:
            assert delivery is not None
    with seldom.processing(timeout=DEADLINE) as delivery:
        assert delivery is not None
    stop.set()
    running.result(DEADLINE)
    assert len(seldom) == 0


def test_periodic_keys_can_be_run_again() -> None:
    queue: WorkQueue[str] = WorkQueue("again", clock=SystemClock())
    periodic = Periodic()
    periodic.add("tick", 0.01, queue, "tick")
    for _ in range(2):
        stop = threading.Event()
        running = background(lambda stop=stop: periodic.run(stop))  # type: ignore[misc]  # bound for this round
        for _ in range(3):
            with queue.processing(timeout=DEADLINE) as delivery:
                assert delivery is not None
        stop.set()
        running.result(DEADLINE)


def test_the_scheduler_runs_each_overdue_job_once_in_utc() -> None:
    queue: WorkQueue[str] = WorkQueue("periodic", clock=FakeClock())
    periodic = Periodic()
    periodic.add("resync", 180, queue, "everything")
    scheduler = periodic._scheduler()
    [job] = scheduler.get_jobs()
    scheduler.start(paused=True)
    try:
        [job] = scheduler.get_jobs()
        assert (job.coalesce, job.max_instances, job.misfire_grace_time) == (True, 1, None)
        assert job.trigger.interval.total_seconds() == 180
        assert scheduler.timezone is UTC
    finally:
        scheduler.shutdown()
