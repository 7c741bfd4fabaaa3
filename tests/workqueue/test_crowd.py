"""What is added to be had when it is calm: at once if it comes alone, and after the others if many come."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ctrlmgr.clock import SystemClock
from ctrlmgr.testing import FakeClock
from ctrlmgr.workqueue import Pace, WorkQueue
from tests.background import DEADLINE, background
from tests.workqueue.taking import finish_all, take

PACE = Pace(fewest=2, most=10, interval=0.02, lull=0.01, patience=0.1)
MANY = "abcdef"
HERE = "a crowd"
WAITING = ["c", "d", "e", "f"]
"""Those of `MANY` that are not among the first."""


def crowded(clock: FakeClock, items: str = MANY) -> WorkQueue[str]:
    """Return a queue to which items come one after the other."""
    queue: WorkQueue[str] = WorkQueue("crowded", clock=clock, pace=PACE)
    for number, item in enumerate(items):
        queue.add_when_calm(item, HERE, (number + 1,))
    return queue


def test_without_a_pace_all_are_had_at_once(queue: WorkQueue[str]) -> None:
    for item in MANY:
        queue.add_when_calm(item, HERE)
    assert finish_all(queue) == list(MANY)


def test_the_first_of_a_crowd_are_had_at_once_and_the_others_when_no_more_come(clock: FakeClock) -> None:
    queue = crowded(clock)
    assert finish_all(queue) == ["a", "b"]
    assert queue.next_ready_in() == PACE.lull
    clock.step(PACE.lull)
    assert finish_all(queue) == WAITING
    assert queue.next_ready_in() is None


def test_what_comes_with_a_pause_never_waits(clock: FakeClock) -> None:
    queue = crowded(clock, "")
    for item in MANY:
        queue.add_when_calm(item, HERE)
        assert finish_all(queue) == [item]
        clock.step(PACE.lull)


def test_the_next_crowd_has_its_first_at_once_again(clock: FakeClock) -> None:
    queue = crowded(clock)
    clock.step(PACE.lull)
    finish_all(queue)
    queue.add_when_calm("z", HERE)
    assert finish_all(queue) == ["z"]


def test_no_crowd_waits_for_another(clock: FakeClock) -> None:
    queue = crowded(clock)
    finish_all(queue)
    for number in range(4):
        clock.step(PACE.lull / 4)
        queue.add_when_calm(f"there-{number}", "another")
        finish_all(queue)
    clock.step(PACE.lull / 2)  # since the last of its first ones, for which the queue holds back what is more than few
    assert finish_all(queue) == WAITING
    clock.step(PACE.lull / 2)
    assert finish_all(queue) == ["there-2", "there-3"]


def test_nobody_waits_longer_than_the_patience_while_more_come(clock: FakeClock) -> None:
    queue = crowded(clock)
    finish_all(queue)
    handed_out: list[tuple[str, float]] = []
    for number in range(30):
        clock.step(0.005)
        queue.add_when_calm(f"more-{number}", HERE)
        handed_out += [(item, round(clock.monotonic(), 3)) for item in finish_all(queue)]
    assert handed_out[:5] == [*((item, 0.1) for item in WAITING), ("more-0", 0.105)]


def test_one_that_is_wanted_now_waits_no_longer_and_is_had_once_for_all(clock: FakeClock) -> None:
    queue = crowded(clock)
    finish_all(queue)
    queue.add("d", (9,))
    delivery = take(queue)
    assert (delivery.item, delivery.triggers) == ("d", (4, 9))
    queue.done("d")
    clock.step(PACE.lull)
    assert finish_all(queue) == ["c", "e", "f"]


def test_what_is_asked_of_one_that_waits_is_answered_together(clock: FakeClock) -> None:
    queue = crowded(clock)
    queue.add_when_calm("a", HERE, (7,))  # among the first: it is queued already
    queue.add_when_calm("c", HERE, (8,))
    assert take(queue).triggers == (1, 7)
    queue.done("a")
    finish_all(queue)
    clock.step(PACE.lull)
    assert take(queue).triggers == (3, 8)


def test_one_that_is_in_work_is_had_again_when_it_is_calm(clock: FakeClock) -> None:
    queue = crowded(clock, "ab")
    held = take(queue)
    queue.add_when_calm(held.item, HERE, (9,))
    queue.done(held.item)
    assert finish_all(queue) == ["b"]
    clock.step(PACE.lull)
    assert take(queue).triggers == (9,)


def test_those_that_wait_are_counted_and_their_wait_is_measured(clock: FakeClock) -> None:
    queue = crowded(clock)
    assert queue.measure().depth == len(MANY)
    finish_all(queue)
    clock.step(PACE.lull)
    finish_all(queue)
    reading = queue.measure()
    assert (reading.depth, reading.adds) == (0, len(MANY))
    assert round(reading.queued.total, 6) == round(PACE.lull * len(WAITING), 6)


def test_a_queue_that_is_shut_down_drops_them_and_begins_anew(clock: FakeClock) -> None:
    queue = crowded(clock)
    finish_all(queue)
    queue.shut_down()
    queue.add_when_calm("z", HERE)
    queue.reopen()
    clock.step(1)
    assert finish_all(queue) == []


def test_a_worker_that_waits_is_there_when_it_is_calm() -> None:
    queue: WorkQueue[str] = WorkQueue("crowded", clock=SystemClock(), pace=Pace(fewest=1, lull=0.05))
    taken = background(lambda: [take_one(queue) for _ in range(3)])
    for item in "abc":
        queue.add_when_calm(item, HERE)
    assert taken.result(DEADLINE) == ["a", "b", "c"]


def take_one(queue: WorkQueue[str]) -> str:
    delivery = queue.get(timeout=DEADLINE)
    assert delivery is not None
    queue.done(delivery.item)
    return delivery.item


STEPS = st.one_of(
    st.tuples(st.sampled_from(("add", "add_when_calm")), st.sampled_from("abcd")),
    st.tuples(st.just("step"), st.sampled_from(("0.003", "0.01", "0.05"))),
    st.tuples(st.sampled_from(("take", "finish")), st.just("")),
)


@given(st.lists(STEPS, max_size=60))
def test_every_trigger_is_delivered_once_whatever_comes_when(steps: list[tuple[str, str]]) -> None:
    clock = FakeClock()
    queue: WorkQueue[str] = WorkQueue("crowded", clock=clock, pace=PACE)
    wanted: dict[str, list[int]] = {}
    delivered: dict[str, list[int]] = {}
    held: list[str] = []

    def receive() -> None:
        delivery = queue.get(timeout=0)
        if delivery is not None:
            assert delivery.item not in held
            held.append(delivery.item)
            delivered.setdefault(delivery.item, []).extend(delivery.triggers)

    for number, (step, what) in enumerate(steps):
        if step == "step":
            clock.step(float(what))
        elif step == "take":
            receive()
        elif step == "finish":
            if held:
                queue.done(held.pop(0))
        else:
            wanted.setdefault(what, []).append(number)
            if step == "add":
                queue.add(what, (number,))
            else:
                queue.add_when_calm(what, number % 2, (number,))
    for _ in range(20):
        clock.step(1)
        receive()
        if held:
            queue.done(held.pop(0))
    assert {item: sorted(triggers) for item, triggers in delivered.items()} == wanted
