"""Property tests of the queue with random orders of adds and takes."""

from __future__ import annotations

from collections import Counter
from operator import itemgetter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ctrlmgr.testing import FakeClock
from ctrlmgr.workqueue import CHANGE, LOW, URGENT, Delivery, WorkQueue
from ctrlmgr.workqueue.ready import SHARE

ITEMS = st.sampled_from([f"{namespace}/{name}" for namespace in "xyz" for name in range(3)])
PRIORITIES = st.sampled_from((LOW, CHANGE, URGENT))
DELAYS = st.sampled_from((0.25, 0.5, 2.0))


def namespace_of(item: str) -> str:
    return item.partition("/")[0]


class Deliveries(RuleBasedStateMachine):
    """A queue and a model of the queue, which predicts the deliveries and their priorities."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = FakeClock()
        self.queue: WorkQueue[str] = WorkQueue("properties", clock=self.clock, namespace_of=namespace_of)
        self.wanted: dict[str, int] = {}  # the expected deliveries, with the highest priority of each item
        # For each delayed item: its due time, the number of the add that set it, and its highest priority.
        self.later: dict[str, tuple[float, int, int]] = {}
        self.asked: dict[str, list[int]] = {}
        self.answered: dict[str, list[int]] = {}
        self.held: list[str] = []
        self.taken = self.number = 0
        # For each ready item: its position among items of its namespace and priority, and how often each other
        # namespace has had its turn at this priority since.
        self.place: dict[str, int] = {}
        self.passed: dict[str, Counter[str]] = {}

    def note(self, item: str) -> int:
        self.number += 1
        self.asked.setdefault(item, []).append(self.number)
        return self.number

    def want(self, item: str, priority: int) -> None:
        known = self.wanted.get(item)
        if known is None or priority > known:
            self.wanted[item] = priority
            if item not in self.held:
                self.enter(item)

    def enter(self, item: str) -> None:
        self.passed[item] = Counter()
        ready = (each for each in self.wanted if each not in self.held)
        self.place[item] = sum(
            namespace_of(each) == namespace_of(item) and self.wanted[each] == self.wanted[item] for each in ready
        )

    @rule(item=ITEMS, priority=PRIORITIES)
    def add(self, item: str, priority: int) -> None:
        self.queue.add(item, (self.note(item),), priority=priority)
        self.want(item, priority)

    @rule(item=ITEMS, priority=PRIORITIES, delay=DELAYS)
    def add_after(self, item: str, priority: int, delay: float) -> None:
        self.queue.add_after(item, delay, (self.note(item),), priority=priority)
        moment, number, known = self.later.get(item, (float("inf"), 0, LOW))
        due = min((moment, number), (self.clock.monotonic() + delay, self.number))
        self.later[item] = (*due, max(priority, known))

    @rule(seconds=st.sampled_from((0.25, 1.0)))
    def step(self, seconds: float) -> None:
        self.clock.step(seconds)
        len(self.queue)  # this moves due items into the queue
        for item, (moment, _, priority) in sorted(self.later.items(), key=itemgetter(1)):
            if moment <= self.clock.monotonic():
                del self.later[item]
                self.want(item, priority)

    @rule()
    def take(self) -> None:
        ready = {item: priority for item, priority in self.wanted.items() if item not in self.held}
        delivery = self.queue.get(timeout=0)
        assert (delivery is None) == (not ready), "an item that is ready is handed out, and no other"
        if delivery is not None:
            self.check(delivery, ready)

    def check(self, delivery: Delivery[str], ready: dict[str, int]) -> None:
        item = delivery.item
        assert item in ready, "an item is never processed twice at the same time"
        assert delivery.priority == ready[item], "a priority only rises"
        self.taken += 1
        if self.taken % SHARE:
            assert delivery.priority == max(ready.values())
        for other, priority in ready.items():
            if priority == delivery.priority and namespace_of(other) != namespace_of(item):
                self.passed[other][namespace_of(item)] += 1
                assert self.passed[other][namespace_of(item)] <= self.place[other], "namespaces take turns"
        self.answered.setdefault(item, []).extend(delivery.triggers)
        del self.wanted[item]
        self.held.append(item)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        self.give_back(data.draw(st.sampled_from(self.held)))

    def give_back(self, item: str) -> None:
        self.held.remove(item)
        self.queue.done(item)
        if item in self.wanted:
            self.enter(item)

    @invariant()
    def depth_is_what_is_wanted(self) -> None:
        depths = {priority: depth for priority, depth in self.queue.measure().depths.items() if depth}
        assert depths == Counter(self.wanted.values())

    def teardown(self) -> None:
        self.step(2.0)
        for _ in range(200):
            self.take()
            while self.held:
                self.give_back(self.held[0])
        assert {item: sorted(triggers) for item, triggers in self.answered.items()} == self.asked, "no item is lost"


Deliveries.TestCase.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
TestDeliveries = Deliveries.TestCase
