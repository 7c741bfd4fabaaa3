"""Tests of real threads on one queue: no item is lost or processed twice at the same time, and each trigger is
delivered once.
"""

from __future__ import annotations

import threading
from collections import Counter
from functools import partial
from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from ctrlmgr.clock import SystemClock
from ctrlmgr.errors import ShutDown
from ctrlmgr.testing import FakeClock
from ctrlmgr.workqueue import ExponentialBackoff, WorkQueue
from tests.background import DEADLINE, background

ITEMS = ["a", "b", "c", "d", "e"]


class WorkerObservations:
    """The observations of workers; the class has its own lock, so that it can detect a missing lock in the queue."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.in_work: Counter[str] = Counter()
        self.overlaps: list[str] = []
        self.triggers: list[int] = []

    def begin(self, item: str, triggers: tuple[int, ...]) -> None:
        with self.changed:
            self.in_work[item] += 1
            if self.in_work[item] > 1:
                self.overlaps.append(item)
            self.triggers += triggers
            self.changed.notify_all()

    def end(self, item: str) -> None:
        with self.changed:
            self.in_work[item] -= 1

    def wait_for_triggers(self, count: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.triggers) >= count, DEADLINE)


@pytest.mark.parametrize("seed", range(3))
def test_no_item_is_with_two_workers_and_every_trigger_arrives_once(seed: int) -> None:
    queue: WorkQueue[str] = WorkQueue("stress", clock=SystemClock(), limiter=ExponentialBackoff(1e-4, 1e-3))
    seen = WorkerObservations()
    adders, workers, adds = 3, 4, 400

    def add(adder: int) -> None:
        random = Random(f"{seed}/{adder}")
        for number in range(adds):
            trigger = adder * adds + number
            item = random.choice(ITEMS)
            match random.randrange(3):
                case 0:
                    queue.add(item, [trigger])
                case 1:
                    queue.add_after(item, random.random() * 0.002, [trigger])
                case _:
                    queue.add_rate_limited(item, [trigger])

    def work() -> None:
        try:
            while True:
                with queue.processing() as delivery:
                    assert delivery is not None
                    seen.begin(delivery.item, delivery.triggers)
                    queue.forget(delivery.item)
                    seen.end(delivery.item)
        except ShutDown:
            return

    working = [background(work) for _ in range(workers)]
    adding = [background(partial(add, adder)) for adder in range(adders)]
    for future in adding:
        future.result(DEADLINE)
    seen.wait_for_triggers(adders * adds)
    assert queue.shut_down(drain=True, timeout=DEADLINE)
    for future in working:
        future.result(DEADLINE)

    assert seen.overlaps == []
    assert sorted(seen.triggers) == list(range(adders * adds))


class QueueMachine(RuleBasedStateMachine):
    """Property test of any single-threaded history against a model of the expected deliveries and triggers."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = FakeClock()
        self.queue: WorkQueue[str] = WorkQueue("machine", clock=self.clock, limiter=ExponentialBackoff(1.0, 8.0))
        self.revision = 0
        self.ready: dict[str, set[int]] = {}
        self.delayed: dict[str, tuple[int, set[int]]] = {}
        self.held: set[str] = set()
        self.elapsed = 0

    def trigger(self) -> int:
        self.revision += 1
        return self.revision

    @rule(item=st.sampled_from(ITEMS))
    def add(self, item: str) -> None:
        trigger = self.trigger()
        self.queue.add(item, [trigger])
        self.ready.setdefault(item, set()).add(trigger)

    @rule(item=st.sampled_from(ITEMS), delay=st.integers(1, 5))
    def add_after(self, item: str, delay: int) -> None:
        trigger = self.trigger()
        self.queue.add_after(item, delay, [trigger])
        at, triggers = self.delayed.get(item, (self.elapsed + delay, set()))
        self.delayed[item] = (min(at, self.elapsed + delay), triggers | {trigger})

    @rule(seconds=st.integers(1, 3))
    def step(self, seconds: int) -> None:
        self.clock.step(seconds)
        self.elapsed += seconds
        for item, (at, triggers) in list(self.delayed.items()):
            if at <= self.elapsed:
                self.ready.setdefault(item, set()).update(triggers)
                del self.delayed[item]

    @rule()
    def take(self) -> None:
        delivery = self.queue.get(timeout=0)
        available = self.ready.keys() - self.held
        if delivery is None:
            assert available == set()
            return
        assert delivery.item in available
        assert delivery.triggers == tuple(sorted(self.ready.pop(delivery.item)))
        self.held.add(delivery.item)

    @rule(random=st.randoms(use_true_random=False))
    def finish(self, random: Random) -> None:
        if self.held:
            item = random.choice(sorted(self.held))
            self.queue.done(item)
            self.held.remove(item)

    @invariant()
    def length_is_what_can_be_had(self) -> None:
        assert len(self.queue) == len(self.ready.keys() - self.held)

    @invariant()
    def next_ready_is_the_earliest_that_can_be_had(self) -> None:
        if self.ready.keys() - self.held:
            expected: float | None = 0.0
        else:
            expected = min((at - self.elapsed for at, _ in self.delayed.values()), default=None)
        assert self.queue.next_ready_in() == expected


TestQueueMachine = QueueMachine.TestCase
TestQueueMachine.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
