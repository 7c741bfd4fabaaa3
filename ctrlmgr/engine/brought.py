"""Ends the causes that appends bring along: what changed a write on its way (`engine.writes.attempts`).

Guarantees: such a cause is one of many writes, and is ended once by each process, not with each of them.
"""

from __future__ import annotations

from ctrlmgr.caches import BoundedCache
from ctrlmgr.engine.operations import DONE
from ctrlmgr.eventlog.event import Cause
from ctrlmgr.eventlog.log import EventLog

_ENTRIES = 4096


class Brought:
    """Causes that have been ended; threads may share them, as one that is ended twice has ended."""

    def __init__(self, log: EventLog) -> None:
        """Tell `log`."""
        self._log = log
        self._ended: BoundedCache[int, bool] = BoundedCache("ended-causes", entries=_ENTRIES)

    def end(self, cause: Cause) -> None:
        """End a cause, unless it has been."""
        if self._ended.get(cause.id):
            return
        self._ended.put(cause.id, True)
        self._log.finish(cause.id, DONE)
