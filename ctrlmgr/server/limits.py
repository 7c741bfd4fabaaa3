"""In-flight limits: so many requests at a time and no more, reads and writes apart.

Guarantees: whoever is refused is told when to come back (429, Retry-After); requests that last (watches) are not
counted, nor are health checks and requests about a lease, which keep leaders alive while everything else waits: a
leader reads its lease before it renews it (apiserver `pkg/server/filters/maxinflight.go`).
"""

from __future__ import annotations

from ctrlmgr.errors import StatusDetails, TooManyRequests
from ctrlmgr.metrics import in_flight

READS = 400
"""Reads at a time (kube-apiserver's --max-requests-inflight)."""

WRITES = 200
"""Writes at a time (kube-apiserver's --max-mutating-requests-inflight)."""

_RETRY_AFTER = 1


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
