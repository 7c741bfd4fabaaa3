"""The schema as field management uses it: each schema node has a `MergeType` that owns, merges and removes values.

Guarantees: a merge type is created once and shared. The methods of a merge type do not change their arguments, and
results share structure with the arguments. The values that a merge type handles are decoded JSON. A field that Go
always writes (a struct, a number without `omitempty`) counts as present even if it is missing, because live objects in
Kubernetes are Go structs.

This module contains the protocol and the merge types of leaves, which are scalars, and atomic objects and lists. The
module `map_merge_types` contains the merge types of objects and maps, `list_merge_types` contains those of lists, and
`merge_type_of` creates the merge type of a schema. Source: structured-merge-diff `typed/*.go`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from ctrlmgr.engine.managedfields.field_set import FieldSet
from ctrlmgr.engine.patch.go_value import plain

Difference: TypeAlias = "tuple[FieldSet | None, FieldSet | None, FieldSet | None]"
"""A difference: the fields that were added, modified and removed at a schema node and below it.

Each attribute of a difference is a node of a `FieldSet`, or None if there are no such fields.
"""

SAME: Final[Difference] = (None, None, None)
MODIFIED: Final[Difference] = (None, {}, None)


def collect(element: str, difference: Difference, added: FieldSet, modified: FieldSet, removed: FieldSet) -> None:
    """Add the difference of an element to the difference of its parent."""
    more, other, less = difference
    if more is not None:
        added[element] = more
    if other is not None:
        modified[element] = other
    if less is not None:
        removed[element] = less


class MergeTypeError(ValueError):
    """Raised if the items of a list have no valid keys."""


class MergeType(ABC):
    """A schema node, in the form that field management uses."""

    @abstractmethod
    def whole(self, value: Any) -> FieldSet:
        """Return the field set node for a value that only one of two objects has: the value and its content, sorted."""

    @abstractmethod
    def compare(self, old: Any, new: Any) -> Difference:
        """Return the difference from `old` to `new`, with sorted fields.

        Raises MergeTypeError if list items have no valid keys.
        """

    @abstractmethod
    def owned(self, value: Any) -> FieldSet | None:
        """Return the field set node that the applier of a value owns, None if it owns nothing.

        Raises MergeTypeError if list items have no valid keys.
        """

    @abstractmethod
    def merge(self, old: Any, new: Any) -> Any:
        """Return `old` merged with `new`; raises MergeTypeError if list items have no valid keys."""

    @abstractmethod
    def remove(self, value: Any, fields: FieldSet) -> Any:
        """Return a value without the paths of a set and without all paths below them; None if nothing is left."""

    @abstractmethod
    def check(self, value: Any, path: str) -> Iterator[str]:
        """Yield the type errors of an applied value, with Kubernetes' messages; `path` is the value's path."""

    def named(self, fields: FieldSet) -> FieldSet:
        """Return the set with the declared fields on the way to each path (smd's EnsureNamedFieldsAreMembers)."""
        return fields

    def reconciled(self, fields: FieldSet) -> FieldSet:
        """Return the set without paths below atomic fields (smd's ReconcileFieldSetWithSchema)."""
        return fields


class Leaf(MergeType):
    """The merge type of an atomic value, which a manager owns as a whole."""

    def whole(self, value: Any) -> FieldSet:
        """Return the field set node of the value itself."""
        return {}

    def compare(self, old: Any, new: Any) -> Difference:
        """Return whether the value was modified."""
        return SAME if old == new else MODIFIED

    def owned(self, value: Any) -> FieldSet | None:
        """Return the field set node of the value itself, even if the value is null."""
        return {}

    def merge(self, old: Any, new: Any) -> Any:
        """Return the new value, because an atomic value is replaced as a whole."""
        return new

    def remove(self, value: Any, fields: FieldSet) -> Any:
        """Return the value itself if it is a scalar.

        The result is None for an object or a list, because in that case the set contains paths inside the value.
        """
        return None if isinstance(value, dict | list) else value

    def reconciled(self, fields: FieldSet) -> FieldSet:
        """Return the field set node of the value itself, because paths below an atomic value are not distinguished."""
        return {}

    def check(self, value: Any, path: str) -> Iterator[str]:
        """Yield no errors, because the type has no invalid values."""
        return iter(())


class Scalar(Leaf):
    """The merge type of a string, a number, a boolean, or a value of any of these types."""

    def __init__(self, kind: str) -> None:
        """Create a merge type that accepts values of one kind: `string`, `numeric`, `boolean` or `untyped`."""
        self._kind = kind
        self._types = _SCALARS[kind]

    def reconciled(self, fields: FieldSet) -> FieldSet:
        """Return the set unchanged, because scalars have no children."""
        return fields

    def check(self, value: Any, path: str) -> Iterator[str]:
        """Yield an error if the scalar has the wrong type."""
        if type(value) not in self._types:
            shown = _go_type(value) if self._kind == "numeric" else _value(value)
            yield f"{path}: {_EXPECTED[self._kind].format(shown)}"


class Atomic(Leaf):
    """The merge type of an atomic object or map, whose fields are validated nevertheless."""

    def __init__(self, inner: MergeType) -> None:
        """Create a merge type that validates values with `inner`, the merge type of the object without `atomic`."""
        self._inner = inner

    def check(self, value: Any, path: str) -> Iterator[str]:
        """Yield the errors of the object's fields."""
        return self._inner.check(value, path)


class AtomicList(Leaf):
    """The merge type of an atomic list."""

    def __init__(self, items: MergeType) -> None:
        """Create a merge type for a list whose items have the merge type `items`."""
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
    """Format a value as Go prints structured-merge-diff's wrapper of the value."""
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
