"""Zones: how healthy each is, and how fast its nodes may be given up.

Guarantees, those of Kubernetes' `pkg/controller/nodelifecycle` and `scheduler.RateLimitedTimedQueue`:
- A zone in which no node is ready is fully disrupted; one in which more than two are not, and at least the threshold's
  part of them, is partially disrupted. In the latter nodes are given up slowly, in a small one not at all.
- While every zone is fully disrupted no node is given up: it is the network, or us.
- A node that waits to be given up waits once; one that has been given up does not come again until it was healthy.

Seconds are those of a monotonic clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import NamedTuple

DISRUPTED_FROM = 3
"""From how many unhealthy nodes on a zone can be partially disrupted."""


class ZoneState(Enum):
    """How healthy a zone is."""

    INITIAL = "Initial"
    NORMAL = "Normal"
    PARTIAL = "PartialDisruption"
    FULL = "FullDisruption"


def zone_state(ready: Iterable[bool], threshold: float) -> ZoneState:
    """Return the state of a zone whose nodes are ready or not."""
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
        """Start full; `rate` is in tokens a second, 0: none ever, once the rate was set to that."""
        self._rate = rate
        self._tokens = 1.0
        self._at = now
        self._closed = False

    def set_rate(self, rate: float, now: float) -> None:
        """Fill at this rate from now on, beginning with a full bucket; at 0 nothing is given."""
        if rate != self._rate or self._closed != (rate == 0):
            self._rate, self._tokens, self._at, self._closed = rate, 1.0, now, rate == 0

    def take(self, now: float) -> bool:
        """Take a token if there is one."""
        if self._closed:
            return False
        self._tokens = min(1.0, self._tokens + (now - self._at) * self._rate)
        self._at = now
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True

    def wait(self) -> float | None:
        """Return the seconds from the last attempt until there is a token again; None: never."""
        if self._closed or not self._rate:
            return None
        return max((1.0 - self._tokens) / self._rate, 0.0)


class TaintQueue:
    """The nodes of one zone that are to be given up, first come, first served."""

    def __init__(self, rate: float, now: float) -> None:
        """Give up `rate` nodes a second."""
        self.bucket = Bucket(rate, now)
        self._waiting: dict[str, None] = {}
        self._known: set[str] = set()

    def add(self, name: str) -> None:
        """Have a node given up, unless it waits or has been."""
        if name not in self._known:
            self._known.add(name)
            self._waiting[name] = None

    def remove(self, name: str) -> None:
        """Forget a node."""
        self._waiting.pop(name, None)
        self._known.discard(name)

    def work(self, give_up: Callable[[str], bool], now: float) -> float | None:
        """Give up as many as the rate allows; return after how many seconds to come back, None: not for these.

        One for which `give_up` returns False is tried again by the next call.
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
    """How many nodes a second are given up: in a healthy zone, and in one partially disrupted of more than `large`."""

    normal: float
    reduced: float
    large: int

    def of(self, state: ZoneState, size: int) -> float:
        """Return the rate of a zone of `size` nodes."""
        if state is ZoneState.PARTIAL:
            return self.reduced if size > self.large else 0.0
        return self.normal


class Passage(NamedTuple):
    """What a look at all zones changes."""

    states: Mapping[str, ZoneState]
    rates: Mapping[str, float]
    """The zones whose rate is to be set, and to what."""
    entered: bool = False
    """Whether everything is disrupted now, and was not before: taints are taken back."""
    left: bool = False
    """Whether everything was disrupted, and is not now: every node counts as heard of just now."""


def passage(
    before: Mapping[str, ZoneState], now: Mapping[str, ZoneState], sizes: Mapping[str, int], rates: Rates
) -> Passage:
    """Return what becomes of the zones; `before` may lack zones, `now` has all that have nodes."""
    known = {zone: before.get(zone, ZoneState.INITIAL) for zone in now}
    all_are = all(state is ZoneState.FULL for state in now.values())
    all_were = all(state is ZoneState.FULL for state in known.values())
    if all_are and all_were:
        return Passage(known, {})
    if all_are:
        return Passage(dict.fromkeys(now, ZoneState.FULL), dict.fromkeys(now, 0.0), entered=True)
    changed = {
        zone: rates.of(state, sizes[zone]) for zone, state in now.items() if all_were or known[zone] is not state
    }
    return Passage(dict(now), changed, left=all_were)
