"""Marks the admission causes of appends as finished (`engine.writes.attempts`).

Guarantees: many writes may share one admission cause. Each process marks a cause as finished once, not once for each
write.
"""

from __future__ import annotations

from ctrlmgr.caches import BoundedCache
from ctrlmgr.engine.operations import DONE
from ctrlmgr.eventlog.event import Cause
from ctrlmgr.eventlog.log import EventLog

_ENTRIES = 4096


class AdmissionCauseDedup:
    """The causes that this process has marked as finished.

    Several threads may share an instance, because marking a cause twice is harmless.
    """

    def __init__(self, log: EventLog) -> None:
        """Create a marker of admission causes in `log`."""
        self._log = log
        self._ended: BoundedCache[int, bool] = BoundedCache("ended-causes", entries=_ENTRIES)

    def end(self, cause: Cause) -> None:
        """Mark an admission cause as finished, unless this process has already done so."""
        if self._ended.get(cause.id):
            return
        self._ended.put(cause.id, True)
        self._log.finish(cause.id, DONE)
