"""The merge types of objects: structs with declared fields, maps with arbitrary keys, and values without a schema."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

from ctrlmgr.caches import BoundedCache
from ctrlmgr.caches.memoized import SecondHitFilter
from ctrlmgr.engine.managedfields.field_set import SELF, FieldSet, as_member
from ctrlmgr.engine.managedfields.merge_type import MODIFIED, SAME, Difference, Leaf, MergeType, collect
from ctrlmgr.engine.patch.go_value import plain
from ctrlmgr.schema.schema import MISSING

_returns = SecondHitFilter()


class Field(NamedTuple):
    """A declared field of a struct, with the field's merge type."""

    element: str
    merge_type: MergeType
    zero: Any
    """The value of the field if it is missing; MISSING if Go omits the empty field."""
    is_leaf: bool
    """Whether the field's merge type is a leaf, so that callers need not call the merge type's methods."""


_present: Final[BoundedCache[tuple[MergeType, tuple[str, ...]], Sequence[tuple[str, Field]]]] = BoundedCache(
    "managed-fields-present", entries=8192, size=4 * 1024 * 1024, largest=4096
)
"""The number of cached sets of field names for one struct; the objects of a kind usually have only a few different
sets.
"""


class _Object(MergeType):
    """The common part of structs and maps; a subclass determines the merge type of each name."""

    def _merge_type(self, name: str) -> MergeType | None:
        raise NotImplementedError

    def of(self, name: str) -> MergeType | None:
        """Return the merge type of a field or key; None if the name is not allowed."""
        return self._merge_type(name)

    def merge(self, old: Any, new: Any) -> Any:
        """Return the fields of two objects; fields that both objects have are merged."""
        if not old or not new:
            return old or new
        result = dict(old)
        for name, value in new.items():
            merge_type = self._merge_type(name) if name in old else None
            result[name] = value if merge_type is None else merge_type.merge(old[name], value)
        return result

    def remove(self, value: Any, fields: FieldSet) -> Any:
        """Return the fields that are not in the set, each without its paths that are in the set."""
        if not isinstance(value, dict):
            return None
        result = {}
        for name, each in value.items():
            node = fields.get(f"f:{name}")
            if node is None:
                result[name] = each
            elif node and SELF not in node:
                merge_type = self._merge_type(name)
                result[name] = each if merge_type is None else merge_type.remove(each, node)
        return result or None

    def reconciled(self, fields: FieldSet) -> FieldSet:
        """Return the set without paths below atomic fields of the object."""
        result = {}
        for element, node in fields.items():
            merge_type = self._merge_type(element[2:]) if node else None
            result[element] = node if merge_type is None else merge_type.reconciled(node)
        return result

    def check(self, value: Any, path: str) -> Iterator[str]:
        """Yield the type errors of the object's fields, up to the first undeclared field."""
        if value is None:
            return
        if not isinstance(value, dict):
            yield f"{path}: expected map, got &{{{plain(value)}}}"
            return
        for name, each in value.items():
            merge_type = self._merge_type(name)
            if merge_type is None:
                yield f"{path}.{name}: field not declared in schema"
                return
            yield from merge_type.check(each, f"{path}.{name}")


