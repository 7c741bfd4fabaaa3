"""Ends the causes that appends bring along: what changed a write on its way (`engine.verbs.attempts`).

Guarantees: such a cause is one of many writes, and is ended once by each process, not with each of them.
"""

from __future__ import annotations

from ctrlmgr.engine.operations import DONE
from ctrlmgr.eventlog.event import Cause
from ctrlmgr.eventlog.log import EventLog

_REMEMBERED = 4096


class Brought:
    """Causes that have been ended; threads may share them, as one that is ended twice has ended."""

    def __init__(self, log: EventLog) -> None:
        """Tell `log`."""
        self._log = log
        self._ended: set[int] = set()

    def end(self, cause: Cause) -> None:
        """End a cause, unless it has been."""
        if cause.id in self._ended:
            return
        if len(self._ended) >= _REMEMBERED:
            self._ended.clear()
        self._ended.add(cause.id)
        self._log.finish(cause.id, DONE)
