"""A board: the watchers of one resource, in groups of those who get the same bytes.

Guarantees: for each change only those groups are asked whose namespace and name allow it; what two groups show alike
is encoded once; the pieces made for a group are in order, and each says how far it takes its readers. Of a group the
watcher comes first who has been written to least recently, and so has the most to be told.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Revision
from ctrlmgr.caches import BoundedCache
from ctrlmgr.engine.selectors import FieldSelector, LabelSelector
from ctrlmgr.engine.watch import Selection
from ctrlmgr.informer.informer import Change
from ctrlmgr.server.http.framing import chunk
from ctrlmgr.server.presenting.presentation import Presentation
from ctrlmgr.server.watch.watcher import Watcher

_PIECE = 256 * 1024
"""Bytes after which frames go into the next piece."""

_FRAMES: Final = 2_000
"""Frames that a board caches while it has something to tell."""
_FRAME_BYTES: Final = 32 * 1024 * 1024
"""Bytes of these frames."""

_Place: TypeAlias = tuple[str | None, str | None]
_Made: TypeAlias = BoundedCache[tuple[Presentation, Revision, str], bytes]


class Piece(NamedTuple):
    """Some frames in one chunk; who has been written it has everything up to `revision`."""

    chunk: bytes
    revision: Revision
    events: int


class Group:
    """Watchers who asked for the same and are shown it in the same way."""

    __slots__ = ("_events", "_pieces", "newest", "presentation", "selection", "watchers")

    def __init__(self, selection: Selection, presentation: Presentation) -> None:
        """Start without watchers."""
        self.selection = selection
        self.presentation = presentation
        self.watchers: OrderedDict[Watcher, None] = OrderedDict()
        """In the order of their cursors: who is written to goes to the end."""
        self.newest: Revision = 0
        """The last change that means something here."""
        self._events: list[tuple[Revision, str, Object]] = []  # what not all of them have been told
        self._pieces: dict[Revision, list[Piece]] = {}  # the same as it is written, by where a watcher stands

    @property
    def place(self) -> _Place:
        """The namespace and name that changes must have to matter here; None for any."""
        selection = self.selection
        namespace = selection.namespace if selection.namespace is not None else selection.fields.namespace
        return namespace, selection.fields.name

    def note(self, changes: Sequence[Change]) -> bool:
        """Keep what `changes`, newer than all before, are for this group; False if they are nothing."""
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
        """Return who has the most to be told, None if all have been told everything."""
        first = next(iter(self.watchers), None)
        if first is None or first.cursor >= self.newest:
            self._events, self._pieces = [], {}
            return None
        return first

    def reached(self, watcher: Watcher, revision: Revision) -> Revision:
        """Return how far a watcher has been told what there is, on a board that is at `revision`."""
        return watcher.cursor if watcher.cursor < self.newest else revision

    def pieces(self, cursor: Revision, made: _Made) -> Sequence[Piece]:
        """Return what is beyond `cursor`; `made` holds the frames of all groups."""
        pieces = self._pieces.get(cursor)
        if pieces is None:
            pieces = self._pieces[cursor] = list(self._chunks(cursor, made))
        return pieces

    def _chunks(self, cursor: Revision, made: _Made) -> Iterator[Piece]:
        frames: list[bytes] = []
        size, revision = 0, 0
        for revision, frame in self._frames(cursor, made):
            frames.append(frame)
            size += len(frame)
            if size >= _PIECE:
                yield Piece(chunk(b"".join(frames)), revision, len(frames))
                frames, size = [], 0
        if frames:
            yield Piece(chunk(b"".join(frames)), revision, len(frames))

    def _frames(self, cursor: Revision, made: _Made) -> Iterator[tuple[Revision, bytes]]:
        presentation = self.presentation
        for revision, happened, obj in self._events:
            if revision <= cursor:
                continue
            # Of one revision, all watchers that are shown an event of one type are shown the same object.
            frame = made.get(key := (presentation, revision, happened))
            if frame is None:
                frame = presentation.frame(happened, obj)
                made.put(key, frame, len(frame))
            yield revision, frame
            presentation = presentation.following


class Board:
    """See the module's docstring."""

    def __init__(self) -> None:
        """Start empty."""
        self.made: _Made = BoundedCache("watch-frames", entries=_FRAMES, size=_FRAME_BYTES)
        """The frames of what is being told, for all groups."""
        self._groups: dict[tuple[Presentation, str | None, LabelSelector, FieldSelector], Group] = {}
        # The same groups by what their objects must be called.
        self._places: dict[_Place, dict[Group, None]] = {}
        self._due: dict[Group, None] = {}  # those that have noted what not all have been told

    def add(self, watcher: Watcher) -> Group:
        """Put a watcher, who has been told everything, into the group of those like it, and return that."""
        key = _key(watcher.selection, watcher.presentation)
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = Group(watcher.selection, watcher.presentation)
            self._places.setdefault(group.place, {})[group] = None
        group.watchers[watcher] = None
        return group

    def remove(self, watcher: Watcher, group: Group) -> None:
        """Take a watcher out of its group, which it may have been put out of already."""
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
        """Yield all watchers, each with its group."""
        for group in self._groups.values():
            for watcher in group.watchers:
                yield group, watcher

    def note(self, changes: Sequence[Change]) -> None:
        """Have the groups that `changes` concern keep them until all their watchers have been told."""
        for group, concerning in self._concerned(changes).items():
            if group.watchers and group.note(concerning):
                self._due[group] = None

    def due(self) -> list[Group]:
        """Return the groups of which not all watchers have been told everything."""
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
    """Return what is the same for all of a group; selectors are the same object where they are the same text."""
    return presentation, selection.namespace, selection.labels, selection.fields
