"""A whole recording in memory, which can be played from any position.

Guarantees: a recording does not change after it was loaded, so any thread may read it. The state at any position is
found without playing the events before the position.

If a recording contains no Namespaces, a stand-in exists from the beginning for each namespace with objects, because
clients could not write into it otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import NAMESPACES, Key, Resource
from ctrlmgr.clock import format_time_seconds
from ctrlmgr.eventlog.event import Event, EventType
from ctrlmgr.eventlog.memory_log import state_at
from ctrlmgr.interpreter import collector_paused
from ctrlmgr.recording.format import Change, RecordingReader
from ctrlmgr.recording.playback.timetable import Timetable, opening_of, times_of

ACTOR = "recording"
"""The author of all events of a played recording."""

_NOBODY: Mapping[Key, Sequence[Event]] = {}


class LoadedRecording:
    """All events of a recording, in order."""

    def __init__(self, events: Sequence[Event], timetable: Timetable) -> None:
        """Create a loaded recording of `events`, whose times are in `timetable`."""
        self.events = events
        self.timetable = timetable
        self._histories: dict[Resource, dict[Key, list[Event]]] = {}
        self._by_resource: dict[Resource, list[Event]] = {}
        for event in events:
            self._by_resource.setdefault(event.resource, []).append(event)
            self._histories.setdefault(event.resource, {}).setdefault(event.key, []).append(event)

    @property
    def resources(self) -> Iterable[Resource]:
        """The resources of all objects in the recording."""
        return self._histories.keys()

    @property
    def namespaces(self) -> set[str]:
        """The names of all namespaces that ever exist."""
        return {key.name for key in self._histories.get(NAMESPACES, _NOBODY)}

    def of(self, resource: Resource | None) -> Sequence[Event]:
        """Return the events of one resource, or all events."""
        return self.events if resource is None else self._by_resource.get(resource, [])

    def history(self, resource: Resource, key: Key) -> Sequence[Event]:
        """Return the events of one key, including the events of earlier and later objects with the same name."""
        return self._histories.get(resource, _NOBODY).get(key, ())

    def objects(self, resource: Resource | None, namespace: str | None, position: int) -> Iterator[Object]:
        """Yield the objects that exist after the first `position` events of the recording."""
        revision = self.events[position - 1].revision
        for each in list(self._histories) if resource is None else [resource]:
            for key, history in self._histories.get(each, _NOBODY).items():
                if namespace is None or key.namespace == namespace:
                    obj = state_at(history, revision)
                    if obj is not None:
                        yield obj


def load(path: str | Path, *, max_gap: int | None = None) -> LoadedRecording:
    """Read a whole recording; raises `RecordingError` if it is invalid.

    Gaps between events are shortened to `max_gap` microseconds.
    """
    with collector_paused():
        changes = [entry for entry in RecordingReader(path) if isinstance(entry, Change)]
        opening = opening_of(changes) if changes else 0
        changes[:opening] = sorted(changes[:opening], key=lambda change: change.object.revision)
        return recording_of(changes, opening, max_gap=max_gap)


def recording_of(changes: Sequence[Change], opening: int, *, max_gap: int | None = None) -> LoadedRecording:
    """Return a loaded recording of changes in revision order, of which the first `opening` are the initial objects."""
    times = times_of(changes, opening)
    events = [_event(change.type, change.object, time) for change, time in zip(changes, times, strict=True)]
    standing = list(_stand_ins(events))
    times, opening = times[:1] * len(standing) + times, opening + len(standing)
    events = standing + _linked(events)
    timetable = Timetable.of([event.revision for event in events], times, opening, max_gap=max_gap)
    return LoadedRecording(events, timetable)


def _event(type_: EventType, obj: Object, time: int, previous: int = 0) -> Event:
    return Event(obj.revision, previous, type_, obj, time, ACTOR, "", 0, 0, 0, b"")


def _linked(events: Sequence[Event]) -> list[Event]:
    """Return the events, each with a reference to the previous event of the same object key."""
    newest: dict[tuple[Resource, Key], int] = {}
    linked = []
    for event in events:
        place = (event.resource, event.key)
        linked.append(_event(event.type, event.object, event.recorded_at, newest.get(place, 0)))
        newest[place] = event.revision
        event.object.forget_decoded()  # most objects are only served as bytes, so drop the decoded form
    return linked


def _stand_ins(events: Sequence[Event]) -> Iterator[Event]:
    if any(event.resource == NAMESPACES for event in events):
        return
    first = events[0]
    for name in sorted({event.key.namespace for event in events} - {""}):
        fields = {
            "kind": "Namespace",
            "apiVersion": "v1",
            "metadata": {
                "name": name,
                "uid": f"stand-in-{name}",
                "creationTimestamp": format_time_seconds(first.recorded_at),
                "labels": {"kubernetes.io/metadata.name": name},
            },
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active"},
        }
        yield _event(EventType.ADDED, Object.from_dict(fields).at(first.revision), first.recorded_at)
