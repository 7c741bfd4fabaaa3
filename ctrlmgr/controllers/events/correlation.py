"""What becomes of the things that controllers tell of: one Event each, a count on an Event, or nothing.

Guarantees, all of them client-go's (`tools/record/events_cache.go`, `EventCorrelator`):
- The same thing told again is the same Event, counted once more.
- What differs in nothing but its message is combined into one Event from the tenth message on, for as long as no ten
  minutes pass without another.
- One component may tell 25 things about one object, and one more each five minutes; the rest is dropped, and counted.
- It is pure but for what it remembers: the 4,096 most recent of each kind, as far as their messages take 16 MiB.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ctrlmgr.api.core import ObjectReference
from ctrlmgr.caches import BoundedCache

REMEMBERED: Final = 4096
"""How many of each are remembered (`maxLruCacheEntries`)."""
_SIZE: Final = 16 * 1024 * 1024
"""Bytes of the messages that are remembered."""
SIMILAR: Final = 10
"""How many messages are too many to be Events of their own (`defaultAggregateMaxEvents`)."""
INTERVAL: Final = 600.0
"""Seconds without another after which they are forgotten (`defaultAggregateIntervalInSeconds`)."""
BURST: Final = 25
"""How much one component may tell of one object at once (`defaultSpamBurst`)."""
REFILL: Final = 300.0
"""Seconds until it may tell one thing more (`defaultSpamQPS`)."""

_COMBINED: Final = "(combined from similar events): "


class Occurrence(NamedTuple):
    """Something that has happened to an object, as a controller tells of it."""

    subject: ObjectReference
    type: str
    """`Normal` or `Warning`."""
    reason: str
    message: str
    component: str
    """Who tells of it."""
    action: str
    """What it was doing, if Kubernetes has a word for it."""
    at: int
    """When, in microseconds since 1970."""
    name: str
    """What its Event is called, if it becomes one of its own."""
    instance: str = ""
    """Which process of the component tells; only Events of the newer form (`events.k8s.io`) say so."""
    related: ObjectReference | None = None
    """Another object that has part in it; in Events of the newer form."""


class Sighting(NamedTuple):
    """An Event as it should be: `told` is the latest that it tells of, `name` and `first` are the first one's."""

    told: Occurrence
    name: str
    first: int
    times: int


@dataclass(slots=True)
class _Group:
    """What differs only in its message; the messages are the keys, oldest first."""

    messages: dict[str, None] = field(default_factory=dict)
    latest: float = 0.0


@dataclass(slots=True)
class _Bucket:
    """Invariant: `tokens` are those there were at `at`, at most `BURST`."""

    at: float
    tokens: float = BURST

    def take(self, now: float) -> bool:
        self.tokens = min(BURST, self.tokens + (now - self.at) / REFILL)
        self.at = now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


class Correlator:
    """Correlates what is told; belongs to one thread at a time."""

    def __init__(self) -> None:
        """Remember nothing yet."""
        self._groups: BoundedCache[Hashable, _Group] = BoundedCache("event-groups", entries=REMEMBERED, size=_SIZE)
        self._seen: BoundedCache[Hashable, Sighting] = BoundedCache("events", entries=REMEMBERED, size=_SIZE)
        self._buckets: BoundedCache[Hashable, _Bucket] = BoundedCache("event-sources", entries=REMEMBERED)

    def correlate(self, told: Occurrence, now: float) -> Sighting | None:
        """Return the Event to write, None if nothing is to be written; `now` is in monotonic seconds."""
        told, key = self._combined(told, now)
        before = self._seen.get(key)
        sighting = Sighting(told, told.name, told.at, 1)
        if before is not None:
            sighting = Sighting(told, before.name, before.first, before.times + 1)
        self._seen.put(key, sighting, len(told.message))
        return sighting if self._may_tell(told, now) else None

    def _combined(self, told: Occurrence, now: float) -> tuple[Occurrence, Hashable]:
        """Return what is told and what makes it the same: one of its own, or what its whole group has come to."""
        key = (_source(told), told.type, told.reason)
        group = self._groups.get(key)
        if group is None or now - group.latest > INTERVAL:
            group = _Group()
        group.messages[told.message] = None
        group.latest = now
        self._groups.put(key, group, sum(map(len, group.messages)))
        if len(group.messages) < SIMILAR:
            return told, (key, told.subject.field_path, told.message)
        del group.messages[next(iter(group.messages))]
        return told._replace(message=_COMBINED + told.message), key

    def _may_tell(self, told: Occurrence, now: float) -> bool:
        key = _source(told)
        bucket = self._buckets.get(key) or _Bucket(now)
        self._buckets.put(key, bucket)
        return bucket.take(now)


def _source(told: Occurrence) -> tuple[str, ...]:
    """Return who tells of which object; the version it was seen at plays no part."""
    subject = told.subject
    return told.component, subject.kind, subject.namespace, subject.name, subject.uid, subject.api_version
