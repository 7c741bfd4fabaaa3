"""The backoff before a failed pod of a DaemonSet is replaced on its node; prevents an endless loop of failures.

Guarantees, as in Kubernetes (`failedPodsBackoff`): the first failed pod is deleted at once. The next failed pod on the
same node is deleted after 1 s. For each further failed pod, the time doubles, up to 15 minutes. After 30 minutes
without a failure, the backoff starts again with an immediate deletion. Each generation of the DaemonSet has its own
backoff. The state of the backoff is lost when the process ends.
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
    """Counts failed pods by node and DaemonSet; an instance is thread-safe. All times of the backoff are in seconds."""

    def __init__(self, clock: Clock) -> None:
        """Create a backoff that uses the monotonic time of `clock`."""
        self._clock = clock
        self._lock = threading.Lock()
        # The backoffs with a failure within the last half hour; the backoff whose last failure is the oldest comes
        # first.
        self._entries: dict[Series, _Entry] = {}

    def before_replacing(self, series: Series) -> float:
        """Return the seconds for which a failed pod must stay on its node.

        If the failed pod may be deleted now, return 0 and count a failure.
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
        """Remove the backoffs of nodes and DaemonSets without a recent failure."""
        for series, entry in list(self._entries.items()):
            if now - entry.since > 2 * LONGEST:
                del self._entries[series]
