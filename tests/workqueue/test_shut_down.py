"""Tests of shutting down a queue, at once and with draining: it behaves as client-go's queue_test.go requires."""

from __future__ import annotations

import pytest

from ctrlmgr.errors import ShutDown
from ctrlmgr.testing import FakeClock
from ctrlmgr.workqueue import WorkQueue
from tests.background import DEADLINE, background
from tests.workqueue.taking import take


def test_shut_down_wakes_every_getter(clock: FakeClock, queue: WorkQueue[str]) -> None:
    getting = [background(queue.get) for _ in range(3)]
    clock.wait_for_waiters(3)
    assert queue.shut_down() is True
    for future in getting:
        with pytest.raises(ShutDown):
            future.result(DEADLINE)


def test_earlier_items_are_returned_after_shut_down(queue: WorkQueue[str]) -> None:
    queue.add("a")
    queue.shut_down()
    assert take(queue).item == "a"
    with pytest.raises(ShutDown):
        queue.get()


@pytest.mark.parametrize("drain", [False, True], ids=["at once", "draining"])
def test_items_added_after_shut_down_are_dropped(queue: WorkQueue[str], drain: bool) -> None:
    queue.shut_down(drain=drain)
    queue.add("a")
    queue.add_after("b", 0)
    queue.add_rate_limited("c")
    assert len(queue) == 0
    with pytest.raises(ShutDown):
        queue.get()


def test_delayed_items_are_dropped_at_shut_down(clock: FakeClock, queue: WorkQueue[str]) -> None:
    queue.add_after("a", 1)
    queue.shut_down()
    clock.step(2)
    assert queue.next_ready_in() is None
    with pytest.raises(ShutDown):
        queue.get()


def test_shut_down_does_not_wait_for_processed_items(queue: WorkQueue[str]) -> None:
    queue.add("a")
    take(queue)
    assert queue.shut_down() is True


def test_draining_without_processed_items_returns_at_once(queue: WorkQueue[str]) -> None:
    assert queue.shut_down(drain=True) is True


def test_draining_waits_until_every_processed_item_is_done(clock: FakeClock, queue: WorkQueue[str]) -> None:
    queue.add("a")
    queue.add("b")
    take(queue)
    take(queue)
    draining = background(lambda: queue.shut_down(drain=True))
    clock.wait_for_waiters(1)
    queue.done("a")
    assert not draining.done()
    queue.done("b")
    assert draining.result(DEADLINE) is True


def test_a_drained_item_that_was_added_again_is_returned(clock: FakeClock, queue: WorkQueue[str]) -> None:
    queue.add("a")
    take(queue)
    queue.add("a")
    draining = background(lambda: queue.shut_down(drain=True))
    clock.wait_for_waiters(1)
    queue.done("a")
    assert draining.result(DEADLINE) is True
    assert take(queue).item == "a"
    queue.done("a")
    with pytest.raises(ShutDown):
        queue.get()


def test_draining_ends_at_its_timeout(clock: FakeClock, queue: WorkQueue[str]) -> None:
    queue.add("a")
    take(queue)
    draining = background(lambda: queue.shut_down(drain=True, timeout=5))
    clock.wait_for_waiters(1)
    clock.step(5)
    assert draining.result(DEADLINE) is False


def test_a_plain_shut_down_ends_a_drain(clock: FakeClock, queue: WorkQueue[str]) -> None:
    queue.add("a")
    take(queue)
    draining = background(lambda: queue.shut_down(drain=True))
    clock.wait_for_waiters(1)
    queue.shut_down()
    assert draining.result(DEADLINE) is False


def test_two_drains_end_together(clock: FakeClock, queue: WorkQueue[str]) -> None:
    queue.add("a")
    take(queue)
    draining = [background(lambda: queue.shut_down(drain=True)) for _ in range(2)]
    clock.wait_for_waiters(2)
    queue.done("a")
    assert [future.result(DEADLINE) for future in draining] == [True, True]


def test_shutting_down_twice_is_harmless(queue: WorkQueue[str]) -> None:
    queue.shut_down()
    assert queue.shut_down(drain=True) is True


def test_done_after_shut_down_is_still_counted(queue: WorkQueue[str]) -> None:
    queue.add("a")
    take(queue)
    queue.shut_down()
    queue.done("a")
    assert sum(queue.measure().worked.counts) == 1


def test_a_reopened_queue_equals_a_new_one(clock: FakeClock, queue: WorkQueue[str]) -> None:
    queue.add("left")
    queue.add_after("later", 5)
    queue.add_rate_limited("failed")
    queue.shut_down()
    queue.add("dropped")
    queue.reopen()
    clock.step(60)
    assert len(queue) == 0
    assert queue.num_requeues("failed") == 0
    queue.add("new")
    assert take(queue).item == "new"


def test_a_queue_with_running_workers_is_not_reopened(queue: WorkQueue[str]) -> None:
    queue.add("a")
    with queue.processing() as delivery:
        assert delivery is not None
        queue.shut_down()
        with pytest.raises(RuntimeError, match="still processes items"):
            queue.reopen()
    queue.reopen()