class Struct(_Object):
    """The merge type of an object with declared fields.

    The merge types of fields are created on first use, because structs may contain themselves.
    """

    def __init__(
        self, fields: Callable[[], Mapping[str, Field]], rest: MergeType | None = None, *, stays_empty: bool = False
    ) -> None:
        """Create the merge type of a struct.

        The function `fields` returns the fields by name; `rest` is the merge type of undeclared fields, or None if
        undeclared fields are not allowed. If `stays_empty` is set and the last field of the struct is removed, an empty
        object remains, as in Go.
        """
        self._make = fields
        self._rest = rest
        self._stays_empty = stays_empty

    @cached_property
    def fields(self) -> Mapping[str, Field]:
        """The fields of the struct, by name."""
        return self._make()

    @property
    def compared(self) -> Mapping[str, Field]:
        """The fields that are compared: all fields, except in a `Root`."""
        return self.fields

    @cached_property
    def _always(self) -> Mapping[str, Any]:
        """The fields that Go always writes, with their zero values."""
        return {name: field.zero for name, field in self.compared.items() if field.zero is not MISSING}

    def _merge_type(self, name: str) -> MergeType | None:
        field = self.fields.get(name)
        return self._rest if field is None else field.merge_type

    def _field(self, name: str) -> Field | None:
        """Return a compared field, whether it is declared or not; None if a field of this name is not compared."""
        field = self.compared.get(name)
        if field is not None or self._rest is None or name in self.fields:
            return field
        return Field(f"f:{name}", self._rest, MISSING, False)

    def _present(self, value: Mapping[str, Any]) -> Sequence[tuple[str, Field]]:
        """Return those compared fields that an object has, sorted by name."""
        names = tuple(value)
        present = _present.get((self, names))
        if present is None:
            present = [(name, field) for name in sorted(names) if (field := self._field(name)) is not None]
            if _returns(names):
                _present.put((self, names), present, sum(map(len, names)))
        return present

    def _is_empty(self, value: Any) -> bool:
        return not value and not self._always

    def remove(self, value: Any, fields: FieldSet) -> Any:
        """Return the fields that are not in the set, each without its paths that are in the set."""
        rest = super().remove(value, fields)
        return {} if rest is None and value and self._stays_empty else rest

    def whole(self, value: Any) -> FieldSet:
        """Return the field set node of the object and its fields, including fields that Go always writes."""
        if self._is_empty(value):
            return {}
        if self._always and not (value and self._always.keys() <= value.keys()):
            value = {**self._always, **(value or {})}
        result: FieldSet = {SELF: {}}
        for name, (element, merge_type, _, is_leaf) in self._present(value):
            result[element] = {} if is_leaf else merge_type.whole(value[name])
        return result

    def compare(self, old: Any, new: Any) -> Difference:
        """Compare the fields of two objects. A missing field that Go always writes counts as its zero value."""
        if self._is_empty(old) and self._is_empty(new):
            return SAME if old == new else MODIFIED
        added: FieldSet = {}
        modified: FieldSet = {}
        removed: FieldSet = {}
        old, new = old or {}, new or {}
        for name, (element, merge_type, zero, is_leaf) in self._present(new):
            before, value = old.get(name, zero), new[name]
            if before is MISSING:
                added[element] = {} if is_leaf else merge_type.whole(value)
            elif before is not value and before != value:
                collect(element, merge_type.compare(before, value), added, modified, removed)
        for name, value in old.items():
            if name not in new and (field := self._field(name)) is not None:
                element, merge_type, zero, _ = field
                if zero is MISSING:
                    removed[element] = merge_type.whole(value)
                elif value != zero:
                    collect(element, merge_type.compare(value, zero), added, modified, removed)
        return (added or None, modified or None, removed or None)

    def owned(self, value: Any) -> FieldSet | None:
        """Return the field set node of the owned fields; if a field is empty, the field itself is owned."""
        result = {}
        for name, each in (value or {}).items():
            field = self.fields.get(name)
            if field is None and self._rest is not None:
                result[f"f:{name}"] = as_member(self._rest.owned(each) or {})
            elif field is not None:
                element, merge_type, _, _ = field
                node = merge_type.owned(each)
                if each is None or (each == {} and isinstance(each, dict)):
                    node = as_member(node or {})
                if node is not None:
                    result[element] = node
        return result or None

    def named(self, fields: FieldSet) -> FieldSet:
        """Return the set; for each path in it, also add the declared fields on the way to this path."""
        result = {}
        for element, node in fields.items():
            field = self.fields.get(element[2:]) if node else None
            if field is not None:
                result[element] = as_member(field.merge_type.named(node))
            else:
                result[element] = node if self._rest is None or not node else self._rest.named(node)
        return result


