"""The backoff before a DaemonSet's failed pod on a node is replaced; it prevents a loop of controller and kubelet.

Guarantees, as in Kubernetes (`failedPodsBackoff`): the first failed pod is deleted at once, the next one on the same
node after 1 s, the following ones after 2 s, 4 s … up to 15 minutes. After 30 minutes without a failure, the backoff
starts again. Each generation of the DaemonSet has its own backoff. The backoff is lost when the process ends.
"""

from __future__ import annotations

import threading
from typing import Final, NamedTuple

from ctrlmgr.clock import Clock

FIRST: Final = 1.0
LONGEST: Final = 15 * 60.0


class Series(NamedTuple):
    """The key of a backoff: a DaemonSet's uid, its observed generation, and a node."""

    uid: str
    generation: int
    node: str


class _Entry(NamedTuple):
    delay: float
    since: float


class FailedPodsBackoff:
    """Counts failed pods by node and DaemonSet; thread-safe. Times are in seconds."""

    def __init__(self, clock: Clock) -> None:
        """Use the monotonic time of `clock`."""
        self._clock = clock
        self._lock = threading.Lock()
        # The series of failures that had a failure within the last half hour, oldest first.
        self._entries: dict[Series, _Entry] = {}

    def before_replacing(self, series: Series) -> float:
        """Return the seconds for which a failed pod must stay.

        If it may be deleted now, return 0 and count a failure.
        """
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
        """Remove the series of failures that have no recent failure."""
        for series, entry in list(self._entries.items()):
            if now - entry.since > 2 * LONGEST:
                del self._entries[series]
