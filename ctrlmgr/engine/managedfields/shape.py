"""The schema in the form that field management uses: each node has a `Shape`, which owns, merges and removes values.

Guarantees: a shape is created once and shared. The methods of a shape do not change their arguments, and results share
structure with the arguments. Values are decoded JSON. A field that Go always writes (a struct, a number without
`omitempty`) counts as present even if it is missing, because live objects in Kubernetes are Go structs.

This module contains the protocol and the shapes of leaves: scalars, and atomic objects and lists. `shape_map` contains
those of objects and maps, `shape_list` those of lists, and `shape_of` creates the shape of a schema. Source:
structured-merge-diff `typed/*.go`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from ctrlmgr.engine.managedfields.field_set import FieldSet
from ctrlmgr.engine.patch.go_value import plain

Difference: TypeAlias = "tuple[FieldSet | None, FieldSet | None, FieldSet | None]"
"""The fields added, modified and removed at a node and below it.

Each attribute is a node of a `FieldSet`, or None if it has no fields.
"""

SAME: Final[Difference] = (None, None, None)
MODIFIED: Final[Difference] = (None, {}, None)


def collect(element: str, difference: Difference, added: FieldSet, modified: FieldSet, removed: FieldSet) -> None:
    """Add the difference of an element to the differences of its parent."""
    more, other, less = difference
    if more is not None:
        added[element] = more
    if other is not None:
        modified[element] = other
    if less is not None:
        removed[element] = less


class ShapeError(ValueError):
    """Raised if the items of a list have no valid keys."""


class Shape(ABC):
    """A node of a schema, in the form that field management uses."""

    @abstractmethod
    def whole(self, value: Any) -> FieldSet:
        """Return the field set node for a value that only one of two objects has: the value and its content, sorted."""

    @abstractmethod
    def compare(self, old: Any, new: Any) -> Difference:
        """Return the difference from `old` to `new`; added and modified fields are sorted. Raises ShapeError."""

    @abstractmethod
    def owned(self, value: Any) -> FieldSet | None:
        """Return the field set node that the applier of a value owns, None if it owns nothing; raises ShapeError."""

    @abstractmethod
    def merge(self, old: Any, new: Any) -> Any:
        """Return `old` merged with `new`; raises ShapeError."""

    @abstractmethod
    def remove(self, value: Any, fields: FieldSet) -> Any:
        """Return a value without the paths of a set and all paths below these; None if nothing is left."""

    @abstractmethod
    def check(self, value: Any, path: str) -> Iterator[str]:
        """Yield the type errors of an applied value, in Kubernetes' words; `path` is the value's path."""

    def named(self, fields: FieldSet) -> FieldSet:
        """Return the set with the declared fields above its paths added (smd's EnsureNamedFieldsAreMembers)."""
        return fields

    def reconciled(self, fields: FieldSet) -> FieldSet:
        """Return the set without paths below atomic fields (smd's ReconcileFieldSetWithSchema)."""
        return fields


class Leaf(Shape):
    """An atomic value, owned as a whole."""

    def whole(self, value: Any) -> FieldSet:
        """Return the value's own node."""
        return {}

    def compare(self, old: Any, new: Any) -> Difference:
        """Return whether the value was modified."""
        return SAME if old == new else MODIFIED

    def owned(self, value: Any) -> FieldSet | None:
        """Return the value's own node, also for null."""
        return {}

    def merge(self, old: Any, new: Any) -> Any:
        """Return the new value."""
        return new

    def remove(self, value: Any, fields: FieldSet) -> Any:
        """Return the value; None if it is an object or a list, because then the set contains paths in it."""
        return None if isinstance(value, dict | list) else value

    def reconciled(self, fields: FieldSet) -> FieldSet:
        """Return the value's own node, because paths below it are not distinguished any more."""
        return {}

    def check(self, value: Any, path: str) -> Iterator[str]:
        """Yield no errors."""
        return iter(())


class Scalar(Leaf):
    """The shape of a string, a number, a boolean, or any of these."""

    def __init__(self, kind: str) -> None:
        """Create a shape that accepts values of one kind: `string`, `numeric`, `boolean` or `untyped`."""
        self._kind = kind
        self._types = _SCALARS[kind]

    def reconciled(self, fields: FieldSet) -> FieldSet:
        """Return the set unchanged, because scalars have no children."""
        return fields

    def check(self, value: Any, path: str) -> Iterator[str]:
        """Yield an error if the value has the wrong type."""
        if type(value) not in self._types:
            shown = _go_type(value) if self._kind == "numeric" else _value(value)
            yield f"{path}: {_EXPECTED[self._kind].format(shown)}"


class Atomic(Leaf):
    """The shape of an atomic object or map, whose fields are validated nevertheless."""

    def __init__(self, inner: Shape) -> None:
        """Create a shape that validates values with `inner`, the shape of a value that is not atomic."""
        self._inner = inner

    def check(self, value: Any, path: str) -> Iterator[str]:
        """Yield the errors of the object's fields."""
        return self._inner.check(value, path)


class AtomicList(Leaf):
    """The shape of an atomic list."""

    def __init__(self, items: Shape) -> None:
        """Use `items` as the shape of the items."""
        self._items = items

    def check(self, value: Any, path: str) -> Iterator[str]:
        """Yield the errors of the list's items."""
        if value is None:
            return
        if not isinstance(value, list):
            yield f"{path}: expected list, got {_value(value)}"
            return
        for index, each in enumerate(value):
            yield from self._items.check(each, f"{path}[{index}]")


def _value(value: Any) -> str:
    """Return a value as Go prints structured-merge-diff's wrapper of it."""
    return f"&{{{plain(value)}}}"


def _go_type(value: Any) -> str:
    """Return Go's name for the type of a decoded value that is not a number."""
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
