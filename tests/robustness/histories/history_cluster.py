"""The shared state of a run: the servers, the history, the known objects, and the flags that stop clients."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from tests.robustness.histories.history import Fault, History
from tests.robustness.serving import ConfiguredServer, Site
from tests.robustness.wire import Connection

RESOURCES = ("configmaps", "services")
NAMESPACES = ("red-team", "blue-team")
NAMES = tuple(f"hot-{number}" for number in range(5))
COLORS = ("red", "green", "blue", "")


class ObjectKey(NamedTuple):
    """The namespace and name that identify an object."""

    resource: str
    namespace: str
    name: str


class HistoryCluster:
    """The state of a run; see the module's docstring. All methods are called on one event loop."""

    def __init__(self, servers: Sequence[ConfiguredServer], seed: int) -> None:
        self.servers = servers
        self.sites: list[Site] = [server.site for server in servers]
        self.history = History(seed, self.now())
        self.newest = 0
        """The newest revision that any response contained."""
        self.seen: dict[ObjectKey, int] = {}
        """The last revision of each object that a client received."""
        self.loaded = True
        """Whether writers, readers and casual watchers continue to run."""
        self.ended = asyncio.Event()
        """Set when informers should also stop."""

    def now(self) -> int:
        return time.monotonic_ns()

    def random(self, role: str) -> random.Random:
        """Return the random generator of one client, which is independent of the generators of other clients."""
        return random.Random(f"{self.history.seed} {role}")

    def connections(self) -> list[Connection]:
        """Return a new connection to each server."""
        return [Connection(site) for site in self.sites]

    def tell(self, revision: int) -> None:
        """Record that a response contained a revision."""
        self.newest = max(self.newest, revision)

    def fault(self, kind: str, server: int) -> Fault:
        """Record the beginning of a fault of a server, and return the fault; the caller sets `ended` of the fault at
        its end.
        """
        fault = Fault(kind, server, self.now(), 1 << 62)
        self.history.faults.append(fault)
        return fault


def revision_of(fields: dict[str, Any]) -> int:
    """Return the resourceVersion of an object, of a list, or of the object in an event; return 0 if there is none."""
    return int(fields.get("metadata", {}).get("resourceVersion") or 0)
