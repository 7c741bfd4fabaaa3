"""Tests that a delivery contains every revision that was combined into the delivered item."""

from __future__ import annotations

from ctrlmgr.testing import FakeClock
from ctrlmgr.workqueue import WorkQueue
from tests.workqueue.taking import take


def test_the_triggers_of_every_add_are_delivered_ascending_without_repeats(queue: WorkQueue[str]) -> None:
    queue.add("a", [7])
    queue.add("a", [3, 9])
    queue.add("a", [7])
    assert take(queue).triggers == (3, 7, 9)


def test_triggers_of_one_add_are_sorted(queue: WorkQueue[str]) -> None:
    queue.add("a", [5, 2, 5])
    assert take(queue).triggers == (2, 5)


def test_an_item_added_without_triggers_has_none(queue: WorkQueue[str]) -> None:
    queue.add("a")
    queue.add("a")
    assert take(queue).triggers == ()


def test_triggers_belong_to_their_item(queue: WorkQueue[str]) -> None:
    queue.add("a", [1])
    queue.add("b", [2])
    assert [take(queue).triggers, take(queue).triggers] == [(1,), (2,)]


def test_triggers_added_while_processing_go_to_the_next_delivery(queue: WorkQueue[str]) -> None:
    queue.add("a", [1])
    first = take(queue)
    queue.add("a", [2])
    queue.add("a", [3])
    queue.done("a")
    assert first.triggers == (1,)
    assert take(queue).triggers == (2, 3)


def test_a_delivered_trigger_is_not_delivered_again(queue: WorkQueue[str]) -> None:
    queue.add("a", [1])
    take(queue)
    queue.done("a")
    queue.add("a", [2])
    assert take(queue).triggers == (2,)


def test_triggers_of_two_delays_are_delivered_together(clock: FakeClock, queue: WorkQueue[str]) -> None:
    queue.add_after("a", 50, [4])
    queue.add_after("a", 70, [5])
    queue.add_after("a", 30, [3])
    clock.step(30)
    assert take(queue).triggers == (3, 4, 5)


def test_triggers_of_a_delayed_item_are_merged_when_it_is_ready(clock: FakeClock, queue: WorkQueue[str]) -> None:
    queue.add_after("a", 1, [4])
    queue.add_after("a", 1, [6])
    clock.step(0.5)
    queue.add("a", [5])
    clock.step(0.5)
    assert take(queue).triggers == (4, 5, 6)


def test_triggers_of_a_delayed_item_wait_for_its_deadline(clock: FakeClock, queue: WorkQueue[str]) -> None:
    queue.add_after("a", 1, [4])
    queue.add("a", [5])
    assert take(queue).triggers == (5,)
    queue.done("a")
    clock.step(1)
    assert take(queue).triggers == (4,)


def test_triggers_of_a_delay_that_ends_during_processing_go_to_the_next_delivery(
    clock: FakeClock, queue: WorkQueue[str]
) -> None:
    queue.add("a", [1])
    take(queue)
    queue.add_after("a", 1, [2])
    queue.add("a", [3])
    clock.step(1)
    assert queue.get(timeout=0) is None
    queue.done("a")
    assert take(queue).triggers == (2, 3)


def test_triggers_survive_a_rate_limited_retry(clock: FakeClock, queue: WorkQueue[str]) -> None:
    queue.add("a", [1, 2])
    failed = take(queue)
    queue.add_rate_limited("a", failed.triggers)
    queue.done("a")
    queue.add_after("a", 1, [3])
    clock.step(0.005)
    assert take(queue).triggers == (1, 2, 3)


def test_the_callers_collection_is_copied(queue: WorkQueue[str]) -> None:
    triggers = {1}
    queue.add("a", triggers)
    queue.add("a", [2])
    assert triggers == {1}
    assert take(queue).triggers == (1, 2)


def test_a_delivery_is_immutable(queue: WorkQueue[str]) -> None:
    queue.add("a", [1])
    queue.add("a", [2])
    delivery = take(queue)
    queue.add("a", [3])
    assert delivery.triggers == (1, 2)
