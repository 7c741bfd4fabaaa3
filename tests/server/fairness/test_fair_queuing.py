"""Property tests of fair queuing: requests start in the same order as in the reference implementation, no seat is lost,
and each flow gets its share.
"""

from __future__ import annotations

import os
from collections import Counter
from random import Random

import pytest

from ctrlmgr.server.fairness.fair_queuing import Ticket
from ctrlmgr.server.fairness.queue_settings import UNLIMITED, Queuing
from tests.server.fairness.fairness_stage import flow, queue_set, runs, start
from tests.server.fairness.reference import QueuedRequest, Reference

STEPS = int(os.environ.get("CTRLMGR_TEST_FAIRNESS_STEPS", "30000"))
"""The number of random steps; an environment variable can increase it."""


@pytest.mark.parametrize("seed", range(8))
def test_requests_run_in_the_order_of_the_reference(seed: int) -> None:
    random = Random(seed)
    count, size, length = random.choice(((1, 1, 50), (4, 2, 5), (16, 4, 3), (64, 6, 50)))
    limit = random.randint(1, 12)
    queues, timers = queue_set(count, size, length, limit)
    reference = Reference(count, length, limit, timers.later)
    flows = [flow(queues, f"user-{number}") for number in range(6)]
    started: list[int] = []
    waiting: dict[int, tuple[Ticket, QueuedRequest]] = {}
    running: dict[int, tuple[Ticket, QueuedRequest]] = {}

    def begin(number: int) -> None:
        started.append(number)
        running[number] = waiting.pop(number)

    for number in range(1500):
        timers.advance(random.choice((0.0, 0.001, 0.004, 0.02)))
        what = random.random()
        if what < 0.45:
            chosen = flows[min(int(random.expovariate(1.0)), len(flows) - 1)]
            initial = random.choice((1, 1, 1, 2, 5))
            final, latency = random.choice(((0, 0.0), (0, 0.0), (3, 0.005), (20, 0.01)))
            asked = QueuedRequest(number, initial, final, latency)
            ticket = start(queues, chosen, initial, final, latency)
            assert (ticket is not None) == reference.start(timers.time, asked, chosen.hand)
            if ticket is not None:
                waiting[number] = (ticket, asked)
                if runs(ticket):
                    begin(number)
                else:
                    ticket.wake = lambda number=number: begin(number)
        elif what < 0.85 and running:
            ticket, asked = running.pop(random.choice(sorted(running)))
            queues.finish(ticket)
            reference.finish(timers.time, asked)
        elif what < 0.93 and waiting:
            ticket, asked = waiting.pop(random.choice(sorted(waiting)))
            queues.cancel(ticket)
            reference.cancel(timers.time, asked)
        elif what > 0.98:
            limit = random.randint(1, 12)
            queues.configure(queues.queuing, limit)
            reference.configure(timers.time, limit)
        assert started == reference.started
        assert queues.seats_in_use == reference.in_use
    assert len(started) > 250


