"""Marks each admission cause of an append as finished, once per process (`engine.writes.attempts`).

Guarantees: many writes share one such cause; each process ends it once, not with each write.
"""

from __future__ import annotations

from ctrlmgr.caches import BoundedCache
from ctrlmgr.engine.operations import DONE
from ctrlmgr.eventlog.event import Cause
from ctrlmgr.eventlog.log import EventLog

_ENTRIES = 4096


class AdmissionCauseDedup:
    """Causes that this process has ended; threads may share it, as ending a cause twice is harmless."""

    def __init__(self, log: EventLog) -> None:
        """Mark causes in `log`."""
        self._log = log
        self._ended: BoundedCache[int, bool] = BoundedCache("ended-causes", entries=_ENTRIES)

    def end(self, cause: Cause) -> None:
        """Mark a cause as finished, unless this process has already done so."""
        if self._ended.get(cause.id):
            return
        self._ended.put(cause.id, True)
        self._log.finish(cause.id, DONE)
