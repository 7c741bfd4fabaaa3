"""Measures `ctrlmgr run`: the delay from a controller's own write to its next reconcile of the same object.

A controller waits until its caches contain its own writes. The delay is the time from the response to the controller's
last write until the next reconcile of the same key begins. A Deployment is scaled up and down; the writes of each of
its controllers trigger the controller again. The delay is measured with our server, and with a proxy of the contract
tests in front of our server. The proxy sends the event of each write before its response, streams no lists and sends no
bookmarks.
"""

from __future__ import annotations

import logging
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import quantiles
from typing import Any
from unittest import mock

import structlog

from bench.report import Claim, report, run
from ctrlmgr.eventlog.event import Cause
from ctrlmgr.framework.remote.http_client import RemoteClient
from ctrlmgr.settings.kubeconfig import Access
from ctrlmgr.testing.served import ServerProcess
from tests.framework.contract.proxy import Proxy, ResponseOrder
from tests.framework.contract.running import FLAGS, RUNS, Workloads, access_to, running

ROUNDS = 40
LIMIT = 100.0
"""Milliseconds."""


class Stopwatch:
    """Measures the times between the writes of reconciles and the next reconciles of the same keys."""

    def __init__(self) -> None:
        """Start without measurements."""
        self.taken: list[float] = []
        """Seconds."""
        self._lock = threading.Lock()
        self._wrote: dict[tuple[str, str], float] = {}

    @contextmanager
    def running(self) -> Iterator[None]:
        """Record the writes and reconciles of all remote clients while the block runs."""
        begin, send = RemoteClient.for_reconcile, RemoteClient._sent

        def for_reconcile(client: RemoteClient, cause: Cause) -> RemoteClient:
            one = begin(client, cause)
            one.__dict__["reconciles"] = key = (cause.controller, cause.key)
            with self._lock:
                wrote = self._wrote.pop(key, None)
                if wrote is not None:
                    self.taken.append(time.perf_counter() - wrote)
            return one

        def sent(client: RemoteClient, request: Callable[[], Any]) -> Any:
            answer = send(client, request)
            if (key := client.__dict__.get("reconciles")) is not None:
                with self._lock:
                    self._wrote[key] = time.perf_counter()
            return answer

        with (
            mock.patch.object(RemoteClient, "for_reconcile", for_reconcile),
            mock.patch.object(RemoteClient, "_sent", sent),
        ):
            yield


def latency(server: ServerProcess, access: Access) -> float:
    """Return the 95th percentile, in milliseconds, of the time from a write to the next reconcile."""
    cluster, watch = Workloads(server), Stopwatch()
    with watch.running(), running(access, RUNS):
        cluster.make("Deployment", replicas=1)
        cluster.deployment_is(1)
        for number in range(ROUNDS):
            cluster.change("deployments", {"replicas": 2 - number % 2})
            cluster.deployment_is(2 - number % 2)
            watch._wrote.clear()  # no reconcile follows the last write
        cluster.remove("deployments")
        cluster.is_empty()
    return quantiles(watch.taken, n=20)[-1] * 1e3


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    with tempfile.TemporaryDirectory() as name, ServerProcess(Path(name), "--database", "memory:", *FLAGS) as server:
        ours = latency(server, access_to(server))
        with Proxy(server, ResponseOrder.EVENT_FIRST, streams_lists=False) as proxy:
            other = latency(server, access_to(server, proxy.url))
    claims = [
        Claim("time from an own write to the next reconcile, with our server", ours, LIMIT, 1.0, "ms", at_most=True),
        Claim(
            "time from an own write to the next reconcile, events before responses, no bookmarks",
            other,
            LIMIT,
            1.0,
            "ms",
            at_most=True,
        ),
    ]
    return report(claims, arguments)


if __name__ == "__main__":
    run(main, __doc__)
