"""Tests of a server without an address, whose application runs on the event loop of another server."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from structlog.testing import capture_logs

from ctrlmgr.authentication.header_lines import HeaderLines
from ctrlmgr.clock import SystemClock
from ctrlmgr.errors import CtrlmgrError
from ctrlmgr.http.exchange import Exchange
from ctrlmgr.http.request_head import Head
from ctrlmgr.http.size_limits import DEFAULT
from ctrlmgr.server.clusters.mounted_server import MountedServer, SharedLoop
from tests.background import background
from tests.http.test_exchange import RecordedConnection

TIMEOUT = 10.0


class WaitingApplication:
    """Answers a request when it drains, and records what happens."""

    def __init__(self) -> None:
        self.happened: list[str] = []
        self.failure: Exception | None = None
        self._leaving = asyncio.Event()

    async def __call__(self, exchange: Exchange) -> None:
        await self._leaving.wait()
        self.happened.append("answered")
        exchange.answer(200, (), b"")

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        if self.failure is not None:
            raise self.failure
        self.happened.append("started")
        yield
        self.happened.append("ended")

    async def drain(self) -> None:
        self.happened.append("drained")
        self._leaving.set()


def test_running_requests_end_before_the_application() -> None:
    async def run() -> tuple[WaitingApplication, list[int]]:
        app, shared, stop, kept = WaitingApplication(), SharedLoop(), threading.Event(), list[int]()
        shared.running = asyncio.get_running_loop()
        server = MountedServer(app, "", 1, shared, clock=SystemClock(), housekeeping=[lambda: kept.append(1)])
        running = background(lambda: server.run(stop))
        assert await asyncio.to_thread(server.opened.wait, TIMEOUT)
        assert server.is_open
        head = Head("GET", b"/", b"", HeaderLines())
        request = asyncio.create_task(server(Exchange(head, RecordedConnection(), DEFAULT)))
        await asyncio.sleep(0)
        assert server.requests == 1
        stop.set()
        await asyncio.to_thread(running.result, TIMEOUT)
        await request
        assert (server.is_open, server.requests) == (False, 0)
        return app, kept

    app, kept = asyncio.run(run())
    assert app.happened == ["started", "drained", "answered", "ended"]
    assert kept == [1]


def test_an_error_of_the_application_is_raised_where_the_server_runs() -> None:
    async def run() -> None:
        app, shared, stop = WaitingApplication(), SharedLoop(), threading.Event()
        app.failure = ValueError("the log is closed")
        shared.running = asyncio.get_running_loop()
        server = MountedServer(app, "", 1, shared, clock=SystemClock())
        running = background(lambda: server.run(stop))
        with pytest.raises(ValueError, match="the log is closed"):
            await asyncio.to_thread(running.result, TIMEOUT)
        assert stop.is_set()
        assert not server.opened.is_set()

    asyncio.run(run())


def test_an_error_of_housekeeping_is_logged() -> None:
    async def run() -> list[int]:
        kept, shared, stop = list[int](), SharedLoop(), threading.Event()
        shared.running = asyncio.get_running_loop()

        def fail() -> None:
            raise CtrlmgrError("a file is missing")

        housekeeping = [fail, lambda: kept.append(1)]
        server = MountedServer(WaitingApplication(), "", 1, shared, clock=SystemClock(), housekeeping=housekeeping)
        running = background(lambda: server.run(stop))
        assert await asyncio.to_thread(server.opened.wait, TIMEOUT)
        stop.set()
        await asyncio.to_thread(running.result, TIMEOUT)
        return kept

    with capture_logs() as logs:
        assert asyncio.run(run()) == [1]
    assert [each["error"] for each in logs] == ["a file is missing"]


def test_a_server_needs_an_outer_server() -> None:
    server = MountedServer(WaitingApplication(), "", 1, SharedLoop(), clock=SystemClock())
    with pytest.raises(CtrlmgrError, match="is not running"):
        server.run(threading.Event())
