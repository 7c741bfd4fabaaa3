"""A store contains the objects of one resource at one revision, with indexes; every thread can read it.

Guarantees:
- **Atomic events.** One thread writes (`apply`, `replace`), and any number of threads may read. A read sees the store
  between two events, because an object, its namespace and all its index entries change together. Two reads can return
  the states of different revisions; the same applies to reads of two stores.
- **Indexes are consistent.** After every change, each index equals an index that is built from the objects.
- **Little memory.** A stored object needs little more memory than its body, because `replace` frees the metadata that
  was decoded for the indexes.

The lock is held only for dictionary operations of about a microsecond; `list` holds the lock while it selects the
candidates. Decoding, filtering and sorting happen outside the lock. Objects are immutable and not copied.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from operator import itemgetter
from sys import intern
from typing import TypeAlias

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key

IndexFunction: TypeAlias = Callable[[Object], Iterable[str]]
"""A function that returns an object's index values. The function must be pure: when an object changes, the function is
called again with the old object, and must return the same values.
"""

# In this class, `list` is a method, so types that contain the built-in `list` have aliases.
Objects: TypeAlias = list[Object]
Pairs: TypeAlias = list[tuple[Key, Object]]

_first = itemgetter(0)
_NO_KEYS: set[Key] = set()


class _Index:
    """An index: for each index value, the keys of the objects with this value.

    Invariant: `postings[v]` contains the key k if and only if v is a value of k's object. No set of keys in `postings`
    is empty.
    """

    __slots__ = ("postings", "values")

    def __init__(self, values: Callable[[Object], Iterable[Hashable]]) -> None:
        self.values = values
        self.postings: dict[Hashable, set[Key]] = {}

    def difference(self, old: Object | None, new: Object | None) -> tuple[Collection[Hashable], Collection[Hashable]]:
        """Return the values that only `old` has, and the values that only `new` has; each object may be None."""
        if old is None:
            return (), tuple(self.values(new)) if new is not None else ()
        before = self.values(old)
        after = self.values(new) if new is not None else ()
        if before == after:  # The values are equal for most changes; two generators would never be equal.
            return (), ()
        was, is_now = set(before), set(after)
        return was - is_now, is_now - was

    def move(self, key: Key, gone: Iterable[Hashable], come: Iterable[Hashable]) -> None:
        """Remove `key` from the entries of the values `gone`, and add `key` to the entries of the values `come`."""
        postings = self.postings
        for value in gone:
            keys = postings[value]
            keys.discard(key)
            if not keys:
                del postings[value]
        for value in come:
            there = postings.get(value)
            if there is None:
                postings[value] = {key}
            else:
                there.add(key)


def _namespace(obj: Object) -> tuple[str]:
    return (intern(obj.namespace),)


class _LabelIndex(_Index):
    """An index: for each (namespace, label, value), the keys of the objects with this label."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(_labels)

    def difference(self, old: Object | None, new: Object | None) -> tuple[Collection[Hashable], Collection[Hashable]]:
        """Return the difference of the labels; if the labels are equal, as in most changes, the difference is empty."""
        if old is not None and new is not None and old.labels == new.labels:
            return (), ()
        return super().difference(old, new)


def _labels(obj: Object) -> Iterator[tuple[str, str, str]]:
    namespace = obj.namespace
    return ((namespace, key, value) for key, value in obj.labels.items())


def _load(indexes: Collection[_Index], objects: Iterable[Object]) -> dict[Key, Object]:
    """Return `objects` by key, in the given order, and add them to `indexes`; free their decoded metadata."""
    loaded: dict[Key, Object] = {}
    for obj in objects:
        namespace, name = obj.key
        key = Key(intern(namespace), name)
        loaded[key] = obj
        for index in indexes:
            index.move(key, (), index.values(obj))
        # The metadata of each object is freed at once, so that its memory is reused for the next object.
        obj.forget_decoded()
    return loaded


