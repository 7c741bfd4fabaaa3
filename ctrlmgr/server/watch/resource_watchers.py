"""Groups the watchers of one resource; all watchers of a group receive the same bytes.

Guarantees: a change is compared only with groups whose selection includes the namespace and name of the changed object.
A frame that two groups share is encoded once. The pieces for a group are in order of revision. Each piece contains the
revision of its last event. Within a group, the watcher with the oldest last write is the first, because it has the most
pending events.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Revision
from ctrlmgr.caches import BoundedCache
from ctrlmgr.engine.selectors import FieldSelector, LabelSelector
from ctrlmgr.engine.watch_cache.watch import Selection
from ctrlmgr.http.framing import chunk
from ctrlmgr.informer.informer import Change
from ctrlmgr.server.presenting.presentation import Presentation
from ctrlmgr.server.watch.watcher import Watcher

_PIECE = 256 * 1024
"""The size of a piece in bytes. When a piece has reached this size, further frames go into the next piece."""

_FRAMES: Final = 2_000
"""Maximum number of cached frames of a resource; frames are cached while watchers have pending events."""
_FRAME_BYTES: Final = 32 * 1024 * 1024
"""Maximum total size of the cached frames, in bytes."""

_Place: TypeAlias = tuple[str | None, str | None]
_Made: TypeAlias = BoundedCache[tuple[Presentation, Revision, str], bytes]


class FrameChunk(NamedTuple):
    """A piece with several frames, which is sent as one HTTP chunk.

    A watcher that has received this chunk has received all events up to `revision`.
    """

    chunk: bytes
    revision: Revision
    events: int


class Group:
    """A group of watchers with the same selection and presentation."""

    __slots__ = ("_events", "_pieces", "newest", "presentation", "selection", "watchers")

    def __init__(self, selection: Selection, presentation: Presentation) -> None:
        """Create an instance without watchers."""
        self.selection = selection
        self.presentation = presentation
        self.watchers: OrderedDict[Watcher, None] = OrderedDict()
        """The watchers, ordered by cursor, because a watcher moves to the end after each write."""
        self.newest: Revision = 0
        """The revision of the last change that matches the selection."""
        self._events: list[tuple[Revision, str, Object]] = []  # events that are pending for some watchers
        self._pieces: dict[Revision, list[FrameChunk]] = {}  # the pending events as pieces, by the watcher's cursor

    @property
    def place(self) -> _Place:
        """The namespace and name of the changes that match the selection; None means any namespace or any name."""
        selection = self.selection
        namespace = selection.namespace if selection.namespace is not None else selection.fields.namespace
        return namespace, selection.fields.name

    def note(self, changes: Sequence[Change]) -> bool:
        """Store those of `changes` that match the selection; return False if no change matches.

        The changes must be newer than all changes that were stored before.
        """
        transition = self.selection.transition
        events = [(change.revision, *event) for change in changes if (event := transition(change)) is not None]
        if not events:
            return False
        least = next(iter(self.watchers)).cursor
        self._events = [event for event in self._events if event[0] > least] + events
        self._pieces = {}
        self.newest = events[-1][0]
        return True

    def next_due(self) -> Watcher | None:
        """Return the watcher with the most pending events; None if no watcher has pending events."""
        first = next(iter(self.watchers), None)
        if first is None or first.cursor >= self.newest:
            self._events, self._pieces = [], {}
            return None
        return first

    def reached(self, watcher: Watcher, revision: Revision) -> Revision:
        """Return the revision up to which a watcher has received all events; `revision` is the revision of the hub."""
        return watcher.cursor if watcher.cursor < self.newest else revision

    def pieces(self, cursor: Revision, made: _Made) -> Sequence[FrameChunk]:
        """Return the pieces with the group's events after `cursor`; `made` caches the frames of all groups."""
        pieces = self._pieces.get(cursor)
        if pieces is None:
            pieces = self._pieces[cursor] = list(self._chunks(cursor, made))
        return pieces

    def _chunks(self, cursor: Revision, made: _Made) -> Iterator[FrameChunk]:
        frames: list[bytes] = []
        size, revision = 0, 0
        for revision, frame in self._frames(cursor, made):
            frames.append(frame)
            size += len(frame)
            if size >= _PIECE:
                yield FrameChunk(chunk(b"".join(frames)), revision, len(frames))
                frames, size = [], 0
        if frames:
            yield FrameChunk(chunk(b"".join(frames)), revision, len(frames))

    def _frames(self, cursor: Revision, made: _Made) -> Iterator[tuple[Revision, bytes]]:
        presentation = self.presentation
        for revision, happened, obj in self._events:
            if revision <= cursor:
                continue
            # All watchers with the same revision and event type receive the same frame object.
            frame = made.get(key := (presentation, revision, happened))
            if frame is None:
                frame = presentation.frame(happened, obj)
                made.put(key, frame, len(frame))
            yield revision, frame
            presentation = presentation.following


class ResourceWatchers:
    """The watchers of one resource, in groups."""

    def __init__(self) -> None:
        """Create an instance without watchers."""
        self.made: _Made = BoundedCache("watch-frames", entries=_FRAMES, size=_FRAME_BYTES)
        """The encoded frames of pending events, for all groups."""
        self._groups: dict[tuple[Presentation, str | None, LabelSelector, FieldSelector], Group] = {}
        # The groups, by the namespace and name that their selections require.
        self._places: dict[_Place, dict[Group, None]] = {}
        self._due: dict[Group, None] = {}  # groups with pending events

    def add(self, watcher: Watcher) -> Group:
        """Add a watcher that has caught up to the group with its selection and presentation; return the group."""
        key = _key(watcher.selection, watcher.presentation)
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = Group(watcher.selection, watcher.presentation)
            self._places.setdefault(group.place, {})[group] = None
        group.watchers[watcher] = None
        return group

    def remove(self, watcher: Watcher, group: Group) -> None:
        """Remove a watcher from its group; do nothing if it was removed before."""
        group.watchers.pop(watcher, None)
        key = _key(group.selection, group.presentation)
        if group.watchers or self._groups.get(key) is not group:
            return
        del self._groups[key]
        self._due.pop(group, None)
        groups = self._places[group.place]
        del groups[group]
        if not groups:
            del self._places[group.place]

    def members(self) -> Iterator[tuple[Group, Watcher]]:
        """Yield each watcher with its group."""
        for group in self._groups.values():
            for watcher in group.watchers:
                yield group, watcher

    def note(self, changes: Sequence[Change]) -> None:
        """Store `changes` in the groups that they match, until all watchers of these groups have received them."""
        for group, concerning in self._concerned(changes).items():
            if group.watchers and group.note(concerning):
                self._due[group] = None

    def due(self) -> list[Group]:
        """Return the groups with pending events."""
        self._due = {group: None for group in self._due if group.next_due() is not None}
        if not self._due:
            self.made.clear()
        return list(self._due)

    def _concerned(self, changes: Sequence[Change]) -> dict[Group, list[Change]]:
        concerned: dict[Group, list[Change]] = {}
        for change in changes:
            namespace, name = change.object.key
            for place in ((None, None), (namespace, None), (namespace, name), (None, name)):
                for group in self._places.get(place, ()):
                    concerned.setdefault(group, []).append(change)
        return concerned


def _key(
    selection: Selection, presentation: Presentation
) -> tuple[Presentation, str | None, LabelSelector, FieldSelector]:
    """Return the key that identifies a group.

    Selectors with the same text are the same object, because the parser caches its results.
    """
    return presentation, selection.namespace, selection.labels, selection.fields