class Map(_Object):
    """The merge type of an object with arbitrary keys, each of which is owned separately."""

    def __init__(self, values: MergeType | None = None) -> None:
        """Create a merge type for a map whose values have the merge type `values`.

        `Untyped` passes itself as the merge type of the values.
        """
        self.values = values

    def _merge_type(self, name: str) -> MergeType:
        assert self.values is not None  # a map without a merge type for its values is not used
        return self.values

    def whole(self, value: Any) -> FieldSet:
        """Return the field set node of the map and its values."""
        if not value:
            return {}
        values = self._merge_type("")
        if isinstance(values, Leaf):
            return {SELF: {}, **{f"f:{name}": {} for name in sorted(value)}}
        return {SELF: {}, **{f"f:{name}": values.whole(value[name]) for name in sorted(value)}}

    def compare(self, old: Any, new: Any) -> Difference:
        """Return the difference, comparing the values of each key."""
        if not old and not new:
            return SAME if old == new else MODIFIED
        added: FieldSet = {}
        modified: FieldSet = {}
        removed: FieldSet = {}
        old, new, values = old or {}, new or {}, self._merge_type("")
        for name in sorted(new):
            if name not in old:
                added[f"f:{name}"] = values.whole(new[name])
            elif old[name] != new[name]:
                collect(f"f:{name}", values.compare(old[name], new[name]), added, modified, removed)
        for name, value in old.items():
            if name not in new:
                removed[f"f:{name}"] = values.whole(value)
        return (added or None, modified or None, removed or None)

    def owned(self, value: Any) -> FieldSet | None:
        """Return the field set node of the keys, each with its own path and the owned fields in its value."""
        values = self._merge_type("")
        return {f"f:{name}": as_member(values.owned(each) or {}) for name, each in (value or {}).items()} or None

    def named(self, fields: FieldSet) -> FieldSet:
        """Return the set with the declared fields above paths in the values added.

        The keys of a map are not declared fields.
        """
        values = self._merge_type("")
        return {element: values.named(node) if node else node for element, node in fields.items()}


class Untyped(MergeType):
    """The merge type of a value without a schema (smd's deduced type).

    Untyped objects are maps of untyped values; all other untyped values are atomic.
    """

    def __init__(self) -> None:
        """Create the merge type of a map. The values of an untyped map are untyped, too."""
        self._map = Map(self)
        self._leaf = Leaf()

    def _of(self, *values: Any) -> MergeType:
        return self._map if any(isinstance(value, dict) for value in values) else self._leaf

    def whole(self, value: Any) -> FieldSet:
        """Return the field set node of the value, with its contents if it is an object."""
        return self._of(value).whole(value)

    def compare(self, old: Any, new: Any) -> Difference:
        """Return the difference, comparing objects by key, and other values as a whole."""
        if isinstance(old, dict) == isinstance(new, dict):
            return self._of(new).compare(old, new)
        # If only one of the values is an object, the value counts as modified, and the object's contents as added or
        # removed.
        after = self._map.compare({}, new)[0] if isinstance(new, dict) else None
        before = self._map.compare(old, {})[2] if isinstance(old, dict) else None
        return (after, {}, before)

    def owned(self, value: Any) -> FieldSet | None:
        """Return the owned fields of an object, or the field set node of the value itself."""
        return None if value is None else self._of(value).owned(value)

    def merge(self, old: Any, new: Any) -> Any:
        """Merge two objects; values of other types are replaced."""
        return self._map.merge(old, new) if isinstance(old, dict) and isinstance(new, dict) else new

    def remove(self, value: Any, fields: FieldSet) -> Any:
        """Return the object without the paths of the set."""
        return self._of(value).remove(value, fields)

    def named(self, fields: FieldSet) -> FieldSet:
        """Return the set unchanged, because an untyped object has no declared fields."""
        return self._map.named(fields)

    def check(self, value: Any, path: str) -> Iterator[str]:
        """Yield no errors, because the type has no invalid values."""
        return iter(())
