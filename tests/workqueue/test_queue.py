"""Tests of deduplication, order and delivery: the queue behaves as client-go's queue_test.go requires."""

from __future__ import annotations

import pytest

from ctrlmgr.testing import FakeClock
from ctrlmgr.workqueue import WorkQueue
from tests.background import DEADLINE, background
from tests.workqueue.taking import finish_all, take


def test_items_are_returned_in_the_order_they_were_added(queue: WorkQueue[str]) -> None:
    for item in "cab":
        queue.add(item)
    assert finish_all(queue) == ["c", "a", "b"]


def test_an_item_added_again_while_waiting_is_returned_once_at_its_first_position(queue: WorkQueue[str]) -> None:
    for item in ("a", "b", "a", "a"):
        queue.add(item)
    assert len(queue) == 2
    assert finish_all(queue) == ["a", "b"]


def test_add_while_processing_runs_again(queue: WorkQueue[str]) -> None:
    queue.add("a")
    take(queue)
    queue.add("a")
    queue.done("a")
    assert finish_all(queue) == ["a"]


def test_an_item_in_progress_is_not_given_to_another_worker(queue: WorkQueue[str]) -> None:
    queue.add("a")
    take(queue)
    queue.add("a")
    assert queue.get(timeout=0) is None
    assert len(queue) == 0


def test_an_item_added_many_times_during_processing_runs_once_more(queue: WorkQueue[str]) -> None:
    queue.add("a")
    take(queue)
    for _ in range(5):
        queue.add("a")
    queue.done("a")
    assert finish_all(queue) == ["a"]


def test_a_requeued_item_is_queued_behind_earlier_ones(queue: WorkQueue[str]) -> None:
    queue.add("a")
    take(queue)
    queue.add("a")
    queue.add("b")
    queue.done("a")
    assert finish_all(queue) == ["b", "a"]


def test_a_finished_item_can_be_added_again(queue: WorkQueue[str]) -> None:
    queue.add("a")
    assert finish_all(queue) == ["a"]
    queue.add("a")
    assert finish_all(queue) == ["a"]


def test_done_without_a_taken_item_is_refused(queue: WorkQueue[str]) -> None:
    queue.add("a")
    with pytest.raises(ValueError, match="'a' is not being processed"):
        queue.done("a")
    assert finish_all(queue) == ["a"]


def test_length_counts_ready_items_only(queue: WorkQueue[str]) -> None:
    queue.add("a")
    queue.add("b")
    assert len(queue) == 2
    take(queue)
    assert len(queue) == 1


def test_get_returns_none_after_its_timeout(clock: FakeClock, queue: WorkQueue[str]) -> None:
    getting = background(lambda: queue.get(timeout=5))
    clock.wait_for_waiters(1)
    clock.step(4.9)
    assert not getting.done()
    clock.wait_for_waiters(1)
    clock.step(0.1)
    assert getting.result(DEADLINE) is None


def test_a_waiting_getter_wakes_for_an_added_item(clock: FakeClock, queue: WorkQueue[str]) -> None:
    getting = background(queue.get)
    clock.wait_for_waiters(1)
    queue.add("a")
    delivery = getting.result(DEADLINE)
    assert delivery is not None
    assert delivery.item == "a"


def test_each_added_item_wakes_another_getter(clock: FakeClock, queue: WorkQueue[str]) -> None:
    getting = [background(queue.get) for _ in range(3)]
    clock.wait_for_waiters(3)
    for item in "abcd":
        queue.add(item)
    got = [delivery.item for future in getting if (delivery := future.result(DEADLINE)) is not None]
    assert sorted(got + finish_all(queue)) == ["a", "b", "c", "d"]
    assert len(got) == 3


def test_a_getter_wakes_for_an_item_added_during_processing(clock: FakeClock, queue: WorkQueue[str]) -> None:
    queue.add("a")
    take(queue)
    queue.add("a")
    getting = background(queue.get)
    clock.wait_for_waiters(1)
    queue.done("a")
    delivery = getting.result(DEADLINE)
    assert delivery is not None
    assert delivery.item == "a"


def test_processing_is_get_and_done(queue: WorkQueue[str]) -> None:
    queue.add("a")
    with queue.processing(timeout=0) as delivery:
        assert delivery is not None
        queue.add("a")
        assert queue.get(timeout=0) is None
    assert finish_all(queue) == ["a"]


def test_processing_an_empty_queue_yields_none(queue: WorkQueue[str]) -> None:
    with queue.processing(timeout=0) as delivery:
        assert delivery is None


def test_processing_is_done_even_when_it_raises(queue: WorkQueue[str]) -> None:
    queue.add("a")
    with pytest.raises(ZeroDivisionError), queue.processing(timeout=0):
        raise ZeroDivisionError
    queue.add("a")
    assert finish_all(queue) == ["a"]
