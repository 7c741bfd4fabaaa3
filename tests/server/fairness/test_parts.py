"""Tests of the independent parts of fair queuing: hands of queues, seats of levels and requests, and the delay that
refused clients get.
"""

from __future__ import annotations

from random import Random

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.server.fairness.queue_settings import Width
from ctrlmgr.server.fairness.request_width import ObjectStats, Query, Stats, kept_seats, list_seats
from ctrlmgr.server.fairness.retry_after import RetryAfter
from ctrlmgr.server.fairness.seat_allocation import Demand, allocate
from ctrlmgr.server.fairness.shuffle_sharding import deal, hash_flow

PODS = Attributes("list", group="", version="v1", resource="pods", namespace="shop")
MIDDLE = Stats(5000, 1000)


def test_a_hand_has_different_queues_and_depends_only_on_the_flow() -> None:
    hands = {user: deal(hash_flow("global-default", user), 128, 6) for user in map(str, range(500))}
    assert all(len(set(hand)) == 6 and set(hand) <= set(range(128)) for hand in hands.values())
    assert len(set(hands.values())) == 500
    assert deal(hash_flow("global-default", "7"), 128, 6) == hands["7"]
    assert sorted(deal(123456789, 6, 6)) == [0, 1, 2, 3, 4, 5]


def test_hands_equal_kubernetes() -> None:
    assert deal(0, 5, 3) == (0, 1, 2)
    assert deal(7, 5, 3) == (2, 1, 0)
    assert hash_flow("a", "b") < 2**64


@pytest.mark.parametrize(
    ("total", "demands", "seats", "fraction"),
    [
        pytest.param(10, [Demand(0, 100, 5), Demand(0, 100, 15)], [2.5, 7.5], 0.5, id="without bounds"),
        pytest.param(10, [Demand(4, 100, 5), Demand(0, 100, 15)], [4, 6], 0.4, id="one has its least"),
        pytest.param(10, [Demand(0, 100, 5), Demand(0, 6, 15)], [4, 6], 0.8, id="one has its most"),
        pytest.param(7, [Demand(3, 9, 3), Demand(4, 9, 9)], [3, 4], 4 / 9, id="all have their least"),
        pytest.param(18, [Demand(3, 9, 3), Demand(4, 9, 9)], [9, 9], 3.0, id="all have their most"),
        pytest.param(0, [Demand(0, 9, 3)], [0], 0.0, id="nothing"),
        pytest.param(10, [Demand(0, 100, 0), Demand(0, 100, 0)], [5, 5], 5000.0, id="nobody needs any"),
    ],
)
def test_seats_are_divided_in_proportion_within_bounds(
    total: int, demands: list[Demand], seats: list[float], fraction: float
) -> None:
    allocation = allocate(total, demands)
    assert allocation.seats == pytest.approx(seats)
    assert allocation.fair_fraction == pytest.approx(fraction)


@pytest.mark.parametrize("seed", range(200))
def test_every_division_is_fair(seed: int) -> None:
    random = Random(seed)
    demands = []
    for _ in range(random.randint(1, 9)):
        least = random.randint(0, 20)
        demands.append(Demand(least, least + random.randint(0, 40), least + random.random() * 30))
    total = random.randint(sum(int(each.lower) for each in demands), sum(int(each.upper) for each in demands))
    seats, fraction = allocate(total, demands)
    assert sum(seats) == pytest.approx(total)
    for own, (lower, upper, target) in zip(seats, demands, strict=True):
        fair = fraction * max(target, 0.001)
        assert own == pytest.approx(max(lower, min(upper, fair)), abs=1e-6)


@pytest.mark.parametrize(
    "demand", [Demand(-1, 5, 5), Demand(4, 9, 3), Demand(4, 3, 5), Demand(9, 9, 9), Demand(0, 1, 1)]
)
def test_an_impossible_division_is_refused(demand: Demand) -> None:
    with pytest.raises(ValueError, match="bound"):
        allocate(5, [demand])


@pytest.mark.parametrize(
    ("asked", "query", "stats", "widest", "seats"),
    [
        pytest.param(PODS, {}, Stats(0, 0), 10, 1, id="nothing is there"),
        pytest.param(PODS, {}, Stats(350, 1000), 10, 4, id="a seat for 100 KB"),
        pytest.param(PODS, {}, MIDDLE, 0, 10, id="ten from memory"),
        pytest.param(PODS, {}, MIDDLE, 7, 7, id="no more than the level allows"),
        pytest.param(PODS, {"limit": ["200"]}, MIDDLE, 10, 2, id="a page"),
        pytest.param(PODS, {"limit": ["200"], "continue": ["x"]}, Stats(5000, 10_000), 100, 20, id="the next page"),
        pytest.param(
            PODS, {"limit": ["10"], "continue": ["x"], "labelSelector": ["a"]}, MIDDLE, 100, 25, id="with a selector"
        ),
        pytest.param(PODS, {"resourceVersionMatch": ["Exact"]}, MIDDLE, 100, 50, id="an older state"),
        pytest.param(PODS, {"resourceVersionMatch": ["NotOlderThan"]}, MIDDLE, 100, 10, id="the newest state"),
        pytest.param(PODS._replace(name="web"), {}, MIDDLE, 10, 1, id="one by its name"),
        pytest.param(PODS, {"limit": ["x"]}, MIDDLE, 9, 9, id="malformed"),
        pytest.param(PODS._replace(verb="watch"), {"resourceVersion": ["7"]}, MIDDLE, 10, 1, id="a watch"),
        pytest.param(PODS._replace(verb="watch"), {}, MIDDLE, 10, 10, id="a watch from the beginning"),
        pytest.param(
            PODS._replace(verb="watch"),
            {"resourceVersion": ["7"], "sendInitialEvents": ["true"]},
            MIDDLE,
            10,
            10,
            id="with initial events",
        ),
    ],
)
def test_a_list_takes_seats_for_the_objects_it_reads(
    asked: Attributes, query: Query, stats: Stats, widest: int, seats: int
) -> None:
    assert list_seats(asked, query, stats, widest) == seats


def test_a_write_holds_seats_for_its_watches() -> None:
    assert kept_seats(10, 10) == Width(1, 1, 0.005)
    assert kept_seats(55, 10) == Width(1, 6, 0.005)
    assert kept_seats(1000, 0) == Width(1, 10, 0.05)
    assert kept_seats(100, 2) == Width(1, 2, 0.025)


def test_the_statistics_are_sampled_and_delayed() -> None:
    time, objects = [0.0], [Object.from_dict({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"}})] * 250
    stats = ObjectStats(lambda _resource: objects, now=lambda: time[0])
    pods = Resource("", "pods")
    assert stats.of(pods) == (250, len(objects[0].body))
    objects = []
    assert stats.of(pods).objects == 250
    time[0] = 10.0
    assert stats.of(pods) == (0, 0)


def test_refused_clients_wait_longer_while_many_are_refused() -> None:
    delay, seconds = RetryAfter(), []
    for second in range(1000, 1100):
        for _ in range(20 if second < 1080 else 0):
            delay.note(second)
        seconds.append(delay.seconds)
    assert seconds[0] == 1
    assert sorted(seconds) == seconds
    assert seconds[-1] == 32
    for second in range(2000, 2200, 5):
        delay.note(second)
    assert delay.seconds == 1
