"""How long a failed pod of a DaemonSet stays on its node, lest controller and kubelet fight over it.

Guarantees, Kubernetes' (`failedPodsBackoff`): one that failed goes at once and the next one on the same node after a
second, then after 2, 4 … up to 15 minutes; after twice that without a failure it begins anew. A new generation of the
DaemonSet has a count of its own. Nothing of this outlives the process.
"""

from __future__ import annotations

import threading
from typing import Final, NamedTuple

from ctrlmgr.clock import Clock

FIRST: Final = 1.0
LONGEST: Final = 15 * 60.0


class Series(NamedTuple):
    """Whose failures are counted together: a DaemonSet's uid, the generation it last observed, and a node."""

    uid: str
    generation: int
    node: str


class _Entry(NamedTuple):
    delay: float
    since: float


class FailedPodsBackoff:
    """Counts failures; threads may share it. Times are seconds."""

    def __init__(self, clock: Clock) -> None:
        """Go by the monotonic time of `clock`."""
        self._clock = clock
        self._lock = threading.Lock()
        # Series that failed within the last half hour.
        self._entries: dict[Series, _Entry] = {}

    def before_replacing(self, series: Series) -> float:
        """Return how long a failed pod is to stay; 0 if it may go now, which counts as one more failure."""
        now = self._clock.monotonic()
        with self._lock:
            self._forget_old(now)
            entry = self._entries.get(series)
            if entry is not None and now - entry.since < entry.delay:
                return entry.delay - (now - entry.since)
            delay = FIRST if entry is None else min(entry.delay * 2, LONGEST)
            self._entries[series] = _Entry(delay, now)
            return 0.0

    def _forget_old(self, now: float) -> None:
        """Forget what failed long ago; what failed first stands first."""
        for series, entry in list(self._entries.items()):
            if now - entry.since > 2 * LONGEST:
                del self._entries[series]
