"""The end of Events: each goes once nothing has happened to it for as long as the settings say, one hour by default.

Guarantees:
- Watchers receive DELETED, as when a lease of etcd's runs out; no finalizer holds an Event.
- How old an Event is the log knows, by when its newest state was recorded; so a restart makes none older or younger,
  and an Event that is counted once more begins anew.
- One that changes at that very moment stays.
- Many go in one append.

Kubernetes: kube-apiserver's `--event-ttl` and `pkg/registry/core/event/storage`.
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
"""Seconds between looks, by which an Event may be late."""
AT_ONCE: Final = 500
"""How many Events go in one append."""

ROOM: Final = 1_000
"""How many states that Events had may be remembered beside as many as there are Events."""

_ALL: Final = Key("", "events")


class EventExpiry:
    """A reconciler with a single key: all Events."""

    def __init__(self, events: Informer, event_log: EventLog, ttl: float, *, clock: Clock) -> None:
        """Let the Events of `events`, which has not synced yet, be for `ttl` seconds."""
        self._events = events.lister
        self._log = event_log
        self._ttl = ttl
        self._clock = clock
        # Guards what follows.
        self._lock = threading.Lock()
        # A heap of the states that Events have and some that they had, which are of no interest when their turn comes.
        self._states: list[tuple[Revision, Key]] = []
        # How many of them may be there before those that Events only had are thrown out.
        self._room = ROOM
        events.add_handler(self._observe)

    @property
    def remembered(self) -> int:
        """Return how many states of Events are remembered."""
        return len(self._states)

    def _observe(self, change: Change) -> None:
        if change.new is None:
            return
        with self._lock:
            heapq.heappush(self._states, (change.new.revision, change.new.key))
            if len(self._states) > self._room:  # while another process leads, none are taken away
                self._states = [state for state in self._states if self._event(state) is not None]
                heapq.heapify(self._states)
                self._room = 2 * len(self._states) + ROOM

    def _event(self, state: tuple[Revision, Key]) -> Object | None:
        """Return the Event that is in this state, None if it is no longer."""
        revision, key = state
        event = self._events.get(key)
        return event if event is not None and event.revision == revision else None

    def on_start(self) -> Iterator[Key]:
        """Begin to look, which `reconcile` then goes on with by itself."""
        yield _ALL

    def reconcile(self, key: Key, client: EngineClient) -> Result:
        """Remove what is too old; raises `Conflict` or `NotFound` if some of it changes meanwhile, and goes on then."""
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
        """Return some of the Events that have stayed as they are since revision `newest` or before."""
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
    """Put the controller together; ask before `informers` sync. `ttl` is in seconds."""
    expiry = EventExpiry(informers.informer(EVENTS), event_log, ttl, clock=clock)
    return Controller(CONTROLLER_NAME, expiry, watches=[], client=client, log=event_log, clock=clock, random=random)
