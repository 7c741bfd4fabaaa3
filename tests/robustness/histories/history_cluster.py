"""The shared state of a run: the servers, the history, the known objects, and the stop."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from tests.robustness.histories.history import Fault, History
from tests.robustness.serving import Served, Site
from tests.robustness.wire import Connection

RESOURCES = ("configmaps", "services")
NAMESPACES = ("red-team", "blue-team")
NAMES = tuple(f"hot-{number}" for number in range(5))
COLORS = ("red", "green", "blue", "")


class Place(NamedTuple):
    """The key of an object."""

    resource: str
    namespace: str
    name: str


class HistoryCluster:
    """The state of a run; see the module's docstring. Used on one event loop."""

    def __init__(self, servers: Sequence[Served], seed: int) -> None:
        self.servers = servers
        self.sites: list[Site] = [server.site for server in servers]
        self.history = History(seed, self.now())
        self.newest = 0
        """The newest revision in any answer."""
        self.seen: dict[Place, int] = {}
        """The last received revision of each object."""
        self.loaded = True
        """Whether writers, readers and casual watchers continue."""
        self.ended = asyncio.Event()
        """Set when informers should stop, too."""

    def now(self) -> int:
        return time.monotonic_ns()

    def random(self, role: str) -> random.Random:
        """Return the random generator of one actor, which is independent of other actors."""
        return random.Random(f"{self.history.seed} {role}")

    def connections(self) -> list[Connection]:
        """Return a new connection to each server."""
        return [Connection(site) for site in self.sites]

    def tell(self, revision: int) -> None:
        """Record a revision in an answer."""
        self.newest = max(self.newest, revision)

    def fault(self, kind: str, server: int) -> Fault:
        """Record the beginning of a fault of a server; set `ended` of the result at its end."""
        fault = Fault(kind, server, self.now(), 1 << 62)
        self.history.faults.append(fault)
        return fault


def revision_of(fields: dict[str, Any]) -> int:
    """Return the resourceVersion of an object, a list or an event's object; 0 if there is none."""
    return int(fields.get("metadata", {}).get("resourceVersion") or 0)
