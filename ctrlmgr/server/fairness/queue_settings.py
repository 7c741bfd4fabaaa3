"""Defines the configuration of a priority level's queues, and the measurements of these queues."""

from __future__ import annotations

import math
from typing import Final, NamedTuple, Protocol

from ctrlmgr.server.fairness.flow_matching import Schema
from ctrlmgr.server.fairness.seat_counts import Histogram, SchemaCounts

SCALE: Final = 10**8
"""The number of units of work that one seat does in one second.

Work and progress are integers in this unit, so that their sums are exact.
"""
SERVICE: Final = 0.003
"""The expected duration of a request, in seconds."""
SEAT_WORK: Final = round(SERVICE * SCALE)
"""The expected work of a request that needs one seat, in units."""

UNLIMITED: Final = -1
"""The value of `Queuing.queues` for a level whose requests are never limited."""


class Queuing(NamedTuple):
    """The configuration of the queues of a level."""

    queues: int
    """The number of queues. If `queues` is 0, requests that cannot run at once are refused. If `queues` is `UNLIMITED`,
    requests always run at once.
    """
    hand: int = 1
    length: int = 1
    """The number of requests that may wait in a queue while all seats are in use."""


class SeatDemand(NamedTuple):
    """The demand for seats (in use or waited for) over a period of time."""

    seconds: float
    average: float
    deviation: float
    """The standard deviation of the demand, in seats."""
    peak: int


class QueuedFlow(Protocol):
    """The interface of a flow, which the queues and the reports use."""

    hand: tuple[int, ...]
    """The indexes of the flow's queues."""
    counts: SchemaCounts
    durations: Histogram
    """The durations of the flow's requests, in seconds."""
    schema: Schema
    user: str
    distinguisher: str


class Width(NamedTuple):
    """The number of seats that a request needs, and the time for which it needs them."""

    initial: int = 1
    final: int = 0
    """The number of seats that a write keeps for `latency` seconds after its end, because watches receive its event."""
    latency: float = 0.0

    @property
    def seats(self) -> int:
        """The seats that the request needs from its start to its end."""
        return max(self.initial, self.final)

    @property
    def work(self) -> int:
        """The expected work of the request, in units."""
        return self.initial * SEAT_WORK + round(self.final * self.latency * SCALE)


NARROW: Final = Width()
"""The width of most requests, which need one seat."""


class DemandIntegrals:
    """The integrals over time of the number of seats in demand and of its square, since the last measurement."""

    __slots__ = ("elapsed", "peak", "squares", "total")

    def __init__(self) -> None:
        """Create integrals that are zero."""
        self.elapsed = self.total = self.squares = 0.0
        self.peak = 0

    def measured(self, peak: int) -> SeatDemand:
        """Return the measurement and start the next; `peak` is the demand at the start of the next measurement."""
        elapsed, had = self.elapsed, self.peak
        average = self.total / elapsed if elapsed > 0 else 0.0
        variance = self.squares / elapsed - average * average if elapsed > 0 else 0.0
        self.elapsed = self.total = self.squares = 0.0
        self.peak = peak
        return SeatDemand(elapsed, average, math.sqrt(max(variance, 0.0)), had)
