"""A set of fair queues with a clock and timers that a test advances, and flows of requests for these queues."""

from __future__ import annotations

import heapq
from collections.abc import Callable

from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.server.fairness.fair_queuing import QueueSet, Ticket
from ctrlmgr.server.fairness.flow_matching import Schema
from ctrlmgr.server.fairness.level_state import Flow, Level
from ctrlmgr.server.fairness.queue_settings import Queuing, Width
from ctrlmgr.server.fairness.seat_counts import SchemaCounts
from ctrlmgr.server.fairness.shuffle_sharding import deal, hash_flow


class Timers:
    """A monotonic clock, and callbacks with the times at which they are due."""

    def __init__(self) -> None:
        self.time = 100.0
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0

    def now(self) -> float:
        return self.time

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._due, (self.time + seconds, self._count, call))

    def advance(self, seconds: float) -> None:
        """Advance the time, and run each due callback at its time."""
        end = self.time + seconds
        while self._due and self._due[0][0] <= end:
            self.time, _, call = heapq.heappop(self._due)
            call()
        self.time = end


def queue_set(
    queues: int, hand: int = 1, length: int = 50, limit: int = 10, *, burst: int = 0
) -> tuple[QueueSet, Timers]:
    """Return a set of queues with its own clock."""
    timers = Timers()
    configured = Queuing(queues, hand, length)
    return QueueSet(configured, limit, now=timers.now, later=timers.later, burst=burst), timers


def flow(queues: QueueSet, name: str = "a", hand: tuple[int, ...] | None = None) -> Flow:
    """Return a flow of the FlowSchema `s`; its hand of queues is drawn at random unless it is given."""
    level = Level("l", queues)
    level.spec = {"type": "Exempt", "exempt": {}}
    schema = Schema(1, "s", "uid-of-s", "l", "ByUser", ())
    made = Flow(name, schema, name, level, SchemaCounts("l", "s", is_queued=True))
    number, size = queues.queuing.queues, queues.queuing.hand
    made.hand = hand or (deal(hash_flow("s", name), number, size) if number > 0 else ())
    return made


ASKED = Attributes("get", resource="pods")


def start(queues: QueueSet, flow: Flow, initial: int = 1, final: int = 0, latency: float = 0.0) -> Ticket | None:
    """Start a request; return None if the request is refused."""
    ticket = Ticket(flow, ASKED)
    if (initial, final) != (1, 0):
        ticket.width = Width(initial, final, latency)
    return ticket if queues.start(ticket) else None


def runs(ticket: Ticket | None) -> bool:
    """Return whether a request was accepted and is running."""
    return ticket is not None and ticket.is_running
