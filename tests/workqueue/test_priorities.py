"""Tests of the order of the queue: it behaves as controller-runtime's priorityqueue_test.go requires, with this
project's additions.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ctrlmgr.testing import FakeClock
from ctrlmgr.workqueue import CHANGE, LOW, URGENT, WorkQueue
from ctrlmgr.workqueue.ready import SHARE
from tests.background import DEADLINE, background
from tests.workqueue.taking import finish_all, take


def test_a_higher_priority_is_returned_first_and_equal_ones_in_order(queue: WorkQueue[str]) -> None:
    for item, priority in (("low", LOW), ("b", CHANGE), ("a", CHANGE), ("urgent", URGENT)):
        queue.add(item, priority=priority)
    assert finish_all(queue) == ["urgent", "b", "a", "low"]


def test_an_item_without_a_priority_has_that_of_a_change(queue: WorkQueue[str]) -> None:
    queue.add("a")
    assert take(queue).priority == CHANGE


def test_a_delivery_has_the_highest_priority_and_all_triggers(queue: WorkQueue[str]) -> None:
    for trigger, priority in ((1, LOW), (2, URGENT), (3, CHANGE)):
        queue.add("a", (trigger,), priority=priority)
    delivery = take(queue)
    assert (delivery.priority, delivery.triggers) == (URGENT, (1, 2, 3))


def test_an_item_with_a_raised_priority_is_last_of_its_new_priority(queue: WorkQueue[str]) -> None:
    queue.add("raised", priority=LOW)
    queue.add("a")
    queue.add("raised")
    queue.add("b")
    assert finish_all(queue) == ["a", "raised", "b"]


def test_an_item_added_with_a_lower_priority_keeps_its_place(queue: WorkQueue[str]) -> None:
    queue.add("a", priority=URGENT)
    queue.add("b", priority=URGENT)
    queue.add("a", priority=LOW)
    assert finish_all(queue) == ["a", "b"]


def test_an_item_added_during_processing_keeps_the_highest_priority(queue: WorkQueue[str]) -> None:
    queue.add("a", priority=LOW)
    take(queue)
    for priority in (LOW, URGENT, CHANGE):
        queue.add("a", priority=priority)
    queue.add("b")
    queue.done("a")
    assert finish_all(queue) == ["a", "b"]


def test_a_priority_ends_with_its_delivery(queue: WorkQueue[str]) -> None:
    queue.add("a", priority=URGENT)
    finish_all(queue)
    queue.add("a", priority=LOW)
    queue.add("b")
    assert finish_all(queue) == ["b", "a"]


def add_after(queue: WorkQueue[str], item: str, priority: int) -> None:
    queue.add_after(item, 0.005, priority=priority)


def add_rate_limited(queue: WorkQueue[str], item: str, priority: int) -> None:
    queue.add_rate_limited(item, priority=priority)


@pytest.mark.parametrize("add_later", [add_after, add_rate_limited])
def test_a_delayed_item_has_its_priority_at_its_deadline(
    clock: FakeClock, queue: WorkQueue[str], add_later: Callable[[WorkQueue[str], str, int], None]
) -> None:
    add_later(queue, "a", CHANGE)
    add_later(queue, "urgent", URGENT)
    queue.add("b")
    clock.step(0.005)
    assert finish_all(queue) == ["urgent", "b", "a"]


@pytest.mark.parametrize(("sooner", "later"), [(CHANGE, URGENT), (URGENT, CHANGE)])
def test_an_item_delayed_twice_has_the_higher_priority_at_the_earlier_deadline(
    clock: FakeClock, queue: WorkQueue[str], sooner: int, later: int
) -> None:
    queue.add_after("a", 2, priority=later)
    queue.add_after("a", 1, priority=sooner)
    clock.step(1)
    assert take(queue).priority == URGENT


def test_a_waiting_item_is_raised_when_its_delay_ends(clock: FakeClock, queue: WorkQueue[str]) -> None:
    queue.add_after("a", 1, priority=URGENT)
    queue.add("b")
    queue.add("a", priority=LOW)
    clock.step(1)
    assert finish_all(queue) == ["a", "b"]


def test_no_item_is_withheld_while_a_worker_waits(clock: FakeClock, queue: WorkQueue[str]) -> None:
    getting = [background(queue.get) for _ in range(3)]
    clock.wait_for_waiters(3)
    for number in range(3):
        queue.add(f"{number}", priority=LOW)
    taken = [future.result(DEADLINE) for future in getting]
    assert sorted(each.item for each in taken if each is not None) == ["0", "1", "2"]
    assert clock.monotonic() == 0


def test_namespaces_of_one_priority_take_turns(clock: FakeClock) -> None:
    queue = by_namespace(clock)
    for item in ("many/a", "many/b", "many/c", "few/x", "many/d", "other/y"):
        queue.add(item)
    assert finish_all(queue) == ["many/a", "few/x", "other/y", "many/b", "many/c", "many/d"]


def test_a_namespace_with_many_items_delays_another_by_one(clock: FakeClock) -> None:
    queue = by_namespace(clock)
    for number in range(3_000):
        queue.add(f"many/{number}")
    take(queue)
    queue.add("few/x")
    assert [take(queue).item, take(queue).item] == ["many/1", "few/x"]


def test_a_priority_overrides_a_turn(clock: FakeClock) -> None:
    queue = by_namespace(clock)
    for item, priority in (("many/a", URGENT), ("few/x", CHANGE), ("many/b", URGENT)):
        queue.add(item, priority=priority)
    assert finish_all(queue) == ["many/a", "many/b", "few/x"]


def test_a_raised_item_leaves_no_turn_behind(clock: FakeClock) -> None:
    queue = by_namespace(clock)
    queue.add("a/1", priority=LOW)
    queue.add("b/1", priority=LOW)
    queue.add("a/1", priority=URGENT)
    queue.add("a/2", priority=LOW)
    assert finish_all(queue) == ["a/1", "b/1", "a/2"]


def test_a_low_priority_item_is_returned_despite_continuous_urgent_ones(queue: WorkQueue[str]) -> None:
    queue.add("low", priority=LOW)
    queue.add("urgent-0", priority=URGENT)
    taken: list[str] = []
    while "low" not in taken:
        queue.add(f"urgent-{len(taken) + 1}", priority=URGENT)
        item = take(queue).item
        queue.done(item)
        taken.append(item)
    assert taken == [*(f"urgent-{number}" for number in range(SHARE - 1)), "low"]


def test_a_reopened_queue_has_no_earlier_items(queue: WorkQueue[str]) -> None:
    queue.add("a", priority=URGENT)
    queue.add_after("b", 0.1)
    queue.shut_down()
    queue.reopen()
    assert finish_all(queue) == []
    assert len(queue) == 0


def by_namespace(clock: FakeClock) -> WorkQueue[str]:
    """Return an empty queue whose items are `namespace/name`."""
    return WorkQueue("namespaces", clock=clock, namespace_of=lambda item: item.partition("/")[0])
