"""A board: the watchers of one resource, in groups of those who get the same bytes.

Guarantees: for each change only those groups are asked whose namespace and name allow it; what two groups show alike
is encoded once; the pieces made for a group are in order, and each says how far it takes its readers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import structlog

from ctrlmgr.api.resource import Revision
from ctrlmgr.engine.selectors import FieldSelector, LabelSelector
from ctrlmgr.engine.watch import Selection
from ctrlmgr.informer.informer import Change
from ctrlmgr.server.http.framing import chunk
from ctrlmgr.server.presenting.presentation import Presentation
from ctrlmgr.server.watch.watcher import Parting, Watcher

log = structlog.get_logger(__name__)

_PIECE = 256 * 1024
"""Bytes after which frames go into the next piece."""

_Place: TypeAlias = tuple[str | None, str | None]
_Made: TypeAlias = dict[tuple[Presentation, Revision, str], bytes]


class Piece(NamedTuple):
    """Some frames in one chunk; who has been written it has everything up to `revision`."""

    chunk: bytes
    revision: Revision
    events: int


class Group:
    """Watchers who asked for the same and are shown it in the same way."""

    __slots__ = ("presentation", "selection", "watchers")

    def __init__(self, selection: Selection, presentation: Presentation) -> None:
        """Start without watchers."""
        self.selection = selection
        self.presentation = presentation
        self.watchers: dict[Watcher, None] = {}

    @property
    def place(self) -> _Place:
        """The namespace and name that changes must have to matter here; None for any."""
        selection = self.selection
        namespace = selection.namespace if selection.namespace is not None else selection.fields.namespace
        return namespace, selection.fields.name

    def pieces(self, changes: Iterable[Change], made: _Made) -> Iterator[Piece]:
        """Yield what `changes` are for this group; `made` holds the frames of this pass, for all groups."""
        frames: list[bytes] = []
        size, revision = 0, 0
        for revision, frame in self._frames(changes, made):
            frames.append(frame)
            size += len(frame)
            if size >= _PIECE:
                yield Piece(chunk(b"".join(frames)), revision, len(frames))
                frames, size = [], 0
        if frames:
            yield Piece(chunk(b"".join(frames)), revision, len(frames))

    def _frames(self, changes: Iterable[Change], made: _Made) -> Iterator[tuple[Revision, bytes]]:
        presentation, transition = self.presentation, self.selection.transition
        for change in changes:
            event = transition(change)
            if event is None:
                continue
            # Of one revision, all watchers that are shown an event of one type are shown the same object.
            frame = made.get(key := (presentation, change.revision, event[0]))
            if frame is None:
                frame = made[key] = presentation.frame(*event)
            yield change.revision, frame
            presentation = presentation.following


class Delivery(NamedTuple):
    """What a group is to be written, and who was in it when that was decided."""

    group: Group
    watchers: Sequence[Watcher]
    pieces: Sequence[Piece]


class Board:
    """See the module's docstring."""

    def __init__(self) -> None:
        """Start empty."""
        self._groups: dict[tuple[Presentation, str | None, LabelSelector, FieldSelector], Group] = {}
        # The same groups by what their objects must be called.
        self._places: dict[_Place, dict[Group, None]] = {}

    def add(self, watcher: Watcher) -> Group:
        """Put a watcher into the group of those like it, and return that."""
        key = _key(watcher.selection, watcher.presentation)
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = Group(watcher.selection, watcher.presentation)
            self._places.setdefault(group.place, {})[group] = None
        group.watchers[watcher] = None
        return group

    def remove(self, watcher: Watcher, group: Group) -> None:
        """Take a watcher out of its group."""
        del group.watchers[watcher]
        if group.watchers:
            return
        del self._groups[_key(group.selection, group.presentation)]
        groups = self._places[group.place]
        del groups[group]
        if not groups:
            del self._places[group.place]

    def watchers(self) -> Iterator[Watcher]:
        """Yield all watchers."""
        for group in self._groups.values():
            yield from group.watchers

    def deliveries(self, changes: Sequence[Change]) -> Iterator[Delivery]:
        """Yield what `changes` mean to whom; a group that cannot be shown them has to part."""
        made: _Made = {}
        for group, concerning in self._concerned(changes).items():
            try:
                pieces = list(group.pieces(concerning, made))
            except Exception:
                log.exception("a change cannot be shown", kind=group.selection.kind.name)
                for watcher in list(group.watchers):
                    watcher.part(Parting.FAILED, changes[0].revision - 1)
                continue
            if pieces:
                yield Delivery(group, list(group.watchers), pieces)

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
