"""Estimates the seats that a list or a watch needs, and the seats that a write keeps for watches of its event.

A list needs a seat for each 100 KB of the objects that it reads, and at most ten seats if it reads from memory. Until
the initial events of a watch are sent, the watch needs as many seats as a list. A write needs one seat while it runs.
If at least ten watches receive the event of a write, the write keeps one seat for every ten watches until 5 ms after
the write has ended.

Source: apiserver `pkg/util/flowcontrol/request`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.server.fairness.queue_settings import Width

WATCHES_PER_SEAT: Final = 10
MOST_FOR_WRITES: Final = 10
"""The maximum number of seats of a write."""

_MOST_FOR_LISTS: Final = 100
_EVENT: Final = 0.005
"""The number of seconds for which a write keeps one seat, so that `WATCHES_PER_SEAT` watches can receive its event."""
_PER_SEAT: Final = 100_000
_STREAMED: Final = 1_000_000
"""The maximum number of bytes of objects that a list from memory keeps in memory for its response at a time."""
_SAMPLE: Final = 100
_FRESH: Final = 10.0

Query = Mapping[str, Sequence[str]]


class Stats(NamedTuple):
    """The number of a resource's objects, and their average size in bytes."""

    objects: int
    size: int


class ObjectStats:
    """The statistics of each resource, which are at most ten seconds old."""

    def __init__(self, objects: Callable[[Resource], Sequence[Object]], *, now: Callable[[], float]) -> None:
        """Create statistics.

        `objects` returns the current objects of a resource, and `now` returns monotonic seconds.
        """
        self._objects = objects
        self._now = now
        self._known: dict[Resource, tuple[float, Stats]] = {}

    def of(self, resource: Resource) -> Stats:
        """Return the statistics of a resource; the average size is computed from a sample of the resource's objects."""
        now, known = self._now(), self._known.get(resource)
        if known is not None and now - known[0] < _FRESH:
            return known[1]
        objects = self._objects(resource)
        sample = objects[:: len(objects) // _SAMPLE + 1]
        stats = Stats(len(objects), sum(len(each.body) for each in sample) // len(sample) if sample else 0)
        self._known[resource] = (now, stats)
        return stats


def list_seats(attributes: Attributes, query: Query, stats: Stats, widest: int) -> int:
    """Return the seats of a list, or of a watch until its initial events are sent.

    A priority level allows a request at most `widest` seats; 0 means any number.
    """
    widest = min(widest or _MOST_FOR_LISTS, _MOST_FOR_LISTS)
    if attributes.verb == "watch" and not _sends_initial(query):
        return 1
    limit = _number(query, "limit")
    if limit is None:  # the request will be refused anyway
        return widest
    read = min(limit, stats.objects) if limit > 0 else stats.objects
    is_cached = attributes.verb == "watch" or not _reads_history(query, limit)
    if attributes.name:
        read = 1
    elif not is_cached and (_first(query, "fieldSelector") or _first(query, "labelSelector")):
        read = max(read, stats.objects // 2)
    size = read * stats.size
    return max(1, min(widest, math.ceil((min(size, _STREAMED) if is_cached else size) / _PER_SEAT)))


def kept_seats(watches: int, widest: int) -> Width:
    """Return the width of a write.

    `watches` is the number of watches that receive its event, at least `WATCHES_PER_SEAT`.
    """
    requested = math.ceil(watches / WATCHES_PER_SEAT)
    seats = min(requested, widest or MOST_FOR_WRITES, MOST_FOR_WRITES)
    return Width(1, seats, requested * _EVENT / seats)


def _first(query: Query, name: str) -> str:
    values = query.get(name)
    return values[0] if values else ""


def _number(query: Query, name: str) -> int | None:
    """Return a query parameter as a number; 0 if the parameter is missing, None if the parameter is malformed."""
    text = _first(query, name)
    try:
        return int(text) if text else 0
    except ValueError:
        return None


def _sends_initial(query: Query) -> bool:
    if _first(query, "sendInitialEvents").lower() in ("true", "1"):
        return True
    return _first(query, "resourceVersion") in ("", "0")


def _reads_history(query: Query, limit: int) -> bool:
    """Return whether a list needs an older state than the state in memory.

    The rules are those of Kubernetes' watch cache.
    """
    match = _first(query, "resourceVersionMatch")
    if match:
        return match != "NotOlderThan"
    if _first(query, "continue"):
        return True
    return limit > 0 and _first(query, "resourceVersion") not in ("", "0")
