"""Correlates occurrences: each one becomes a new Event, increments the count of an Event, or is dropped.

Guarantees, all as in client-go (`tools/record/events_cache.go`, `EventCorrelator`):
- An occurrence that equals an earlier occurrence increments the count of the earlier occurrence's Event.
- From the tenth message on, occurrences that differ only in their message are combined into one Event. The combination
  of messages ends after ten minutes without such an occurrence.
- One component may record 25 occurrences about one object, and one more every five minutes. The correlator drops all
  further occurrences.
- Correlation has no side effects except on its caches. Each cache contains the 4,096 most recent entries, and the
  cached messages have at most 16 MiB.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ctrlmgr.api.core import ObjectReference
from ctrlmgr.caches import BoundedCache

REMEMBERED: Final = 4096
"""The maximum number of entries of each cache (`maxLruCacheEntries`)."""
_SIZE: Final = 16 * 1024 * 1024
"""The maximum size of the cached messages, in bytes."""
SIMILAR: Final = 10
"""The number of distinct messages from which on occurrences are combined into one Event (`defaultAggregateMaxEvents`).
"""
INTERVAL: Final = 600.0
"""The number of seconds without another message after which a group of messages is removed
(`defaultAggregateIntervalInSeconds`).
"""
BURST: Final = 25
"""The number of occurrences that one component may record at once about one object (`defaultSpamBurst`)."""
REFILL: Final = 300.0
"""The number of seconds until a component may record one more occurrence about an object (`defaultSpamQPS`)."""

_COMBINED: Final = "(combined from similar events): "


class Occurrence(NamedTuple):
    """A fact about an object, as a controller records it in an Event."""

    subject: ObjectReference
    type: str
    """The type of the Event: `Normal` or `Warning`."""
    reason: str
    message: str
    component: str
    """The component that records the occurrence."""
    action: str
    """The component's action, if Kubernetes names the action."""
    at: int
    """The time of the occurrence, in microseconds since 1970."""
    name: str
    """The name of the Event, if the occurrence becomes a new Event."""
    instance: str = ""
    """The process in which the component runs; only Events of the newer API (`events.k8s.io`) contain this field."""
    related: ObjectReference | None = None
    """A related object, which only Events of the newer API (`events.k8s.io`) contain."""


class CorrelatedEvent(NamedTuple):
    """An Event that the recorder must write.

    `occurrence` is the latest occurrence of the Event. `name` and `first` are the name and the time of the first
    occurrence.
    """

    occurrence: Occurrence
    name: str
    first: int
    times: int


@dataclass(slots=True)
class _Group:
    """A group of occurrences that differ only in their messages.

    The keys of `messages` are the messages, oldest first.
    """

    messages: dict[str, None] = field(default_factory=dict)
    latest: float = 0.0


@dataclass(slots=True)
class _Bucket:
    """The token bucket of a component and an object.

    `tokens` is the number of tokens at the time `at`, at most `BURST`.
    """

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
    """Correlates occurrences; only one thread may use an instance at a time."""

    def __init__(self) -> None:
        """Create a correlator with empty caches."""
        self._groups: BoundedCache[Hashable, _Group] = BoundedCache("event-groups", entries=REMEMBERED, size=_SIZE)
        self._seen: BoundedCache[Hashable, CorrelatedEvent] = BoundedCache("events", entries=REMEMBERED, size=_SIZE)
        self._buckets: BoundedCache[Hashable, _Bucket] = BoundedCache("event-sources", entries=REMEMBERED)

    def correlate(self, occurrence: Occurrence, now: float) -> CorrelatedEvent | None:
        """Return the Event to write, or None if the occurrence must be dropped; `now` is in monotonic seconds."""
        occurrence, key = self._combined(occurrence, now)
        before = self._seen.get(key)
        sighting = CorrelatedEvent(occurrence, occurrence.name, occurrence.at, 1)
        if before is not None:
            sighting = CorrelatedEvent(occurrence, before.name, before.first, before.times + 1)
        self._seen.put(key, sighting, len(occurrence.message))
        return sighting if self._may_tell(occurrence, now) else None

    def _combined(self, occurrence: Occurrence, now: float) -> tuple[Occurrence, Hashable]:
        """Return the occurrence and the key of its Event.

        If a group of occurrences has many different messages, all occurrences of the group become one Event.
        """
        key = (_source(occurrence), occurrence.type, occurrence.reason)
        group = self._groups.get(key)
        if group is None or now - group.latest > INTERVAL:
            group = _Group()
        group.messages[occurrence.message] = None
        group.latest = now
        self._groups.put(key, group, sum(map(len, group.messages)))
        if len(group.messages) < SIMILAR:
            return occurrence, (key, occurrence.subject.field_path, occurrence.message)
        del group.messages[next(iter(group.messages))]
        return occurrence._replace(message=_COMBINED + occurrence.message), key

    def _may_tell(self, occurrence: Occurrence, now: float) -> bool:
        key = _source(occurrence)
        bucket = self._buckets.get(key) or _Bucket(now)
        self._buckets.put(key, bucket)
        return bucket.take(now)


def _source(occurrence: Occurrence) -> tuple[str, ...]:
    """Return the component and the object, without the object's resource version."""
    subject = occurrence.subject
    return occurrence.component, subject.kind, subject.namespace, subject.name, subject.uid, subject.api_version
