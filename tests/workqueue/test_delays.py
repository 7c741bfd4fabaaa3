"""Tests of delays, without a waiting thread: the queue behaves as client-go's delaying_queue_test.go requires."""

from __future__ import annotations

import threading

from ctrlmgr.clock import SystemClock
from ctrlmgr.testing import FakeClock
from ctrlmgr.workqueue import WorkQueue
from tests.background import DEADLINE, background
from tests.workqueue.taking import finish_all, take


def test_a_delayed_item_is_returned_at_its_deadline(clock: FakeClock, queue: WorkQueue[str]) -> None:
    queue.add_after("a", 0.05)
    clock.step(0.049999)
    assert finish_all(queue) == []
    clock.step(0.000001)
    assert finish_all(queue) == ["a"]


def test_a_non_positive_delay_adds_at_once(queue: WorkQueue[str]) -> None:
    queue.add_after("a", 0)
    queue.add_after("b", -1)
    assert finish_all(queue) == ["a", "b"]


def test_delayed_items_are_returned_in_the_order_of_their_deadlines(clock: FakeClock, queue: WorkQueue[str]) -> None:
    for item, delay in (("c", 70.0), ("a", 20.0), ("b", 50.0)):
        queue.add_after(item, delay)
    clock.step(100)
    assert finish_all(queue) == ["a", "b", "c"]


def test_items_with_equal_deadlines_are_returned_in_the_order_added(clock: FakeClock, queue: WorkQueue[str]) -> None:
    for item in "cab":
        queue.add_after(item, 1)
    clock.step(1)
    assert finish_all(queue) == ["c", "a", "b"]


def test_a_later_deadline_is_ignored(clock: FakeClock, queue: WorkQueue[str]) -> None:
    queue.add_after("a", 50)
    queue.add_after("a", 70)
    clock.step(50)
    assert finish_all(queue) == ["a"]
    clock.step(50)
    assert finish_all(queue) == []


def test_an_earlier_deadline_replaces_a_later_one(clock: FakeClock, queue: WorkQueue[str]) -> None:
    queue.add_after("a", 70)
    queue.add_after("a", 50)
    clock.step(50)
    assert finish_all(queue) == ["a"]
    clock.step(50)
    assert finish_all(queue) == []


def test_an_item_can_be_delayed_again_to_an_earlier_deadline(clock: FakeClock, queue: WorkQueue[str]) -> None:
    queue.add_after("a", 50)
    queue.add_after("a", 30)
    clock.step(30)
    assert finish_all(queue) == ["a"]
    queue.add_after("a", 20)
    assert queue.next_ready_in() == 20
    clock.step(20)
    assert finish_all(queue) == ["a"]
    assert queue.next_ready_in() is None


def test_a_replaced_deadline_does_not_fire(clock: FakeClock, queue: WorkQueue[str]) -> None:
    queue.add_after("other", 40)
    queue.add_after("a", 50)
    queue.add_after("a", 30)
    clock.step(30)
    assert finish_all(queue) == ["a"]
    queue.add_after("a", 100)
    clock.step(20)
    assert finish_all(queue) == ["other"]
    assert queue.next_ready_in() == 80
    clock.step(80)
    assert finish_all(queue) == ["a"]


def test_a_delayed_item_that_is_also_added_is_returned_twice(clock: FakeClock, queue: WorkQueue[str]) -> None:
    queue.add_after("a", 50)
    queue.add("a")
    assert finish_all(queue) == ["a"]
    clock.step(50)
    assert finish_all(queue) == ["a"]


def test_a_delayed_item_that_already_waits_is_returned_once(clock: FakeClock, queue: WorkQueue[str]) -> None:
    queue.add_after("a", 50)
    queue.add("a")
    clock.step(50)
    assert finish_all(queue) == ["a"]


def test_a_delay_that_ends_while_the_item_is_processed_runs_it_again(clock: FakeClock, queue: WorkQueue[str]) -> None:
    queue.add("a")
    take(queue)
    queue.add_after("a", 1)
    clock.step(1)
    assert queue.get(timeout=0) is None
    queue.done("a")
    assert finish_all(queue) == ["a"]


