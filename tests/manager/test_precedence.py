"""Reconciles give way to requests, and only while these want the interpreter."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

import pytest

from ctrlmgr.eventlog import Author, EventType, Proposal
from ctrlmgr.manager.precedence import Precedence, RequestDemand
from ctrlmgr.testing.clock import FakeClock
from tests.background import DEADLINE, background
from tests.manager.stage import Scripted, Stage, pod


class Demanding:
    """A demand that is as high as it is told to be."""

    def __init__(self, *, is_high: bool = True) -> None:
        self.high = is_high
        self.asked = 0

    def is_high(self) -> bool:
        self.asked += 1
        return self.high


class Waits(FakeClock):
    """Notes how long it is waited, and lets that time pass at once."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float] = []
        self.stands_still = False

    def wait(self, condition: threading.Condition, timeout: float | None) -> bool:
        assert timeout is not None
        self.waits.append(round(timeout, 3))
        if timeout > 0 and not self.stands_still:
            self.step(timeout)
        return False


class Work:
    """Reconciles that take a certain time of the processor, and no other."""

    def __init__(self, clock: FakeClock, seconds: float) -> None:
        self.clock = clock
        self.seconds = seconds
        self.waiting = 100
        self.taken = 0.0
        self.begun: list[float] = []

    def reconcile(self) -> bool:
        self.begun.append(self.clock.monotonic())
        self.taken += self.seconds
        return True


def at_work(seconds: float, *, is_high: bool = True) -> tuple[Waits, Work, Demanding, Callable[[], bool]]:
    clock, demand = Waits(), Demanding(is_high=is_high)
    work = Work(clock, seconds)
    precedence = Precedence(demand, clock=clock, thread_time=lambda: work.taken)
    return clock, work, demand, partial(precedence.run, work.reconcile, lambda: work.waiting)


def test_nobody_waits_while_there_is_time_for_all() -> None:
    clock, work, _, reconcile = at_work(0.001, is_high=False)
    assert all(reconcile() for _ in range(100))
    assert (clock.waits, len(work.begun)) == ([], 100)


def test_a_few_keys_are_reconciled_at_once() -> None:
    clock, work, _, reconcile = at_work(0.001)
    for work.waiting in range(17):
        reconcile()
    assert clock.waits == []
    work.waiting = 17
    reconcile()
    assert len(clock.waits) == 1


def test_reconciles_are_so_far_apart_that_they_take_a_part_of_the_time() -> None:
    clock, work, demand, reconcile = at_work(0.001)
    for _ in range(200):  # it learns how long they take
        reconcile()
    work.begun.clear()
    for _ in range(10):
        reconcile()
    between = [round(after - before, 3) for before, after in zip(work.begun, work.begun[1:], strict=False)]
    assert between == [0.02] * 9
    demand.high = False
    clock.waits.clear()
    reconcile()
    assert clock.waits == []


def test_turns_that_nobody_took_are_gone() -> None:
    clock, work, _, reconcile = at_work(0.001)
    for _ in range(200):
        reconcile()
    clock.step(10.0)
    work.begun.clear()
    for _ in range(3):
        reconcile()
    assert [round(each - work.begun[0], 3) for each in work.begun] == [0.0, 0.02, 0.04]


def test_one_that_took_long_is_no_usual_one() -> None:
    clock, work, _, reconcile = at_work(0.001)
    for seconds in (*(0.001 for _ in range(200)), 3600.0, 0.001, 0.001):
        work.seconds = seconds
        reconcile()
    assert clock.waits[-1] == 0.029


def test_however_long_they_take_nobody_waits_long() -> None:
    clock, _, _, reconcile = at_work(3600.0)
    for _ in range(200):
        reconcile()
    assert max(clock.waits) == 0.1


