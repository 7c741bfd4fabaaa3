"""Tests of the limits of concurrent reads and writes on a server without priority and fairness."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.server.authn.access import AllowEverything
from ctrlmgr.server.filters.in_flight_limits import FREE, InFlightLimits, Overloaded
from tests.server.site import CONFIG_MAPS, make, running

PODS = Attributes("list", version="v1", resource="pods")


ALICE = User("alice")


@dataclass
class RequestDouble:
    """A request."""

    user: User = ALICE


def test_requests_above_the_limit_are_refused() -> None:
    limits = InFlightLimits(2, 1)
    first, second = limits.seat(RequestDouble(), PODS), limits.seat(RequestDouble(), PODS)
    with pytest.raises(Overloaded) as refused:
        limits.seat(RequestDouble(), PODS)
    assert refused.value.details is not None
    assert refused.value.details.retry_after_seconds == 1
    limits.seat(RequestDouble(), PODS._replace(verb="update")).end()
    first.pause()
    third = limits.seat(RequestDouble(), PODS)
    with pytest.raises(Overloaded):
        asyncio.run(first.take())
    third.end()
    asyncio.run(first.take())
    for each in (first, second):
        each.end()
        each.end()
    limits.seat(RequestDouble(), PODS)
    limits.seat(RequestDouble(), PODS)


def test_administrators_and_long_running_requests_are_not_counted() -> None:
    limits = InFlightLimits(1, 1)
    limits.seat(RequestDouble(), PODS)
    admin = RequestDouble(User("admin", groups=("system:masters",)))
    others = [
        (admin, PODS),
        (RequestDouble(), PODS._replace(verb="watch")),
        (RequestDouble(), PODS._replace(subresource="log")),
    ]
    assert [limits.seat(*each) for each in others] == [FREE] * 3


def test_zero_means_unlimited() -> None:
    limits = InFlightLimits(0, 0)
    assert all(limits.seat(RequestDouble(), PODS) for _ in range(10))


def test_a_free_seat_is_acquired_and_released() -> None:
    FREE.pause()
    FREE.release()
    assert not FREE.waits
    FREE.end()


def test_pages_are_answered_in_a_served_application() -> None:
    with running(make(access=AllowEverything(User("alice")))) as site:
        assert site.ask(CONFIG_MAPS).status == 200
