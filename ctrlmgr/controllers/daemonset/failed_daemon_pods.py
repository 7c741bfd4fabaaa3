"""Backoff before a DaemonSet's failed pod on a node is replaced, so that controller and kubelet do not loop.

Guarantees, Kubernetes' (`failedPodsBackoff`): the first failed pod is deleted at once, the next one on the same node
after 1 s, then after 2, 4 … up to 15 minutes. After twice that time without a failure the backoff starts again. Each
generation of the DaemonSet has its own backoff. The backoff is lost when the process ends.
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
    """Counts failures; thread-safe. Times are in seconds."""

    def __init__(self, clock: Clock) -> None:
        """Use the monotonic time of `clock`."""
        self._clock = clock
        self._lock = threading.Lock()
        # The series that failed within the last half hour, oldest first.
        self._entries: dict[Series, _Entry] = {}

    def before_replacing(self, series: Series) -> float:
        """Return the seconds that a failed pod must stay; 0 if it may be deleted now, which counts as a failure."""
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
        """Remove series without a recent failure."""
        for series, entry in list(self._entries.items()):
            if now - entry.since > 2 * LONGEST:
                del self._entries[series]