def test_a_worker_waits_for_the_turns_of_all_others() -> None:
    """As if several came at once: time does not pass while each finds out when it may begin."""
    clock, _, demand, reconcile = at_work(0.001, is_high=False)
    for _ in range(200):
        reconcile()
    demand.high = clock.stands_still = True
    for _ in range(8):
        reconcile()
    assert clock.waits == [0.0, 0.02, 0.04, 0.06, 0.08, 0.1, 0.1, 0.1]


def test_what_raises_has_taken_time_too() -> None:
    clock, work, _, _ = at_work(0.001)

    def fail() -> bool:
        work.reconcile()
        raise ValueError("no")

    precedence = Precedence(Demanding(), clock=clock, thread_time=lambda: work.taken)
    for _ in range(200):
        with pytest.raises(ValueError, match="no"):
            precedence.run(fail, lambda: 100)
    assert clock.waits[-1] == 0.02


def test_the_workers_of_a_controller_give_way_while_many_keys_wait() -> None:
    reconciler, demand = Scripted(), Demanding(is_high=False)
    stage = Stage(reconciler)
    stage.controller.give_way(Precedence(demand, clock=stage.clock))
    for at in range(20):
        stage.log.append([Proposal(EventType.ADDED, pod(f"p-{at}"), 0)], author=Author("alice"))
    stage.informers.sync()
    stop = threading.Event()
    running = background(lambda: stage.controller.run(stop))
    stage.clock.wait_for_waiters(1)  # its worker waits for more
    assert (len(reconciler.keys), demand.asked) == (20, 4)
    stop.set()
    running.result(DEADLINE)


class Processor:
    """A clock, and what of it a process and its answering thread have taken."""

    def __init__(self) -> None:
        self.now = 100.0
        self.process = 7.0
        self.answering = 3.0
        self.demand = RequestDemand(lambda: self.now, lambda: self.process)
        self.demand._answering = lambda: self.answering

    def passes(self, seconds: float, *, process: float, answering: float) -> bool:
        """Let time pass with these shares of a processor, and say whether demand is high then."""
        self.now += seconds
        self.process += seconds * process
        self.answering += seconds * answering
        return self.demand.is_high()


@pytest.mark.parametrize(
    ("process", "answering", "is_high"),
    [(1.0, 0.5, True), (1.4, 0.21, True), (0.89, 0.89, False), (1.4, 0.19, False), (0.0, 0.0, False)],
)
def test_demand_is_high_when_the_process_is_busy_and_answers(process: float, answering: float, is_high: bool) -> None:
    processor = Processor()
    assert not processor.passes(1.0, process=process, answering=answering)  # there is nothing to compare with
    assert processor.passes(0.05, process=process, answering=answering) is is_high


def test_what_demand_was_it_is_for_a_moment() -> None:
    processor = Processor()
    processor.passes(1.0, process=1.0, answering=1.0)
    assert processor.passes(0.05, process=1.0, answering=1.0)
    assert processor.passes(0.01, process=0.0, answering=0.0)  # too short a time to say something else
    assert not processor.passes(0.02, process=0.0, answering=0.0)
    assert processor.passes(0.05, process=1.0, answering=1.0)
    assert not processor.passes(0.3, process=1.0, answering=1.0)  # too long a time to say anything of now


def test_nobody_gives_way_to_a_thread_that_has_ended() -> None:
    processor = Processor()
    processor.passes(1.0, process=1.0, answering=1.0)
    assert processor.passes(0.05, process=1.0, answering=1.0)

    def ended() -> float:
        raise OSError

    processor.demand._answering = ended
    assert not processor.passes(0.05, process=1.0, answering=1.0)


def test_a_thread_that_answers_may_end() -> None:
    """Its time cannot be read any more then; before, it is the system's."""
    now = [0.0]
    demand = RequestDemand(lambda: now[0])
    assert not demand.is_high()  # nobody answers yet
    thread = threading.Thread(target=demand.answer_here)
    thread.start()
    thread.join()
    for now[0] in (1.0, 2.0):
        assert not demand.is_high()
    demand.answer_here()
    now[0] = 3.0
    assert not demand.is_high()
    assert demand._answered > 0
