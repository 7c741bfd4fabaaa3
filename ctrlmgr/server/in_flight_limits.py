"""In-flight limits: bounds the number of concurrent reads and of concurrent writes, and the share of each user.

Guarantees:
- A refused client receives 429 with Retry-After.
- One user can use at most half of the places. Members of `system:masters` are not counted, so an administrator can
  always inspect the server.
- A request holds no place while the server waits for its body. A client that withholds the body occupies nothing.
- Long-running requests (watches, logs) are not counted. Neither are health checks and requests for a lease. A leader
  reads its lease before it renews it, and must be able to do so under load (apiserver
  `pkg/server/filters/maxinflight.go`).
"""

from __future__ import annotations

from typing import Self

from ctrlmgr.api.resource import LEASES
from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.errors import StatusDetails, TooManyRequests
from ctrlmgr.metrics import in_flight

READS = 400
"""Maximum number of concurrent reads (kube-apiserver's --max-requests-inflight)."""

WRITES = 200
"""Maximum number of concurrent writes (kube-apiserver's --max-mutating-requests-inflight)."""

MASTERS = "system:masters"
"""The group whose members are not counted."""

LONG_RUNNING = frozenset({"attach", "exec", "log", "portforward", "proxy"})
"""Subresources of long-running requests (`BasicLongRunningRequestCheck`, as `pkg/controlplane/apiserver` calls it)."""

_RETRY_AFTER = 1
_READING = frozenset({"GET", "HEAD"})


class InFlight:
    """Counts the concurrent reads or writes. Used on the event loop only."""

    def __init__(self, kind: str, limit: int) -> None:
        """Admit `limit` requests at a time; `kind` (`readOnly`, `mutating`) is the label of the metric."""
        self._limit = limit
        self._share = -(-limit // 2)
        self._count = 0
        self._of: dict[str, int] = {}
        in_flight(kind).set_function(lambda: self._count)

    def take(self, user: str) -> None:
        """Take a place for a user; raises `TooManyRequests` if the limit or the user's share is reached."""
        own = self._of.get(user, 0)
        if self._count >= self._limit or own >= self._share:
            raise TooManyRequests(
                "too many requests, please try again later", details=StatusDetails(retry_after_seconds=_RETRY_AFTER)
            )
        self._count += 1
        self._of[user] = own + 1

    def give_back(self, user: str) -> None:
        """Release a place that was taken for a user."""
        self._count -= 1
        left = self._of[user] - 1
        if left:
            self._of[user] = left
        else:
            del self._of[user]


class Seat:
    """A user's place among the concurrent requests; it takes none if the request is not counted."""

    __slots__ = ("_among", "_is_taken", "_user")

    def __init__(self, among: InFlight | None = None, user: str = "") -> None:
        """Create a place without taking it."""
        self._among = among
        self._user = user
        self._is_taken = False

    def __enter__(self) -> Self:
        """Take the place; raises `TooManyRequests`."""
        self.take()
        return self

    def __exit__(self, *error: object) -> None:
        self.leave()

    def take(self) -> None:
        """Take the place, also again after `leave`; raises `TooManyRequests`."""
        if self._among is not None:
            self._among.take(self._user)
            self._is_taken = True

    def leave(self) -> None:
        """Release the place while the request waits."""
        if self._among is not None and self._is_taken:
            self._is_taken = False
            self._among.give_back(self._user)


class InFlightLimits:
    """Counts concurrent requests, reads and writes apart."""

    def __init__(self, reads: int, writes: int) -> None:
        """Admit this many concurrent reads and writes."""
        self._reads = InFlight("readOnly", reads)
        self._writes = InFlight("mutating", writes)

    def seat(self, method: str, attributes: Attributes, user: User) -> Seat:
        """Return the place of a request. Pages, long-running requests and requests for leases are not counted."""
        if not attributes.is_resource or attributes.verb == "watch" or MASTERS in user.groups:
            return Seat()
        if attributes.subresource in LONG_RUNNING:
            return Seat()
        if attributes.resource == LEASES.plural and attributes.group == LEASES.group and attributes.verb != "list":
            return Seat()
        return Seat(self._reads if method in _READING else self._writes, user.name)
