"""In-flight limits: so many requests at a time and no more, reads and writes apart, and of one user half of them.

Guarantees:
- A refused client is told when to come back (429, Retry-After).
- One user cannot take all the places: the others keep half of them. `system:masters` are not counted, so that an
  administrator can always find out what goes on.
- A request has no place while its body is awaited, so a client that withholds it takes none.
- Requests that last (watches, logs) are not counted, nor are health checks and requests about a lease, which keep
  leaders alive while everything else waits: a leader reads its lease before it renews it (apiserver
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
"""Reads at a time (kube-apiserver's --max-requests-inflight)."""

WRITES = 200
"""Writes at a time (kube-apiserver's --max-mutating-requests-inflight)."""

MASTERS = "system:masters"
"""The group that is not counted."""

LONG_RUNNING = frozenset({"attach", "exec", "log", "portforward", "proxy"})
"""Subresources for which a request lasts as long as its user likes (`BasicLongRunningRequestCheck`, as
`pkg/controlplane/apiserver` calls it)."""

_RETRY_AFTER = 1
_READING = frozenset({"GET", "HEAD"})


class InFlight:
    """Counts the requests of one kind; used on the event loop only."""

    def __init__(self, kind: str, limit: int) -> None:
        """Admit `limit` at a time; `kind` (`readOnly`, `mutating`) is what the metric calls them."""
        self._limit = limit
        self._share = -(-limit // 2)
        self._count = 0
        self._of: dict[str, int] = {}
        in_flight(kind).set_function(lambda: self._count)

    def take(self, user: str) -> None:
        """Take a place for a user; raises `TooManyRequests` when there is none."""
        own = self._of.get(user, 0)
        if self._count >= self._limit or own >= self._share:
            raise TooManyRequests(
                "too many requests, please try again later", details=StatusDetails(retry_after_seconds=_RETRY_AFTER)
            )
        self._count += 1
        self._of[user] = own + 1

    def give_back(self, user: str) -> None:
        """Give a place back that was taken for a user."""
        self._count -= 1
        left = self._of[user] - 1
        if left:
            self._of[user] = left
        else:
            del self._of[user]


class Seat:
    """A user's place among the requests that are worked on, or none for a request that is not counted."""

    __slots__ = ("_among", "_is_taken", "_user")

    def __init__(self, among: InFlight | None = None, user: str = "") -> None:
        """Take no place before it is entered."""
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
        """Take the place, again after `leave`; raises `TooManyRequests`."""
        if self._among is not None:
            self._among.take(self._user)
            self._is_taken = True

    def leave(self) -> None:
        """Give the place back: nothing is worked on for now."""
        if self._among is not None and self._is_taken:
            self._is_taken = False
            self._among.give_back(self._user)


class InFlightLimits:
    """What requests are counted in while they are worked on."""

    def __init__(self, reads: int, writes: int) -> None:
        """Admit so many reads and writes at a time."""
        self._reads = InFlight("readOnly", reads)
        self._writes = InFlight("mutating", writes)

    def seat(self, method: str, attributes: Attributes, user: User) -> Seat:
        """Return what a request is counted in; pages, and what lasts or keeps leaders alive, are not."""
        if not attributes.is_resource or attributes.verb == "watch" or MASTERS in user.groups:
            return Seat()
        if attributes.subresource in LONG_RUNNING:
            return Seat()
        if attributes.resource == LEASES.plural and attributes.group == LEASES.group and attributes.verb != "list":
            return Seat()
        return Seat(self._reads if method in _READING else self._writes, user.name)
