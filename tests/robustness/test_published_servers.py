"""Tests of the Endpoints of the Service `kubernetes` while server processes on one PostgreSQL database start and stop:
they contain all running processes.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from ctrlmgr.clock import SystemClock
from ctrlmgr.eventlog import EventLog, open_log
from ctrlmgr.testing.postgres import PostgresCluster
from tests.robustness.histories.run import server_of
from tests.robustness.places import on_postgres
from tests.robustness.serving import ConfiguredServer

_ENDPOINTS = "/api/v1/namespaces/default/endpoints/kubernetes"
_SLICES = (
    "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices?labelSelector=kubernetes.io/service-name=kubernetes"
)
_PATIENCE = 60.0
"""Seconds of real time after which a lease of fifteen seconds has expired, even on a very busy machine."""


def published(server: ConfiguredServer) -> set[int]:
    """Return the ports of all servers, as one server reports them in the Endpoints."""
    code, endpoints = server.request("GET", _ENDPOINTS)
    assert code == 200, endpoints
    return {port["port"] for subset in endpoints.get("subsets") or () for port in subset["ports"]}


def published_in_slices(server: ConfiguredServer) -> set[int]:
    code, slices = server.request("GET", _SLICES)
    assert code == 200, slices
    return {port["port"] for each in slices["items"] if each["endpoints"] for port in each["ports"] or ()}


def ports(servers: Iterable[ConfiguredServer]) -> set[int]:
    return {server.site.port for server in servers}


def wait(log: EventLog, claim: Callable[[], bool]) -> None:
    """Check a condition after each event of a watch, until the condition holds."""
    deadline = time.monotonic() + _PATIENCE
    while not claim():
        assert time.monotonic() < deadline, "it did not come true in time"
        log.wait(log.head().revision, 1.0)


@pytest.mark.slow
@pytest.mark.postgres
def test_only_serving_processes_are_published(tmp_path: Path, cluster: PostgresCluster) -> None:
    with on_postgres(tmp_path, cluster) as setting, ExitStack() as stack:
        servers = [server_of(setting, number) for number in range(3)]
        for server in servers:
            stack.callback(server.close)
            server.start()
        log = stack.enter_context(closing(open_log(setting.database, clock=SystemClock(), random=random.Random(1))))
        first, killed, stopped = servers
        wait(log, lambda: published(first) == published_in_slices(stopped) == ports(servers))

        stopped.stop()
        assert published(first) == published(killed) == ports((first, killed))  # before the process ended

        killed.kill()
        assert published(first) == ports((first, killed))  # no process has detected it yet
        wait(log, lambda: published(first) == published_in_slices(first) == ports((first,)))

        killed.start()
        wait(log, lambda: published(first) == ports((first, killed)))
