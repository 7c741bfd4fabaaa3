"""The zones of nodes: determines the health of each zone, and how fast its unhealthy nodes are tainted.

Guarantees, which are the same as in Kubernetes' `pkg/controller/nodelifecycle` and `scheduler.RateLimitedTimedQueue`:
- A zone without ready nodes counts as fully disrupted. A zone is partially disrupted if at least three of its nodes are
  not ready, and the share of these nodes reaches the threshold. In a large zone that is partially disrupted, nodes are
  tainted slowly. In a small zone that is partially disrupted, no node is tainted.
- While every zone is fully disrupted, no node is tainted, because the cause is probably the network or the control
  plane.
- A node is in the queue at most once. A tainted node is queued again only after it was healthy.

In this module, seconds are read from a monotonic clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import NamedTuple

DISRUPTED_FROM = 3
"""The minimum number of unhealthy nodes in a zone that counts as partially disrupted."""


class ZoneState(Enum):
    """The health of a zone: normal, partially disrupted or fully disrupted."""

    INITIAL = "Initial"
    NORMAL = "Normal"
    PARTIAL = "PartialDisruption"
    FULL = "FullDisruption"


def zone_state(ready: Iterable[bool], threshold: float) -> ZoneState:
    """Return the health of a zone from the readiness of its nodes."""
    each = list(ready)
    sound = sum(each)
    unsound = len(each) - sound
    if unsound and not sound:
        return ZoneState.FULL
    if unsound >= DISRUPTED_FROM and unsound / len(each) >= threshold:
        return ZoneState.PARTIAL
    return ZoneState.NORMAL


class Bucket:
    """A token bucket that holds one token."""

    def __init__(self, rate: float, now: float) -> None:
        """Create a bucket that starts with one token and gets `rate` tokens per second."""
        self._rate = rate
        self._tokens = 1.0
        self._at = now
        self._closed = False

    def set_rate(self, rate: float, now: float) -> None:
        """Change the rate, and put one token into the bucket; if the rate is 0, no token can be taken."""
        if rate != self._rate or self._closed != (rate == 0):
            self._rate, self._tokens, self._at, self._closed = rate, 1.0, now, rate == 0

    def take(self, now: float) -> bool:
        """Take a token if the bucket has one; return whether a token was taken."""
        if self._closed:
            return False
        self._tokens = min(1.0, self._tokens + (now - self._at) * self._rate)
        self._at = now
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True

    def wait(self) -> float | None:
        """Return the seconds from the last attempt until the next eviction is allowed; None if the rate is 0."""
        if self._closed or not self._rate:
            return None
        return max((1.0 - self._tokens) / self._rate, 0.0)


class TaintQueue:
    """A FIFO queue of the nodes of one zone that will be tainted."""

    def __init__(self, rate: float, now: float) -> None:
        """Create a queue from which `rate` nodes per second are tainted."""
        self.bucket = Bucket(rate, now)
        self._waiting: dict[str, None] = {}
        self._known: set[str] = set()

    def add(self, name: str) -> None:
        """Queue a node, unless it is already queued or tainted."""
        if name not in self._known:
            self._known.add(name)
            self._waiting[name] = None

    def remove(self, name: str) -> None:
        """Remove a node from the queue, so that the node may be queued again."""
        self._waiting.pop(name, None)
        self._known.discard(name)

    def work(self, give_up: Callable[[str], bool], now: float) -> float | None:
        """Taint as many nodes as the rate allows.

        Return the seconds until the next call, or None if the queue is empty.

        The function `give_up` taints a node. If `give_up` returns False, the next call retries the node.
        """
        failed = False
        for name in [*self._waiting]:
            if not self.bucket.take(now):
                return self.bucket.wait()
            if give_up(name):
                self._waiting.pop(name, None)
            else:
                failed = True
        return 0.05 if failed else None


class Rates(NamedTuple):
    """The number of nodes that are tainted per second, in a healthy zone and in a partially disrupted zone.

    The secondary rate applies to partially disrupted zones that have more than `large` nodes.
    """

    normal: float
    reduced: float
    large: int

    def of(self, state: ZoneState, size: int) -> float:
        """Return the rate at which nodes are tainted in a zone of `size` nodes with the health `state`."""
        if state is ZoneState.PARTIAL:
            return self.reduced if size > self.large else 0.0
        return self.normal


class ZoneChanges(NamedTuple):
    """The changes of rates and taints that follow from a check of all zones."""

    states: Mapping[str, ZoneState]
    rates: Mapping[str, float]
    """The new rates of zones, in nodes per second."""
    entered: bool = False
    """Whether all zones have just become fully disrupted. When a full disruption begins, the taints are removed."""
    left: bool = False
    """Whether the full disruption of all zones has just ended. When a full disruption ends, every node counts as
    renewed now.
    """


def passage(
    before: Mapping[str, ZoneState], now: Mapping[str, ZoneState], sizes: Mapping[str, int], rates: Rates
) -> ZoneChanges:
    """Return the changes that follow from the health of all zones.

    The arguments `before` and `now` contain the earlier and the current health of zones. The argument `before` may lack
    zones, but `now` has every zone with nodes.
    """
    known = {zone: before.get(zone, ZoneState.INITIAL) for zone in now}
    all_are = all(state is ZoneState.FULL for state in now.values())
    all_were = all(state is ZoneState.FULL for state in known.values())
    if all_are and all_were:
        return ZoneChanges(known, {})
    if all_are:
        return ZoneChanges(dict.fromkeys(now, ZoneState.FULL), dict.fromkeys(now, 0.0), entered=True)
    changed = {
        zone: rates.of(state, sizes[zone]) for zone, state in now.items() if all_were or known[zone] is not state
    }
    return ZoneChanges(dict(now), changed, left=all_were)
