"""Expiry of Events: deletes an Event that was not updated for a configured time, by default one hour.

Guarantees:
- Watchers receive DELETED, as when an etcd lease expires; finalizers do not delay the deletion of an Event.
- The age of an Event is the age of its newest state in the log. A restart of the process does not change the age. If
  the Event's count is incremented, the age starts at 0 again.
- If an Event changes at the moment of its expiry, the Event is kept.
- One append to the log can delete many Events.

Source: kube-apiserver's `--event-ttl` and `pkg/registry/core/event/storage`.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Iterator
from random import Random
from typing import Final

import structlog

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import EVENTS, Key, Revision
from ctrlmgr.client import EngineClient
from ctrlmgr.clock import Clock
from ctrlmgr.eventlog import EventLog
from ctrlmgr.informer import Change, Informer, Informers
from ctrlmgr.manager import Controller, Result

log = structlog.get_logger(__name__)

CONTROLLER_NAME: Final = "event-expiry"
INTERVAL: Final = 10.0
"""The number of seconds between checks, which is also the maximum delay of an expiry."""
AT_ONCE: Final = 500
"""The maximum number of Events that one append deletes."""

ROOM: Final = 1_000
"""The number of outdated states of Events that may be kept in memory, in addition to twice the number of Events at the
last cleanup.
"""

_ALL: Final = Key("", "events")


class EventExpiry:
    """Reconciles a single key, which stands for all Events."""

    def __init__(self, events: Informer, event_log: EventLog, ttl: float, *, clock: Clock) -> None:
        """Create a reconciler that deletes Events after `ttl` seconds; the informer `events` has not synced yet."""
        self._events = events.lister
        self._log = event_log
        self._ttl = ttl
        self._clock = clock
        # The lock guards all attributes that follow.
        self._lock = threading.Lock()
        # A heap of the current states of Events and some outdated states, which are skipped.
        self._states: list[tuple[Revision, Key]] = []
        # The size of the heap at which outdated states are removed from the heap.
        self._room = ROOM
        events.add_handler(self._observe)

    @property
    def remembered(self) -> int:
        """Return the number of states of Events in the heap."""
        return len(self._states)

    def _observe(self, change: Change) -> None:
        if change.new is None:
            return
        with self._lock:
            heapq.heappush(self._states, (change.new.revision, change.new.key))
            # While another process is the leader, this process pops no states, so the heap grows.
            if len(self._states) > self._room:
                self._states = [state for state in self._states if self._event(state) is not None]
                heapq.heapify(self._states)
                self._room = 2 * len(self._states) + ROOM

    def _event(self, state: tuple[Revision, Key]) -> Object | None:
        """Return the Event that has this state, or None if the Event has changed or was deleted."""
        revision, key = state
        event = self._events.get(key)
        return event if event is not None and event.revision == revision else None

    def on_start(self) -> Iterator[Key]:
        """Yield the only key; `reconcile` then requeues this key."""
        yield _ALL

    def reconcile(self, key: Key, client: EngineClient) -> Result:
        """Delete expired Events.

        Raises `Conflict` or `NotFound` if some Events have changed, so that the reconcile is retried.
        """
        newest = self._log.revision_at(self._clock.now() - round(self._ttl * 1_000_000))
        while expired := self._pop(newest):
            try:
                client.expire(expired)
            except BaseException:
                self._put_back(expired)
                raise
            log.info("events expired", number=len(expired))
        return Result(requeue_after=INTERVAL)

    def _pop(self, newest: Revision) -> list[Object]:
        """Return up to `AT_ONCE` Events that have not changed since revision `newest`."""
        found: list[Object] = []
        with self._lock:
            while len(found) < AT_ONCE and self._states and self._states[0][0] <= newest:
                event = self._event(heapq.heappop(self._states))
                if event is not None:
                    found.append(event)
        return found

    def _put_back(self, events: list[Object]) -> None:
        with self._lock:
            for event in events:
                heapq.heappush(self._states, (event.revision, event.key))


def new_event_expiry(
    informers: Informers, client: EngineClient, event_log: EventLog, ttl: float, *, clock: Clock, random: Random
) -> Controller:
    """Build the controller; the caller must do this before `informers` sync. `ttl` is in seconds."""
    expiry = EventExpiry(informers.informer(EVENTS), event_log, ttl, clock=clock)
    return Controller(CONTROLLER_NAME, expiry, watches=[], client=client, log=event_log, clock=clock, random=random)
