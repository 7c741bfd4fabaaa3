"""Keeps the counts and histograms of one FlowSchema's requests, which `/metrics` shows."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

SECONDS: Final = (0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0)
"""The upper bounds of the buckets for durations, in seconds."""
LENGTHS: Final = (0.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0)
"""The upper bounds of the buckets for the lengths of queues."""
SEATS: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 100.0)
WATCHERS: Final = (0.0, 1.0, 10.0, 100.0, 1000.0, 10_000.0)


class Histogram:
    """The number of observed values in each bucket, and the sum of all values."""

    __slots__ = ("bounds", "buckets", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        """Create a histogram with these upper `bounds`, and a last bucket for all greater values."""
        self.bounds = bounds
        self.buckets = [0] * (len(bounds) + 1)
        self.total = 0.0

    def note(self, value: float, times: int = 1) -> None:
        """Add a value to the histogram."""
        self.buckets[bisect_left(self.bounds, value)] += times
        self.total += value * times


class SchemaCounts:
    """The counts and histograms of the requests of one FlowSchema at one priority level."""

    def __init__(self, level: str, schema: str, *, is_queued: bool) -> None:
        """Create counts of zero; the names are labels of metrics, and `is_queued` says whether the level has queues."""
        self.is_queued = is_queued
        self.level = level
        self.schema = schema
        self.dispatched = 0
        self.unaccommodated = 0
        self.unwatched = 0
        """The number of writes that no watch receives."""
        self.rejected: dict[str, int] = {}
        self.lengths = Histogram(LENGTHS)
        self.widths = Histogram(SEATS)
        self.watchers = Histogram(WATCHERS)
        self.waits = {"true": Histogram(SECONDS), "false": Histogram(SECONDS)}
        self.durations = {"regular": Histogram(SECONDS), "watch": Histogram(SECONDS)}
