"""In-flight limits: so many requests at a time and no more, reads and writes apart.

Guarantees: a refused client is told when to come back (429, Retry-After); requests that last (watches) are not
counted, nor are health checks and requests about a lease, which keep leaders alive while everything else waits: a
leader reads its lease before it renews it (apiserver `pkg/server/filters/maxinflight.go`).
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from ctrlmgr.api.resource import LEASES
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.errors import StatusDetails, TooManyRequests
from ctrlmgr.metrics import in_flight

READS = 400
"""Reads at a time (kube-apiserver's --max-requests-inflight)."""

WRITES = 200
"""Writes at a time (kube-apiserver's --max-mutating-requests-inflight)."""

_RETRY_AFTER = 1
_READING = frozenset({"GET", "HEAD"})
_UNCOUNTED: AbstractContextManager[None] = nullcontext()


class InFlight:
    """Counts the requests of one kind; used on the event loop only."""

    def __init__(self, kind: str, limit: int) -> None:
        """Admit `limit` at a time; `kind` (`readOnly`, `mutating`) is what the metric calls them."""
        self._limit = limit
        self._count = 0
        in_flight(kind).set_function(lambda: self._count)

    def __enter__(self) -> None:
        """Take a place; raises `TooManyRequests` when there is none."""
        if self._count >= self._limit:
            raise TooManyRequests(
                "too many requests, please try again later", details=StatusDetails(retry_after_seconds=_RETRY_AFTER)
            )
        self._count += 1

    def __exit__(self, *error: object) -> None:
        self._count -= 1


class InFlightLimits:
    """What requests are counted in while they are worked on."""

    def __init__(self, reads: int, writes: int) -> None:
        """Admit so many reads and writes at a time."""
        self._reads = InFlight("readOnly", reads)
        self._writes = InFlight("mutating", writes)

    def seat(self, method: str, attributes: Attributes) -> AbstractContextManager[None]:
        """Return what a request is counted in; pages, and what lasts or keeps leaders alive, are not."""
        if not attributes.is_resource or attributes.verb == "watch":
            return _UNCOUNTED
        if attributes.resource == LEASES.plural and attributes.group == LEASES.group and attributes.verb != "list":
            return _UNCOUNTED
        return self._reads if method in _READING else self._writes
