"""Tests of the queue's metrics with client-go's names, in the form that a scrape returns."""

from __future__ import annotations

import gc

import pytest

from ctrlmgr.metrics import REGISTRY
from ctrlmgr.testing import FakeClock
from ctrlmgr.workqueue import LOW, URGENT, WorkQueue
from tests.workqueue.taking import finish_all, take


@pytest.fixture
def queue(clock: FakeClock, request: pytest.FixtureRequest) -> WorkQueue[str]:
    return WorkQueue(request.node.name, clock=clock)


def read(queue: WorkQueue[str], metric: str, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(f"workqueue_{metric}", {"name": queue.name, **labels})


def test_depth_counts_waiting_items_including_processed_ones(queue: WorkQueue[str]) -> None:
    queue.add("a")
    queue.add("b")
    assert read(queue, "depth", priority="0") == 2
    take(queue)
    assert read(queue, "depth", priority="0") == 1
    queue.add("a")
    assert read(queue, "depth", priority="0") == 2


def test_depth_is_reported_by_priority(queue: WorkQueue[str]) -> None:
    for item, priority in (("a", LOW), ("b", LOW), ("c", URGENT)):
        queue.add(item, priority=priority)
    queue.add("a", priority=URGENT)
    assert [read(queue, "depth", priority=each) for each in ("-100", "0", "100")] == [1, 0, 2]
    assert take(queue).item == "c"
    queue.add("c", priority=LOW)
    assert [read(queue, "depth", priority=each) for each in ("-100", "0", "100")] == [2, 0, 1]


def test_adds_counts_items_that_were_not_deduplicated(queue: WorkQueue[str]) -> None:
    for item in ("a", "a", "b"):
        queue.add(item)
    take(queue)
    queue.add("a")
    queue.add("a")
    assert read(queue, "adds_total") == 3


def test_retries_counts_delayed_adds(queue: WorkQueue[str]) -> None:
    queue.add_after("a", 1)
    queue.add_rate_limited("b")
    queue.add("c")
    assert read(queue, "retries_total") == 2


def test_queue_duration_runs_from_add_to_get(clock: FakeClock, queue: WorkQueue[str]) -> None:
    queue.add("a")
    clock.step(0.05)
    queue.add("a")
    take(queue)
    assert read(queue, "queue_duration_seconds_sum") == pytest.approx(0.05)
    assert read(queue, "queue_duration_seconds_count") == 1
    assert read(queue, "queue_duration_seconds_bucket", le="0.01") == 0
    assert read(queue, "queue_duration_seconds_bucket", le="0.1") == 1
    assert read(queue, "queue_duration_seconds_bucket", le="+Inf") == 1


def test_queue_duration_of_a_delayed_item_starts_when_it_is_ready(clock: FakeClock, queue: WorkQueue[str]) -> None:
    queue.add_after("a", 5)
    clock.step(5)
    take(queue)
    assert read(queue, "queue_duration_seconds_sum") == 0


def test_queue_duration_of_an_item_added_during_processing_starts_at_its_add(
    clock: FakeClock, queue: WorkQueue[str]
) -> None:
    queue.add("a")
    take(queue)
    queue.add("a")
    clock.step(2)
    queue.done("a")
    take(queue)
    assert read(queue, "queue_duration_seconds_sum") == 2


def test_work_duration_runs_from_get_to_done(clock: FakeClock, queue: WorkQueue[str]) -> None:
    queue.add("a")
    clock.step(1)
    take(queue)
    clock.step(20)
    queue.done("a")
    assert read(queue, "work_duration_seconds_sum") == 20
    assert read(queue, "work_duration_seconds_bucket", le="10.0") == 0
    assert read(queue, "work_duration_seconds_bucket", le="+Inf") == 1


def test_buckets_are_ten_powers_of_ten_from_ten_nanoseconds(queue: WorkQueue[str]) -> None:
    queue.add("a")
    finish_all(queue)
    family = next(family for family in REGISTRY.collect() if family.name == "workqueue_work_duration_seconds")
    bounds = [
        float(sample.labels["le"])
        for sample in family.samples
        if sample.name.endswith("_bucket") and sample.labels["name"] == queue.name
    ]
    assert bounds == [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, float("inf")]


def test_unfinished_and_longest_are_computed_at_the_scrape(clock: FakeClock, queue: WorkQueue[str]) -> None:
    queue.add("a")
    queue.add("b")
    take(queue)
    clock.step(3)
    take(queue)
    clock.step(4)
    assert read(queue, "unfinished_work_seconds") == 11
    assert read(queue, "longest_running_processor_seconds") == 7
    queue.done("a")
    assert read(queue, "unfinished_work_seconds") == 4
    queue.done("b")
    assert read(queue, "unfinished_work_seconds") == 0
    assert read(queue, "longest_running_processor_seconds") == 0


def test_two_queues_of_one_name_are_one_series(clock: FakeClock, queue: WorkQueue[str]) -> None:
    twin: WorkQueue[str] = WorkQueue(queue.name, clock=clock)
    queue.add("a")
    twin.add("a")
    take(twin)
    assert read(queue, "adds_total") == 2
    assert read(queue, "depth", priority="0") == 1
    assert read(queue, "queue_duration_seconds_count") == 1


def test_a_removed_queue_is_not_reported(clock: FakeClock) -> None:
    queue: WorkQueue[str] = WorkQueue("short-lived", clock=clock)
    assert REGISTRY.get_sample_value("workqueue_depth", {"name": "short-lived", "priority": "0"}) == 0
    del queue
    gc.collect()
    assert REGISTRY.get_sample_value("workqueue_depth", {"name": "short-lived", "priority": "0"}) is None
