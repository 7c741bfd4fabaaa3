"""Decides by the log whether a run has become quiet.

A log is quiet when nothing has changed for some seconds, except objects that change by themselves: Leases, Events, and
the heartbeats of nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ctrlmgr.api.resource import EVENTS, EVENTS_V1, INTERNAL_GROUP, LEASES, NODES
from ctrlmgr.clock import Clock, pause
from ctrlmgr.eventlog import EventLog
from ctrlmgr.eventlog.event import Event

RESTLESS = frozenset({EVENTS, EVENTS_V1, LEASES, NODES})
"""The resources that change by themselves."""
_LOOK: Final = 0.1


class LogFollower:
    """Follows the log of a running server."""

    def __init__(self, log: EventLog, *, clock: Clock) -> None:
        """Follow `log` from its head on; the log counts as changed now."""
        self.log = log
        self._clock = clock
        self._read = log.head().revision
        self._changed_at = clock.monotonic()
        self.changed_revision = self._read
        """The revision of the newest event that matters."""

    def quiet_seconds(self) -> float:
        """Return the seconds for which the log has been quiet."""
        while events := self.log.events_after(self._read, limit=1000):
            self._read = events[-1].revision
            if relevant := [event for event in events if matters(event)]:
                self.changed_revision = relevant[-1].revision
                age = (self._clock.now() - relevant[-1].recorded_at) / 1_000_000
                self._changed_at = max(self._changed_at, self._clock.monotonic() - max(age, 0.0))
        return self._clock.monotonic() - self._changed_at

    def until_quiet(self, seconds: float, limit: float, is_done: Callable[[], bool] = lambda: True) -> bool:
        """Wait until the log is quiet for `seconds` and `is_done` holds; return False after `limit` seconds."""
        deadline = self._clock.monotonic() + limit
        while self.quiet_seconds() < seconds or not is_done():
            if self._clock.monotonic() > deadline:
                return False
            pause(self._clock, _LOOK)
        return True


def matters(event: Event) -> bool:
    """Return whether an event shows that the run is not quiet."""
    return event.resource not in RESTLESS and event.resource.group != INTERNAL_GROUP
