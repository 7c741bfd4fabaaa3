from __future__ import annotations

import asyncio
import threading
from random import Random

import pytest

from ctrlmgr.authentication.header_lines import HeaderLines
from ctrlmgr.errors import BadRequest
from ctrlmgr.http.exchange import Exchange
from ctrlmgr.http.request_head import Head
from ctrlmgr.http.size_limits import DEFAULT
from ctrlmgr.server.filters.request_ids import RequestIds
from ctrlmgr.server.pages.debug import debug_pages, profile
from ctrlmgr.server.request import Request
from ctrlmgr.server.routes import locate
from ctrlmgr.server.workers import Workers
from ctrlmgr.testing import FakeClock
from tests.http.test_exchange import RecordedConnection


def busy_for(stop: threading.Event) -> None:
    while not stop.is_set():
        sum(range(100))


def test_a_profile_shows_the_stacks_of_threads() -> None:
    clock, stop = FakeClock(patience=0.05), threading.Event()
    worker = threading.Thread(target=busy_for, args=(stop,), name="busy-one")
    worker.start()
    lines: list[str] = []
    profiler = threading.Thread(target=lambda: lines.extend(profile(1.0, clock).splitlines()))
    profiler.start()
    try:
        for _ in range(4):
            clock.wait_for_waiters(1)
            clock.step(0.3)
        profiler.join(10)
    finally:
        stop.set()
        worker.join()
    found = [line for line in lines if line.startswith("busy-one;")]
    assert found
    assert all("busy_for" in line for line in found)
    assert sum(int(line.rpartition(" ")[2]) for line in found) >= 3
    assert not [line for line in lines if "test_a_profile" not in line and "profile:" in line]


@pytest.mark.parametrize("value", ["9" * 6_000, "61", "0", "-1", "1e1", "x", "00000000000000000000000000000001"])
def test_invalid_seconds_are_refused_with_a_short_message(value: str) -> None:
    path = b"/debug/profile"
    exchange = Exchange(Head("GET", path, f"seconds={value}".encode(), HeaderLines()), RecordedConnection(), DEFAULT)
    page = debug_pages({}, Workers(1), clock=FakeClock())["/debug/profile"]

    async def ask() -> None:
        await page(Request(exchange, locate(path), RequestIds(Random(1))))

    with pytest.raises(BadRequest, match="it must be a whole number from 1 to 60") as refused:
        asyncio.run(ask())
    assert len(str(refused.value)) < 100
