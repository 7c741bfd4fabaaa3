"""The objects of one resource in etcd's order, and the recent changes that led to these objects.

Guarantees: `get`, `list` and the indexes agree after every `apply`; changes are in the order of their revisions.
Objects are sorted by path: `namespace/name` as one string, or the name of a cluster-scoped object. The order by path is
the order in which Kubernetes lists objects. The order by path differs from the order by (namespace, name) if a
namespace contains a hyphen.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Revision
from ctrlmgr.engine.watch_cache.sorted_objects import SortedObjects
from ctrlmgr.eventlog.event import Event, EventType
from ctrlmgr.informer.informer import Change


def path_of(key: Key) -> str:
    """Return the path under which an object is sorted."""
    return f"{key[0]}/{key[1]}" if key[0] else key[1]


class Span(NamedTuple):
    """A span: the paths from `start` (included) to `end` (excluded); an empty `end` means no upper bound."""

    start: str = ""
    end: str = ""

    @classmethod
    def of(cls, namespace: str | None) -> Span:
        """Return the span of a namespace, or the span of all objects if the namespace is None."""
        return cls(f"{namespace}/", f"{namespace}0") if namespace else EVERYWHERE  # "0" is the character after "/"

    @classmethod
    def at(cls, path: str) -> Span:
        """Return the span of one object."""
        return cls(path, path + "\0")

    def after(self, start: str) -> Span:
        """Return the part of the span whose paths are at or after `start`."""
        return Span(max(self.start, start), self.end)

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and self.start <= path and (not self.end or path < self.end)


EVERYWHERE = Span()


class ResourceStore:
    """The objects and recent changes of one resource; only one thread may use the store."""

    __slots__ = ("_changes", "_in_order", "_objects", "_revisions", "newest")

    def __init__(self, objects: Iterable[Object] = (), newest: Revision = 0) -> None:
        """Create a store with `objects`, in any order, which include all changes up to the revision `newest`."""
        self._objects: dict[Key, Object] = {obj.key: obj for obj in objects}
        pairs = [(path_of(key), obj) for key, obj in self._objects.items()]
        self._in_order = SortedObjects(sorted(pairs, key=itemgetter(0)))  # the same objects, sorted by path
        # Invariant: _revisions[i] == _changes[i].revision, ascending.
        self._changes: list[Change] = []
        self._revisions: list[Revision] = []
        self.newest = newest
        """The revision of the last applied change, or of the initial snapshot; 0 if the store had no objects."""

    def __len__(self) -> int:
        return len(self._objects)

    def get(self, key: Key) -> Object | None:
        """Return the object with the given key; None if no object has the key."""
        return self._objects.get(key)

    def list(self, span: Span) -> Sequence[Object]:
        """Return the objects in a span, in etcd's order, as a new list."""
        return self._in_order.list(span.start, span.end)

    def apply(self, event: Event) -> None:
        """Apply an event that is newer than all events applied before."""
        obj = event.object
        key = obj.key
        old = self._objects.get(key)
        new = None if event.type is EventType.DELETED else obj
        if old is None and new is None:
            return
        path = path_of(key)
        if new is None:
            del self._objects[key]
            self._in_order.remove(path)
            kind = EventType.DELETED
        else:
            self._objects[key] = new
            self._in_order.put(path, new)
            kind = EventType.ADDED if old is None else EventType.MODIFIED
        self._changes.append(Change(kind, old, new, event.revision))
        self._revisions.append(event.revision)
        self.newest = event.revision

    def changes_after(self, revision: Revision, limit: int) -> Sequence[Change]:
        """Return up to `limit` changes after `revision` that the store still holds."""
        if not self._revisions or self._revisions[-1] <= revision:
            return ()
        at = bisect_right(self._revisions, revision)
        return self._changes[at : at + limit]

    def forget(self, revision: Revision) -> None:
        """Remove the changes up to and including `revision`."""
        at = bisect_right(self._revisions, revision)
        del self._changes[:at], self._revisions[:at]

    def at(self, revision: Revision, span: Span) -> PastRange:
        """Return the state of a span at a revision; the store must still hold all changes since that revision."""
        undone: dict[str, Object | None] = {}
        at = bisect_right(self._revisions, revision)
        for change in reversed(self._changes[at:]):  # in this order, `old` of the oldest change remains in the end
            path = path_of(change.object.key)
            if path in span:
                undone[path] = change.old
        return PastRange(self._in_order, span, undone)


class PastRange:
    """A range of a store with some changes undone; callers must read the range before the store changes again."""

    def __init__(self, objects: SortedObjects, span: Span, undone: dict[str, Object | None]) -> None:
        """Create a range of the objects in a span, with the earlier objects in `undone` instead of the current ones."""
        self._objects, self._span, self._undone = objects, span, undone

    def __len__(self) -> int:
        there = sum(path in self._objects for path in self._undone)
        return self._objects.count(*self._span) - there + sum(old is not None for old in self._undone.values())

    def __iter__(self) -> Iterator[Object]:
        if not self._undone:
            return (obj for _, obj in self._objects.items(*self._span))
        return self._merged()

    def _merged(self) -> Iterator[Object]:
        """Merge the current objects and the earlier objects, in the order of their paths."""
        undone = self._undone
        earlier = sorted(((path, obj) for path, obj in undone.items() if obj is not None), key=itemgetter(0))
        at, end = 0, len(earlier)
        for path, obj in self._objects.items(*self._span):
            while at < end and earlier[at][0] < path:
                yield earlier[at][1]
                at += 1
            if path not in undone:
                yield obj
        for _, obj in earlier[at:]:
            yield obj
