"""Correlates a new value with an old value: finds corresponding parts, and determines which parts are unchanged.

Guarantees: equality is computed once for each part. Fields with the same name correspond to each other if a schema
declares the field. List items with the same keys correspond to each other in lists of type map; items of other lists
never correspond.

Source: apiserver `pkg/cel/common/equality.go`; KEP-4008.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import cached_property
from typing import Any

from ctrlmgr.extensions.schema_validation.go_json_values import identity, same
from ctrlmgr.extensions.schema_validation.schema_node import Node


class Correlation:
    """A new value, the old value that it replaces, and the schema of both."""

    def __init__(self, node: Node, new: Any, old: Any) -> None:
        """Create a correlation of a new value with an old value."""
        self._node = node
        self._new = new
        self._old = old
        self._children: dict[str | int, Correlation | None] = {}

    def key(self, name: str) -> Correlation | None:
        """Return the correlation of a field; None if the old value lacks the field, or no schema declares it."""
        if name not in self._children:
            self._children[name] = self._key(name)
        return self._children[name]

    def _key(self, name: str) -> Correlation | None:
        if type(self._old) is not dict or type(self._new) is not dict or name not in self._old or name not in self._new:
            return None
        node = self._node.properties.get(name) or self._node.additional
        return None if node is None else Correlation(node, self._new[name], self._old[name])

    def index(self, at: int) -> Correlation | None:
        """Return the correlation of an item of a list.

        The result is None if the list is not a map, or if the old list has no item with the same key.
        """
        if at not in self._children:
            self._children[at] = self._index(at)
        return self._children[at]

    def _index(self, at: int) -> Correlation | None:
        if self._node.list_type != "map" or self._node.items is None:
            return None
        old = self._old_by_key.get(self._key_of(self._new[at]))
        return None if old is None else Correlation(self._node.items, self._new[at], old)

    @cached_property
    def _old_by_key(self) -> Mapping[Hashable, Any]:
        if type(self._old) is not list:
            return {}
        return {self._key_of(each): each for each in reversed(self._old) if type(each) is dict}

    def _key_of(self, item: Any) -> Hashable:
        if type(item) is not dict:
            return None
        return tuple(identity(item[key]) if key in item else None for key in self._node.list_map_keys)

    @cached_property
    def is_unchanged(self) -> bool:
        """Return whether the new value equals the old value; parts that no schema describes are ignored."""
        new, old = self._new, self._old
        if type(new) is dict and type(old) is dict:
            return len(new) == len(old) and all(_is_unchanged(self.key(name)) for name in new)
        if type(new) is list and type(old) is list:
            return len(new) == len(old) and self._items_unchanged(new, old)
        return same(new, old)

    def _items_unchanged(self, new: list[Any], old: list[Any]) -> bool:
        if self._node.list_type != "map" or self._node.items is None:
            return same(new, old)
        return all(_is_unchanged(self.index(at)) for at in range(len(new)))


def _is_unchanged(correlation: Correlation | None) -> bool:
    return correlation is not None and correlation.is_unchanged