def test_a_busy_queue_returns_due_items(clock: FakeClock, queue: WorkQueue[str]) -> None:
    queue.add_after("late", 1)
    queue.add("a")
    queue.add("b")
    assert take(queue).item == "a"
    clock.step(1)
    assert finish_all(queue) == ["b", "late"]


def test_length_counts_due_items(clock: FakeClock, queue: WorkQueue[str]) -> None:
    queue.add_after("a", 1)
    assert len(queue) == 0
    clock.step(1)
    assert len(queue) == 1


def test_a_waiting_getter_receives_the_item_at_its_deadline(clock: FakeClock, queue: WorkQueue[str]) -> None:
    queue.add_after("a", 50)
    getting = background(queue.get)
    clock.wait_for_waiters(1)
    clock.step(49)
    assert not getting.done()
    clock.step(1)
    delivery = getting.result(DEADLINE)
    assert delivery is not None
    assert (delivery.item, clock.monotonic()) == ("a", 50)


def test_a_getter_that_waits_for_a_late_item_wakes_for_an_earlier_one(clock: FakeClock, queue: WorkQueue[str]) -> None:
    queue.add_after("late", 100)
    getting = background(queue.get)
    clock.wait_for_waiters(1)
    queue.add_after("early", 10)
    while clock.next_deadline_in() != 10:
        clock.wait_for_waiters(1)
    clock.step(10)
    delivery = getting.result(DEADLINE)
    assert delivery is not None
    assert delivery.item == "early"


def test_one_worker_receives_two_items_each_at_its_deadline_in_one_large_step(
    clock: FakeClock, queue: WorkQueue[str]
) -> None:
    queue.add_after("a", 30)
    queue.add_after("b", 50)

    def work() -> list[tuple[str, float]]:
        taken = []
        for _ in range(2):
            with queue.processing() as delivery:
                assert delivery is not None
                taken.append((delivery.item, clock.monotonic()))
        return taken

    working = background(work)
    clock.wait_for_waiters(1)
    clock.step(80)
    assert working.result(DEADLINE) == [("a", 30.0), ("b", 50.0)]


class CountingClock(SystemClock):
    """The system clock, which also signals that a thread has begun to wait."""

    def __init__(self) -> None:
        super().__init__()
        self.waits = threading.Semaphore(0)

    def wait(self, condition: threading.Condition, timeout: float | None) -> bool:
        self.waits.release()
        return super().wait(condition, timeout)


def test_a_getter_that_times_out_leaves_the_delayed_item_to_the_others() -> None:
    clock = CountingClock()
    queue: WorkQueue[str] = WorkQueue("test", clock=clock)
    queue.add_after("late", 1000)
    impatient = background(lambda: queue.get(timeout=0.1))
    assert clock.waits.acquire(timeout=DEADLINE)
    patient = background(queue.get)
    assert clock.waits.acquire(timeout=DEADLINE)
    queue.add_after("early", 0.2)
    assert impatient.result(DEADLINE) is None
    delivery = patient.result(DEADLINE)
    assert delivery is not None
    assert delivery.item == "early"


def test_next_ready_in_lets_a_single_thread_step_its_clock(clock: FakeClock, queue: WorkQueue[str]) -> None:
    assert queue.next_ready_in() is None
    queue.add_after("a", 0.3)
    queue.add_after("b", 0.1)
    taken: list[tuple[str, float]] = []
    while (left := queue.next_ready_in()) is not None:
        clock.step(left)
        taken += [(item, clock.monotonic()) for item in finish_all(queue)]
    assert taken == [("b", 0.1), ("a", 0.3)]


def test_next_ready_in_is_zero_if_an_item_is_ready(clock: FakeClock, queue: WorkQueue[str]) -> None:
    queue.add_after("a", 5)
    queue.add("b")
    assert queue.next_ready_in() == 0.0
