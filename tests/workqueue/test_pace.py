"""A pace: what comes alone is handed out at once, what comes with many others gathers."""

from __future__ import annotations

from ctrlmgr.clock import SystemClock
from ctrlmgr.testing import FakeClock
from ctrlmgr.workqueue import Pace, WorkQueue
from tests.background import DEADLINE, background
from tests.workqueue.taking import finish_all, take

PACE = Pace(fewest=4, most=10, interval=0.02, lull=0.01)


def paced(clock: FakeClock) -> WorkQueue[str]:
    return WorkQueue("paced", clock=clock, pace=PACE)


def fill(queue: WorkQueue[str], items: str) -> None:
    for number, item in enumerate(items):
        queue.add(item, (number + 1,))


def test_few_are_handed_out_at_once(clock: FakeClock) -> None:
    queue = paced(clock)
    fill(queue, "abc")
    assert queue.next_ready_in() == 0
    assert finish_all(queue) == ["a", "b", "c"]


def test_one_after_the_other_is_never_held_back(clock: FakeClock) -> None:
    queue = paced(clock)
    for _ in range(50):
        queue.add("a")
        assert finish_all(queue) == ["a"]


def test_of_many_one_comes_each_interval_while_more_are_added(clock: FakeClock) -> None:
    queue = paced(clock)
    fill(queue, "abcdefgh")
    assert take(queue).item == "a"  # none came before it
    handed_out: list[tuple[str, float]] = []
    for _ in range(9):  # 45 ms
        clock.step(0.005)
        queue.add("h")  # it waits already: it counts as added all the same
        handed_out += [(item, clock.monotonic()) for item in finish_all(queue)]
    assert handed_out == [("b", 0.02), ("c", 0.04)]


def test_what_is_asked_of_an_item_that_waits_is_answered_together(clock: FakeClock) -> None:
    queue = paced(clock)
    fill(queue, "abcdef")
    queue.done(take(queue).item)
    queue.add("b", (9,))
    clock.step(0.02)
    assert take(queue).triggers == (2, 9)


def test_when_no_more_comes_all_are_handed_out(clock: FakeClock) -> None:
    queue = paced(clock)
    fill(queue, "abcdefg")
    assert take(queue).item == "a"
    assert queue.get(timeout=0) is None
    assert queue.next_ready_in() == PACE.lull
    clock.step(PACE.lull)
    assert finish_all(queue) == ["b", "c", "d", "e", "f", "g"]


def test_no_more_than_so_many_are_held_back(clock: FakeClock) -> None:
    queue = paced(clock)
    fill(queue, "abcdefghijklmn")
    assert finish_all(queue) == ["a", "b", "c", "d"]
    assert len(queue) == PACE.most


def test_a_queue_that_is_shut_down_holds_nothing_back(clock: FakeClock) -> None:
    queue = paced(clock)
    fill(queue, "abcdef")
    queue.done(take(queue).item)
    queue.shut_down()
    assert [take(queue).item for _ in range(5)] == ["b", "c", "d", "e", "f"]


def test_a_worker_that_waits_is_there_when_the_moment_comes() -> None:
    queue: WorkQueue[str] = WorkQueue(
        "paced", clock=SystemClock(), pace=Pace(fewest=2, most=10, interval=60, lull=0.01)
    )
    fill(queue, "abcd")
    queue.done(take(queue).item)

    def work() -> list[str]:
        items: list[str] = []
        while len(items) < 3:
            delivery = queue.get(timeout=DEADLINE)
            assert delivery is not None
            items.append(delivery.item)
            queue.done(delivery.item)
        return items

    assert background(work).result(DEADLINE) == ["b", "c", "d"]
