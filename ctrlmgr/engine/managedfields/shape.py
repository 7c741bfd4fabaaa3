"""What field management sees of a schema: a `Shape` a node, which says what of a value is owned, merged and removed.

Guarantees: a shape is made once and shared; its methods change nothing they are given, and what they return shares
structure with it. Values are decoded JSON; a field that Go always writes (a struct, a number without `omitempty`)
counts as there when it is not, as in Kubernetes, where live objects are Go's structs.

This file holds the protocol and the leaves: scalars, and objects and lists that are owned as a whole. Objects and maps
are in `shape_map`, lists in `shape_list`, and `shape_of` makes the shape of a schema.
Source: structured-merge-diff `typed/*.go`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from ctrlmgr.engine.managedfields.field_set import FieldSet
from ctrlmgr.engine.patch.go_value import plain

Difference: TypeAlias = "tuple[FieldSet | None, FieldSet | None, FieldSet | None]"
"""What was added, modified and removed at a node and below it, each as a node of a `FieldSet` or None for nothing."""

SAME: Final[Difference] = (None, None, None)
MODIFIED: Final[Difference] = (None, {}, None)


def collect(element: str, difference: Difference, added: FieldSet, modified: FieldSet, removed: FieldSet) -> None:
    """Put how an element differs into what differs of what it is in."""
    more, other, less = difference
    if more is not None:
        added[element] = more
    if other is not None:
        modified[element] = other
    if less is not None:
        removed[element] = less


class ShapeError(ValueError):
    """A value that cannot be of its shape: its list's items cannot be told apart."""


class Shape(ABC):
    """A node of a schema, for field management."""

    @abstractmethod
    def whole(self, value: Any) -> FieldSet:
        """Return the node of a value that is on one side of a comparison only: itself and all in it, in order."""

    @abstractmethod
    def compare(self, old: Any, new: Any) -> Difference:
        """Return how `new` differs from `old`, what was added and what modified in order; raises ShapeError."""

    @abstractmethod
    def owned(self, value: Any) -> FieldSet | None:
        """Return the node that the applier of a value owns, None for nothing; raises ShapeError."""

    @abstractmethod
    def merge(self, old: Any, new: Any) -> Any:
        """Return `old` with what `new` says laid over it; raises ShapeError."""

    @abstractmethod
    def remove(self, value: Any, fields: FieldSet) -> Any:
        """Return a value without the paths of a set (and what is below them), None if nothing is left."""

    @abstractmethod
    def check(self, value: Any, path: str) -> Iterator[str]:
        """Yield what is wrong with a value that was applied, in Kubernetes' words; `path` is how it was reached."""

    def named(self, fields: FieldSet) -> FieldSet:
        """Return a set with the declared fields that lead to its paths added (smd's EnsureNamedFieldsAreMembers)."""
        return fields

    def reconciled(self, fields: FieldSet) -> FieldSet:
        """Return a set in which nothing is below what is owned as a whole (smd's ReconcileFieldSetWithSchema)."""
        return fields


class Leaf(Shape):
    """What is owned as a whole."""

    def whole(self, value: Any) -> FieldSet:
        """Return the value alone."""
        return {}

    def compare(self, old: Any, new: Any) -> Difference:
        """Return whether it was modified."""
        return SAME if old == new else MODIFIED

    def owned(self, value: Any) -> FieldSet | None:
        """Return the value alone, null too."""
        return {}

    def merge(self, old: Any, new: Any) -> Any:
        """Return the new value."""
        return new

    def remove(self, value: Any, fields: FieldSet) -> Any:
        """Return the value; an object or a list that a set reaches into is gone."""
        return None if isinstance(value, dict | list) else value

    def reconciled(self, fields: FieldSet) -> FieldSet:
        """Return the value alone: what was below it is not told apart any more."""
        return {}

    def check(self, value: Any, path: str) -> Iterator[str]:
        """Find nothing wrong."""
        return iter(())


class Scalar(Leaf):
    """A string, a number, a boolean, or any of them."""

    def __init__(self, kind: str) -> None:
        """Take what it must be: `string`, `numeric`, `boolean` or `untyped`."""
        self._kind = kind
        self._types = _SCALARS[kind]

    def reconciled(self, fields: FieldSet) -> FieldSet:
        """Return the set: nothing is below a scalar."""
        return fields

    def check(self, value: Any, path: str) -> Iterator[str]:
        """Yield what is wrong with its type."""
        if type(value) not in self._types:
            shown = _go_type(value) if self._kind == "numeric" else _value(value)
            yield f"{path}: {_EXPECTED[self._kind].format(shown)}"


class Atomic(Leaf):
    """An object or a map that is owned as a whole; what is in it is checked all the same."""

    def __init__(self, inner: Shape) -> None:
        """Take the shape it would have if it were not atomic."""
        self._inner = inner

    def check(self, value: Any, path: str) -> Iterator[str]:
        """Yield what is wrong with what is in it."""
        return self._inner.check(value, path)


class AtomicList(Leaf):
    """A list that is owned as a whole."""

    def __init__(self, items: Shape) -> None:
        """Take the shape of its items."""
        self._items = items

    def check(self, value: Any, path: str) -> Iterator[str]:
        """Yield what is wrong with its items."""
        if value is None:
            return
        if not isinstance(value, list):
            yield f"{path}: expected list, got {_value(value)}"
            return
        for index, each in enumerate(value):
            yield from self._items.check(each, f"{path}[{index}]")


def _value(value: Any) -> str:
    """Write a value as Go prints structured-merge-diff's wrapper of one."""
    return f"&{{{plain(value)}}}"


def _go_type(value: Any) -> str:
    """Return what Go calls the type of a decoded value that is no number."""
    named = {dict: "map[string]interface {}", list: "[]interface {}", str: "string", bool: "bool"}
    return named.get(type(value), "<nil>")


_SCALARS: dict[str, tuple[type, ...]] = {
    "string": (str, type(None)),
    "numeric": (int, float, type(None)),
    "boolean": (bool, type(None)),
    "untyped": (str, int, float, bool, type(None)),
}
_EXPECTED = {
    "string": "expected string, got {}",
    "numeric": "expected numeric (int or float), got {}",
    "boolean": "expected boolean, got {}",
    "untyped": "expected any scalar, got {}",
}
