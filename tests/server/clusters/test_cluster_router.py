"""Tests of the router: which application receives a request, and with which path."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ctrlmgr.authentication.header_lines import HeaderLines
from ctrlmgr.errors import ServiceUnavailable
from ctrlmgr.http.exchange import Exchange
from ctrlmgr.http.request_head import Head
from ctrlmgr.http.size_limits import DEFAULT
from ctrlmgr.server.clusters.cluster_router import ClusterRouter
from ctrlmgr.server.clusters.clusters_page import ClustersPage, NewCluster
from ctrlmgr.server.clusters.mounted_server import MountedServer, SharedLoop
from ctrlmgr.testing import FakeClock
from tests.http.test_exchange import RecordedConnection


class EchoApplication:
    """Answers with its name and the path that it received."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_running = False

    async def __call__(self, exchange: Exchange) -> None:
        assert self.is_running
        exchange.answer(200, (), b"%s %s %s" % (self.name.encode(), exchange.mounted_at, exchange.path))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        self.is_running = True
        yield
        self.is_running = False

    async def drain(self) -> None:
        """Do nothing."""


class OneCluster:
    """The cluster `a`, which wakes at its first request, and the cluster `broken`."""

    def __init__(self) -> None:
        self.shared = SharedLoop()
        self.app = EchoApplication("inner")
        self.server: MountedServer | None = None
        self.woken = 0

    def find(self, name: str) -> MountedServer | None:
        return self.server if name == "a" else None

    def awake(self, name: str) -> MountedServer | None:
        if name == "broken":
            raise ServiceUnavailable('cluster "broken" did not start')
        if name != "a":
            return None
        self.woken += 1
        self.server = MountedServer(self.app, "", 1, self.shared, clock=FakeClock())
        self.server.is_open = self.app.is_running = True
        return self.server

    def all(self) -> list[dict[str, Any]]:
        return []

    def describe(self, name: str) -> dict[str, Any]:
        return {"name": name}

    def create(self, new: NewCluster) -> dict[str, Any]:
        return {"name": new.name}

    def delete(self, name: str) -> None:
        """Do nothing."""


async def ask(router: ClusterRouter, path: bytes) -> bytes:
    line = RecordedConnection()
    await router(Exchange(Head("GET", path, b"", HeaderLines()), line, DEFAULT))
    return bytes(line.written)


def answers(*paths: bytes) -> tuple[OneCluster, list[bytes]]:
    clusters = OneCluster()
    router = ClusterRouter(EchoApplication("outer"), clusters, clusters.shared, ClustersPage(clusters))

    async def run() -> list[bytes]:
        async with router.running():
            assert clusters.shared.running is asyncio.get_running_loop()
            return [(await ask(router, path)).partition(b"\r\n\r\n")[2] for path in paths]

    return clusters, asyncio.run(run())


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (b"/clusters/a/api/v1/pods", b"inner /clusters/a /api/v1/pods"),
        (b"/clusters/a/", b"inner /clusters/a /"),
        (b"/clusters/a/clusters/b/api", b"inner /clusters/a /clusters/b/api"),
        (b"/clusters/a/../b/api", b"inner /clusters/a /../b/api"),
        (b"/clusters/a", b"outer  /clusters/a"),
        (b"/clusters", b"outer  /clusters"),
        (b"/clusters/none/api", b"outer  /clusters/none/api"),
        (b"/clusters//api", b"outer  /clusters//api"),
        (b"/clusters/%61/api", b"outer  /clusters/%61/api"),
        (b"/api/clusters/a/", b"outer  /api/clusters/a/"),
    ],
)
def test_a_path_selects_the_application(path: bytes, expected: bytes) -> None:
    assert answers(path)[1] == [expected]


def test_the_first_request_wakes_the_cluster() -> None:
    clusters, told = answers(b"/clusters/a/1", b"/clusters/a/2")
    assert told == [b"inner /clusters/a /1", b"inner /clusters/a /2"]
    assert clusters.woken == 1
    assert clusters.server is not None
    assert clusters.server.requests == 0
    assert clusters.shared.running is None


def test_a_cluster_that_does_not_start_is_unavailable() -> None:
    _, (body,) = answers(b"/clusters/broken/api")
    status = json.loads(body)
    assert (status["code"], status["message"]) == (503, 'cluster "broken" did not start')