@pytest.mark.parametrize("seed", range(2))
def test_no_seat_is_lost(seed: int) -> None:
    random = Random(seed)
    queues, timers = queue_set(16, 3, 4, 8)
    flows = [flow(queues, f"user-{number}") for number in range(12)]
    there: list[Ticket] = []
    for _ in range(STEPS // 2):
        what = random.random()
        if what < 0.5:
            initial, final, latency = random.choice(((1, 0, 0.0), (1, 0, 0.0), (2, 5, 0.003), (9, 0, 0.0)))
            ticket = start(queues, random.choice(flows), initial, final, latency)
            if ticket is not None:
                there.append(ticket)
        elif there:
            index = random.randrange(len(there))
            there[index], there[-1] = there[-1], there[index]
            ticket = there.pop()
            if runs(ticket):
                queues.finish(ticket)
            else:
                queues.cancel(ticket)
        if what > 0.9:
            timers.advance(0.002)
        if what > 0.999:
            queues.configure(Queuing(random.choice((4, 16, 32)), 3, 4), random.randint(1, 12))
            for each in flows:
                each.hand = flow(queues, each.user).hand
        assert queues.waiting == sum(len(queue.waiting) for queue in queues.queues)
        assert len(queues.running) == sum(map(runs, there))
        if not queues.waiting:
            assert queues.seats_waiting == 0
    while there:
        ticket = there.pop()
        (queues.finish if runs(ticket) else queues.cancel)(ticket)
    timers.advance(1.0)
    assert (queues.seats_in_use, queues.seats_waiting, queues.waiting, len(queues.running)) == (0, 0, 0, 0)
    assert all(queue.seats == 0 and not queue.running for queue in queues.queues)


def test_a_flow_with_many_requests_leaves_another_its_share() -> None:
    queues, timers = queue_set(8, 1, 1000, 4)
    noisy, quiet = flow(queues, "noisy", (1,)), flow(queues, "quiet", (2,))
    running: list[Ticket] = []
    served: Counter[str] = Counter()

    def ask(who: str) -> None:
        ticket = start(queues, noisy if who == "noisy" else quiet)
        assert ticket is not None
        if runs(ticket):
            running.append(ticket)
        else:
            ticket.wake = lambda: running.append(ticket)

    for _ in range(500):
        ask("noisy")
    for _ in range(100):
        ask("quiet")
    for _ in range(200):
        timers.advance(0.003)
        batch, running[:] = list(running), []
        for ticket in batch:
            if served["quiet"] < 90:
                served[ticket.flow.user] += 1
            queues.finish(ticket)
    assert served["quiet"] == 90
    assert 85 <= served["noisy"] <= 100, "both are served alike, whatever waits"


def test_a_queue_gains_nothing_from_the_time_when_it_was_empty() -> None:
    queues, timers = queue_set(2, 1, 100, 1)
    early, late = flow(queues, "early", (0,)), flow(queues, "late", (1,))
    first = start(queues, early)
    assert first is not None
    timers.advance(60.0)
    waiting = [start(queues, each) for each in (late, early, late, early)]
    order: list[str] = []
    for ticket in waiting:
        assert ticket is not None
        ticket.wake = lambda ticket=ticket: order.append(ticket.flow.user)
    queues.finish(first)
    for _ in waiting:
        timers.advance(0.003)
        for running in list(queues.running):
            queues.finish(running)
    assert order[:2] == ["late", "late"], "the long request is charged to the flow that sent it"


def test_a_request_wider_than_the_limit_runs_alone() -> None:
    queues, _ = queue_set(2, 1, 10, 3)
    one = flow(queues, "one", (0,))
    narrow, wide = start(queues, one), start(queues, one, 5)
    assert narrow is not None
    assert runs(narrow)
    assert not runs(wide)
    queues.finish(narrow)
    assert runs(wide)
    assert queues.seats_in_use == 5
    assert not runs(start(queues, one))


def test_a_write_holds_its_seats_for_a_while() -> None:
    queues, timers = queue_set(1, 1, 10, 4)
    one = flow(queues, "one", (0,))
    write = start(queues, one, 1, 4, 0.005)
    assert write is not None
    queues.finish(write)
    assert (len(queues.running), queues.seats_in_use) == (0, 4)
    next_one = start(queues, one)
    assert not runs(next_one)
    timers.advance(0.005)
    assert runs(next_one)
    assert queues.seats_in_use == 1


def test_a_full_queue_refuses_requests() -> None:
    queues, _ = queue_set(1, 1, 2, 1)
    one = flow(queues, "one", (0,))
    outcomes = [start(queues, one) for _ in range(5)]
    assert [runs(each) for each in outcomes] == [True, False, False, False, False]
    assert [each is None for each in outcomes] == [False, False, False, True, True]
    assert one.counts.rejected == {"queue-full": 2}


def test_a_level_without_queues_refuses_and_an_exempt_level_never_does() -> None:
    queues, _ = queue_set(0, limit=2)
    one = flow(queues)
    assert [runs(start(queues, one)) for _ in range(3)] == [True, True, False]
    assert one.counts.rejected == {"concurrency-limit": 1}
    exempt, _ = queue_set(UNLIMITED, limit=0)
    assert all(runs(start(exempt, flow(exempt), 10)) for _ in range(100))


def test_a_burst_runs_a_few_requests_per_turn_in_fair_order() -> None:
    queues, timers = queue_set(2, 1, 100, 50, burst=2)
    noisy, quiet = flow(queues, "noisy", (0,)), flow(queues, "quiet", (1,))
    order: list[str] = []
    for each in (*[noisy] * 10, quiet):
        ticket = start(queues, each)
        assert ticket is not None
        if runs(ticket):
            order.append(each.user)
        else:
            ticket.wake = lambda each=each: order.append(each.user)
    assert order == ["noisy", "noisy"]
    timers.advance(0.0)
    assert order[2] == "quiet"
    assert len(order) == 11
    assert queues.seats_in_use == 11


def test_the_demand_is_measured() -> None:
    queues, timers = queue_set(1, 1, 10, 2)
    one = flow(queues, "one", (0,))
    tickets = [start(queues, one) for _ in range(4)]
    timers.advance(1.0)
    for ticket in tickets[:2]:
        assert ticket is not None
        queues.finish(ticket)
    timers.advance(1.0)
    measured = queues.measure()
    assert (measured.seconds, measured.average, measured.deviation, measured.peak) == (2.0, 3.0, 1.0, 4)
    assert queues.measure() == (0.0, 0.0, 0.0, 2)
