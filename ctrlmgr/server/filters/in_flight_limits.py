"""Limits the number of concurrent requests.

This module defines the places that requests take, and the limits of a server without priority and fairness. Guarantees
of `InFlightLimits` (kube-apiserver with `--enable-priority-and-fairness=false`):
- At most the configured numbers of reads and writes run at a time. The server refuses a request beyond the limit with
  429 and Retry-After.
- The limits do not count requests of members of `system:masters`, and long-running requests (watches, logs).
- A request holds no place while the server waits for the request's body.

Source: apiserver `pkg/server/filters/maxinflight.go`.
"""

from __future__ import annotations

from typing import Final, Protocol

from ctrlmgr.authentication.user import MASTERS, User
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.errors import StatusDetails, TooManyRequests
from ctrlmgr.metrics import in_flight

READS: Final = 400
"""Maximum number of concurrent reads (kube-apiserver's --max-requests-inflight)."""

WRITES: Final = 200
"""Maximum number of concurrent writes (kube-apiserver's --max-mutating-requests-inflight)."""

LONG_RUNNING: Final = frozenset({"attach", "exec", "log", "portforward", "proxy"})
"""Subresources of long-running requests (as in `pkg/controlplane/apiserver`, `BasicLongRunningRequestCheck`)."""

READING: Final = frozenset({"get", "list", "watch"})
"""The verbs of requests that count as reads."""


class Overloaded(TooManyRequests):
    """Too many requests, please try again later."""

    default_message = "Too many requests, please try again later."

    def __init__(self, retry_after: int = 1) -> None:
        """Create the error; its response asks the client to wait for `retry_after` seconds."""
        super().__init__(
            "Too many requests, please try again later.", details=StatusDetails(retry_after_seconds=retry_after)
        )


class Seat:
    """The place of a request among the concurrent requests, which the request holds until `end`.

    The base class does not limit requests.
    """

    __slots__ = ()

    waits = False
    """Whether the request has to wait until `turn` returns."""

    async def turn(self) -> None:
        """Wait until the request may run; raises `Overloaded` if it must not run."""

    async def take(self) -> None:
        """Take the place again after `pause`; raises `Overloaded` if no place is free."""

    def pause(self) -> None:
        """Return the place while the server waits for the client."""

    def release(self) -> None:
        """Return the place of a watch when its initial events are sent."""

    def end(self) -> None:
        """Return the place for the last time, because the request has been answered."""

    def log_fields(self) -> dict[str, object]:
        """Return the fields that describe the place in the request log."""
        return {}


FREE: Final = Seat()
"""The place of a request that no limit applies to."""


class LimitedRequest(Protocol):
    """The interface of a request that takes a place."""

    user: User


class InFlight:
    """Counts concurrent requests that are either all reads or all writes. Used on the event loop's thread only."""

    def __init__(self, kind: str, limit: int) -> None:
        """Create a counter that admits `limit` requests at a time; 0 means any number.

        `kind` (`readOnly` or `mutating`) is the label of the metric.
        """
        self._limit = limit
        self._count = 0
        in_flight(kind).set_function(lambda: self._count)

    def take(self) -> None:
        """Take a place; raises `Overloaded` if no place is free."""
        if 0 < self._limit <= self._count:
            raise Overloaded
        self._count += 1

    def release(self) -> None:
        """Return a place to the counter."""
        self._count -= 1


class CountedSeat(Seat):
    """A place that counts against a limit of concurrent requests."""

    __slots__ = ("_among", "_is_taken")

    def __init__(self, among: InFlight) -> None:
        """Take a place; raises `Overloaded` if no place is free."""
        self._among = among
        self._is_taken = False
        self._take()

    async def take(self) -> None:
        """Take the place again; raises `Overloaded` if no place is free."""
        self._take()

    def _take(self) -> None:
        self._among.take()
        self._is_taken = True

    def pause(self) -> None:
        """Return the place."""
        self.release()

    def release(self) -> None:
        """Return the place."""
        if self._is_taken:
            self._is_taken = False
            self._among.release()

    def end(self) -> None:
        """Return the place."""
        self.release()


class InFlightLimits:
    """Counts concurrent requests, separately for reads and writes."""

    def __init__(self, reads: int, writes: int) -> None:
        """Create limits of these numbers of concurrent reads and writes; 0 means any number."""
        self._reads = InFlight("readOnly", reads)
        self._writes = InFlight("mutating", writes)

    def seat(self, request: LimitedRequest, attributes: Attributes) -> Seat:
        """Take a place for a request and return it; raises `Overloaded` if no place is free."""
        if attributes.verb == "watch" or attributes.subresource in LONG_RUNNING or MASTERS in request.user.groups:
            return FREE
        return CountedSeat(self._reads if attributes.verb in READING else self._writes)
