"""The expected state of a run, computed from its event log in the simplest way.

This code shares nothing with the implementations and checks with which it is compared.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from tests.robustness.histories.history import Delivery, History, Item, Logged, Selection, Write

Place = tuple[str, str]


class Change(NamedTuple):
    """One event of the log, with the previous state of the event's object."""

    revision: int
    before: Logged | None
    after: Logged | None

    @property
    def place(self) -> Place:
        there = self.after or self.before
        assert there is not None
        return there.namespace, there.name


class Truth:
    """The expected state at every revision; see the module's docstring."""

    def __init__(self, history: History) -> None:
        self.log = history.log
        self._changes: dict[str, list[Change]] = defaultdict(list)
        self._of_place: dict[tuple[str, Place], list[Change]] = defaultdict(list)
        for event in history.log:
            self._add(event)
        self._revisions = {resource: [each.revision for each in changes] for resource, changes in self._changes.items()}
        self.of_write: dict[str, list[Logged]] = defaultdict(list)
        for event in history.log:
            if event.write:
                self.of_write[event.write].append(event)
        self.writes = {write.id: write for write in history.writes}

    def _add(self, event: Logged) -> None:
        place = (event.namespace, event.name)
        former = self._of_place[event.resource, place]
        before = former[-1].after if former else None
        change = Change(event.revision, before, None if event.type == "DELETED" else event)
        if change.before is not None or change.after is not None:
            former.append(change)
            self._changes[event.resource].append(change)

    @property
    def head(self) -> int:
        return self.log[-1].revision if self.log else 0

    def changes(self, resource: str, after: int, until: int) -> Sequence[Change]:
        """Return the changes of a resource after one revision, up to and including another revision."""
        revisions = self._revisions.get(resource, [])
        return self._changes[resource][bisect_right(revisions, after) : bisect_right(revisions, until)]

    def history_of(self, resource: str, place: Place) -> Sequence[Change]:
        """Return all changes of the object with one key."""
        return self._of_place.get((resource, place), [])

    def at(self, resource: str, place: Place, revision: int) -> Logged | None:
        """Return the object with a key as of a revision."""
        changes = self.history_of(resource, place)
        index = bisect_right(changes, revision, key=lambda change: change.revision)
        return changes[index - 1].after if index else None

    def state(self, resource: str, selection: Selection, revision: int) -> list[Item]:
        """Return the selected objects as of a revision, in etcd's order."""
        there = (self.at(*kept, revision) for kept in self._places if kept[0] == resource)
        return [item(each) for each in sorted(filter(None, there), key=path_of) if is_selected(selection, each)]

    @cached_property
    def _places(self) -> list[tuple[str, Place]]:
        return list(self._of_place)

    def events(self, resource: str, selection: Selection, after: int, until: int) -> Iterator[Delivery]:
        """Yield the events that a watcher of a selection must receive between two revisions."""
        for change in self.changes(resource, after, until):
            was = change.before is not None and is_selected(selection, change.before)
            now = change.after is not None and is_selected(selection, change.after)
            shown = change.after if now else change.before
            if shown is not None and (was or now):
                kind = ("MODIFIED" if was else "ADDED") if now else "DELETED"
                yield Delivery(kind, change.revision, *change.place, shown.digest, 0)

    def last_before(self, moment: int) -> int:
        """Return the highest revision that a client can have received at a time: the newest revision whose write had
        been sent.
        """
        moments, revisions = self._sent
        index = bisect_left(moments, moment)
        return revisions[index - 1] if index else 0

    @cached_property
    def _sent(self) -> tuple[list[int], list[int]]:
        """The times at which writes were sent, in ascending order, each with the newest revision of all writes sent up
        to this time.

        A controller may have sent a write at any time after the previous event.
        """
        sent: list[tuple[int, int]] = []
        earliest = 0
        for event in self.log:
            write: Write | None = self.writes.get(event.write)
            earliest = max(earliest, write.called if write is not None else 0)
            sent.append((earliest, event.revision))
        return [moment for moment, _ in sent], [revision for _, revision in sent]


def is_selected(selection: Selection, event: Logged) -> bool:
    return selection.matches(event.namespace, event.name, event.labels)


def item(event: Logged) -> Item:
    return Item(event.namespace, event.name, event.revision, event.digest)


def path_of(event: Logged | Item) -> str:
    return f"{event.namespace}/{event.name}" if event.namespace else event.name
