"""A store: the objects of one resource as of one revision, with indexes, readable from every thread.

Guarantees:
- **Whole events.** One thread writes (`apply`, `replace`); any thread may read meanwhile. A read sees the store
  between two events: an object, its namespace and every index entry change together. Two reads, or two stores,
  may see different moments.
- **Indexes equal the objects.** After every change each index is what building it afresh would give.
- **Frugal.** A stored object is its body and little else: `replace` drops the metadata that indexing decoded.

The lock is held for dictionary work only, a microsecond or so (a list: as long as picking its candidates);
decoding, filtering and sorting happen outside it. Objects are immutable, so handing them out copies nothing.
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
"""The values an object is found under; pure, because it is asked about the old object again when it changes."""

# `list` is a method's name here, so the types that need the built-in one are named.
Objects: TypeAlias = list[Object]
Pairs: TypeAlias = list[tuple[Key, Object]]

_first = itemgetter(0)
_NO_KEYS: set[Key] = set()


class _Index:
    """Which keys have a value. Invariant: `postings[v]` holds k iff v is a value of k's object; none is empty."""

    __slots__ = ("postings", "values")

    def __init__(self, values: Callable[[Object], Iterable[Hashable]]) -> None:
        self.values = values
        self.postings: dict[Hashable, set[Key]] = {}

    def difference(self, old: Object | None, new: Object | None) -> tuple[Collection[Hashable], Collection[Hashable]]:
        """Return the values only `old` has and those only `new` has; both may be absent."""
        if old is None:
            return (), tuple(self.values(new)) if new is not None else ()
        before = self.values(old)
        after = self.values(new) if new is not None else ()
        if before == after:  # what most changes leave as it is; two generators are never equal
            return (), ()
        was, is_now = set(before), set(after)
        return was - is_now, is_now - was

    def move(self, key: Key, gone: Iterable[Hashable], come: Iterable[Hashable]) -> None:
        """Take `key` out of some postings and put it into others."""
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
    """Which keys have a label, by (namespace, label, value)."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(_labels)

    def difference(self, old: Object | None, new: Object | None) -> tuple[Collection[Hashable], Collection[Hashable]]:
        """As above, with the short way out that most changes take: the labels stay."""
        if old is not None and new is not None and old.labels == new.labels:
            return (), ()
        return super().difference(old, new)


def _labels(obj: Object) -> Iterator[tuple[str, str, str]]:
    namespace = obj.namespace
    return ((namespace, key, value) for key, value in obj.labels.items())


def _load(indexes: Collection[_Index], objects: Iterable[Object]) -> dict[Key, Object]:
    """Key `objects`, in the order given, and put them into `indexes`; nothing decoded on the way stays."""
    loaded: dict[Key, Object] = {}
    for obj in objects:
        namespace, name = obj.key
        key = Key(intern(namespace), name)
        loaded[key] = obj
        for index in indexes:
            index.move(key, (), index.values(obj))
        obj.forget_decoded()  # per object, so that the memory is reused for the next one
    return loaded


class Lister:
    """The read side of a store; thread-safe. Every list is fresh, and sorted by key."""

    def __init__(self) -> None:
        """Start empty, with an index by namespace."""
        self._lock = threading.Lock()
        # All below changes under the lock, by one thread; that thread may read it without.
        self._objects: dict[Key, Object] = {}
        self._by_namespace = _Index(_namespace)
        self._by_label: _LabelIndex | None = None
        self._indexes: dict[str, _Index] = {}
        # Those above whose values can change while the key stays: all but the one by namespace.
        self._value_indexes: tuple[_Index, ...] = ()

    def get(self, key: Key) -> Object | None:
        """Return one object, None if there is none."""
        return self._objects.get(key)  # one dictionary look-up is atomic, and `replace` swaps the dictionary

    def list(self, namespace: str | None = None, labels: Mapping[str, str] | None = None) -> Objects:
        """Return the objects of one namespace (None: of all) that have all of `labels` (None or empty: any).

        With a label index the rarest label's keys are intersected with the others'; without, the namespace is
        filtered.
        """
        with self._lock:
            if labels and self._by_label is not None:
                found, labels = self._pick(self._labelled(self._by_label, namespace, labels)), None
            elif namespace is None:
                found = [*self._objects.items()]
            else:
                found = self._pick(self._by_namespace.postings.get(namespace, _NO_KEYS))
        if labels:
            wanted = labels.items()
            found = [pair for pair in found if wanted <= pair[1].labels.items()]
        return _sorted(found)

    def by_index(self, index: str, value: str) -> Objects:
        """Return the objects under `value` in an index added by that name; KeyError if there is no such index."""
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
    """The write side; its methods belong to one thread at a time."""

    def add_index(self, name: str, values: IndexFunction) -> None:
        """Index the objects, present and future, under the values that `values` gives each."""
        index = _Index(values)
        _load([index], self._objects.values())
        with self._lock:
            self._use(self._by_label, {**self._indexes, name: index})

    def add_label_index(self) -> None:
        """Have `list` find labels by an index over (namespace, label, value) instead of filtering."""
        index = _LabelIndex()
        _load([index], self._objects.values())
        with self._lock:
            self._use(index, self._indexes)

    def apply(self, key: Key, new: Object | None) -> Object | None:
        """Put `new` at `key`, or take out what is there when it is None; return what was there.

        An index function that raises leaves the store as it was.
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
        """Swap everything for `objects` at once; return what was there and what is, in the order given."""
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
        """Answer from these indexes, and keep them; the lock is held."""
        self._by_label, self._indexes = by_label, indexes
        self._value_indexes = (*_present(by_label), *indexes.values())


def _present(index: _Index | None) -> tuple[_Index, ...]:
    return () if index is None else (index,)