class Lister:
    """The read side of a store, which finds and lists objects; thread-safe.

    Every returned list is new and sorted by key.
    """

    def __init__(self) -> None:
        """Start an empty store with an index by namespace."""
        self._lock = threading.Lock()
        # The attributes below are changed under the lock on one thread; this thread may read them without the lock.
        self._objects: dict[Key, Object] = {}
        self._by_namespace = _Index(_namespace)
        self._by_label: _LabelIndex | None = None
        self._indexes: dict[str, _Index] = {}
        # All indexes except the index by namespace; only in these indexes can the values of a key change.
        self._value_indexes: tuple[_Index, ...] = ()

    def get(self, key: Key) -> Object | None:
        """Return the object with this key, or None if the object does not exist."""
        # The read is atomic: it is one dictionary look-up, and `replace` replaces the dictionary.
        return self._objects.get(key)

    def list(self, namespace: str | None = None, labels: Mapping[str, str] | None = None) -> Objects:
        """Return the objects of a namespace that have all of `labels`.

        A namespace of None means all namespaces, and no labels mean all objects.

        If the store has a label index, the keys of all labels are intersected, beginning with the rarest label. If the
        store has no label index, the objects of the namespace are filtered.
        """
        with self._lock:
            if labels and self._by_label is not None:
                found, labels = self._pick(self._labelled(self._by_label, namespace, labels)), None
            elif namespace is None:
                found = [*self._objects.items()]
            else:
                found = self._pick(self._by_namespace.postings.get(namespace, _NO_KEYS))
        if labels:
            required = labels.items()
            found = [pair for pair in found if required <= pair[1].labels.items()]
        return _sorted(found)

    def by_index(self, index: str, value: str) -> Objects:
        """Return the objects with `value` in an index; raises KeyError if the store has no such index."""
        with self._lock:
            found = self._pick(self._indexes[index].postings.get(value, _NO_KEYS))
        return _sorted(found)

    def __len__(self) -> int:
        return len(self._objects)

    def _pick(self, keys: Iterable[Key]) -> Pairs:
        objects = self._objects
        return [(key, objects[key]) for key in keys]

    def _labelled(self, index: _Index, namespace: str | None, labels: Mapping[str, str]) -> Iterator[Key]:
        for space in self._by_namespace.postings if namespace is None else (namespace,):
            postings = [index.postings.get((space, key, value), _NO_KEYS) for key, value in labels.items()]
            yield from set.intersection(*sorted(postings, key=len))


def _sorted(pairs: Pairs) -> Objects:
    pairs.sort(key=_first)
    return [obj for _, obj in pairs]


class Store(Lister):
    """The write side of a store, which changes the objects. Only one thread at a time may call its methods."""

    def add_index(self, name: str, values: IndexFunction) -> None:
        """Add an index by the values that `values` returns; existing and later objects are indexed."""
        index = _Index(values)
        _load([index], self._objects.values())
        with self._lock:
            self._use(self._by_label, {**self._indexes, name: index})

    def add_label_index(self) -> None:
        """Add an index by (namespace, label, value), which `list` uses instead of filtering."""
        index = _LabelIndex()
        _load([index], self._objects.values())
        with self._lock:
            self._use(index, self._indexes)

    def apply(self, key: Key, new: Object | None) -> Object | None:
        """Store `new` at `key`, or remove the object if `new` is None; return the previous object.

        If an index function raises, the store does not change.
        """
        old = self._objects.get(key)
        moves = [(index, *index.difference(old, new)) for index in self._value_indexes]
        with self._lock:
            if new is not None:
                if old is None:
                    key = Key(intern(key.namespace), key.name)
                    self._by_namespace.move(key, (), (key.namespace,))
                self._objects[key] = new
            elif old is not None:
                del self._objects[key]
                self._by_namespace.move(key, (key.namespace,), ())
            for index, gone, come in moves:
                if gone or come:
                    index.move(key, gone, come)
        return old

    def replace(self, objects: Iterable[Object]) -> tuple[Mapping[Key, Object], Mapping[Key, Object]]:
        """Replace all objects in the store.

        Return the previous objects and the new objects by key, the new objects in the given order.
        """
        by_namespace = _Index(_namespace)
        by_label = _LabelIndex() if self._by_label else None
        indexes = {name: _Index(index.values) for name, index in self._indexes.items()}
        after = _load([by_namespace, *_present(by_label), *indexes.values()], objects)
        with self._lock:
            before, self._objects = self._objects, after
            self._by_namespace = by_namespace
            self._use(by_label, indexes)
        return before, after

    def _use(self, by_label: _LabelIndex | None, indexes: dict[str, _Index]) -> None:
        """Replace the label index and the other indexes by the given ones; the caller must hold the lock."""
        self._by_label, self._indexes = by_label, indexes
        self._value_indexes = (*_present(by_label), *indexes.values())


def _present(index: _Index | None) -> tuple[_Index, ...]:
    return () if index is None else (index,)
