"""Tests of the share that one client's request bodies may have of the server's limit for bodies."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import pytest

from ctrlmgr.http.exchange import Exchange
from ctrlmgr.http.server_context import ServerContext
from ctrlmgr.http.size_limits import DEFAULT
from ctrlmgr.testing.fake_clock import FakeClock

BOUNDS = replace(DEFAULT, bodies_bytes=400, peer_bodies_bytes=100)


async def _nobody(exchange: Exchange) -> None:
    raise AssertionError


@pytest.fixture
def context() -> Iterator[ServerContext]:
    loop = asyncio.new_event_loop()
    yield ServerContext(_nobody, BOUNDS, loop, FakeClock())
    loop.close()


def test_one_address_cannot_use_the_whole_budget(context: ServerContext) -> None:
    taken = sum(context.reserve(10, "192.0.2.1") for _ in range(118))
    assert taken == 10
    assert context.reserve(100, "192.0.2.2")


def test_all_addresses_share_one_limit(context: ServerContext) -> None:
    assert [context.reserve(90, f"192.0.2.{host}") for host in range(5)] == [True] * 4 + [False]
    assert not context.reserve(90, "192.0.2.9")
    context.release(90, "192.0.2.0")
    assert context.reserve(90, "192.0.2.9")


def test_released_bytes_can_be_acquired_again(context: ServerContext) -> None:
    for _ in range(20):
        assert context.reserve(60, "192.0.2.1")
        assert context.reserve(40, "192.0.2.1")
        assert not context.reserve(1, "192.0.2.1")
        context.release(60, "192.0.2.1")
        context.release(40, "192.0.2.1")


def test_the_share_of_one_address_is_a_fraction() -> None:
    assert DEFAULT.peer_bodies_bytes * 4 <= DEFAULT.bodies_bytes
