"""The merge types of lists whose items are owned separately: these are lists with keys, and sets."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ctrlmgr.engine.managedfields import path_element
from ctrlmgr.engine.managedfields.field_set import SELF, FieldSet, as_member, is_member, sort_elements
from ctrlmgr.engine.managedfields.merge_type import MODIFIED, SAME, Difference, MergeType, MergeTypeError, collect
from ctrlmgr.engine.patch.go_value import plain
from ctrlmgr.schema.schema import MISSING


class ItemList(MergeType):
    """The merge type of a list whose items are identified by their content, not by their position."""

    def __init__(self, items: MergeType) -> None:
        """Create a merge type for a list whose items have the merge type `items`."""
        self.items = items

    @abstractmethod
    def element(self, item: Any) -> str:
        """Return the path element of an item; raises MergeTypeError if the item has no valid keys."""

    def _index(self, items: Any) -> dict[str, list[Any]]:
        """Return the items of a list by their path elements.

        Duplicate elements are possible only in lists that were not merged.
        """
        index: dict[str, list[Any]] = {}
        for item in items or ():
            index.setdefault(self.element(item), []).append(item)
        return index

    def whole(self, value: Any) -> FieldSet:
        """Return the field set node of the list and its items."""
        if not value:
            return {}
        if len(value) == 1:
            return {SELF: {}, self.element(value[0]): self.items.whole(value[0])}
        index = self._index(value)
        return {SELF: {}, **{element: self._node(index[element]) for element in sort_elements(index)}}

    def _node(self, items: Sequence[Any]) -> FieldSet:
        return self.items.whole(items[0]) if len(items) == 1 else {}

    def compare(self, old: Any, new: Any) -> Difference:
        """Return the difference, comparing items with the same path element; the order of items does not matter."""
        if not old and not new:
            return SAME if old == new else MODIFIED
        added: FieldSet = {}
        modified: FieldSet = {}
        removed: FieldSet = {}
        before, after = self._index(old), self._index(new)
        for element in sort_elements({**before, **after}):
            difference = self._compare_items(before.get(element, []), after.get(element, []))
            collect(element, difference, added, modified, removed)
        return (added or None, modified or None, removed or None)

    def _compare_items(self, old: list[Any], new: list[Any]) -> Difference:
        if old == new:
            return SAME
        if len(old) == 1 and len(new) == 1:
            return self.items.compare(old[0], new[0])
        if len(old) > 1 and len(new) > 1:
            return MODIFIED
        return (self._node(new) if new else None, None, self._node(old) if old else None)

    def owned(self, value: Any) -> FieldSet | None:
        """Return the field set node of the owned items, each with its own path and the owned fields in it."""
        index = self._index(value)
        owned = {each: self.items.owned(items[0]) if len(items) == 1 else None for each, items in index.items()}
        return {element: as_member(node or {}) for element, node in owned.items()} or None

    def merge(self, old: Any, new: Any) -> Any:
        """Merge the items of two lists.

        The order respects both lists if possible, otherwise the order is that of `new`.
        """
        if not old or not new:
            return old or new
        return _Merge(self, old, new).run()

    def remove(self, value: Any, fields: FieldSet) -> Any:
        """Return the items of the list that are not in the set, each without its fields that are in the set."""
        if not isinstance(value, list):
            return None
        result = []
        for item in value:
            node = fields.get(self.element(item))
            if node is None:
                result.append(item)
            elif not is_member(node):
                result.append(self.items.remove(item, node))
        return result or None

    def named(self, fields: FieldSet) -> FieldSet:
        """Return the set; for each path in an item, also add the declared fields on the way to this path."""
        return {each: self.items.named(node) if each[0] == "k" and node else node for each, node in fields.items()}

    def reconciled(self, fields: FieldSet) -> FieldSet:
        """Return the set without paths below atomic fields of the items."""
        return {element: self.items.reconciled(node) if node else node for element, node in fields.items()}

    def check(self, value: Any, path: str) -> Iterator[str]:
        """Yield the type errors of the items, and an error for each duplicate item."""
        if value is None:
            return
        if not isinstance(value, list):
            yield f"{path}: expected list, got &{{{plain(value)}}}"
            return
        seen = set()
        for index, item in enumerate(value):
            try:
                element = self.element(item)
            except MergeTypeError as reason:
                yield f"{path}: element {index}: {reason}"
                return
            if element in seen:
                yield f"{path}: duplicate entries for key {path_element.text(element)}"
            seen.add(element)
            for problem in self.items.check(item, ""):
                yield f"{path}{path_element.text(element)}{problem}"


class KeyedList(ItemList):
    """The merge type of a list of objects with keys: `x-kubernetes-list-type: map`."""

    def __init__(self, items: MergeType, keys: Mapping[str, Any]) -> None:
        """Create a merge type for a list whose items have the merge type `items`.

        `keys` maps each key to its default, or to MISSING.
        """
        super().__init__(items)
        self._names = tuple(keys)
        self._only = (self._names[0], f'k:{{{path_element.go_json(self._names[0])}:"') if len(keys) == 1 else None
        self._keys = tuple((name, f"{path_element.go_json(name)}:", keys[name]) for name in sorted(keys))

    def element(self, item: Any) -> str:
        """Return the path element `k:{...}` with the keys of the item, including defaults."""
        if self._only is not None and isinstance(item, dict):
            name, start = self._only
            value = item.get(name)
            if type(value) is str and path_element.is_plain(value):
                return f'{start}{value}"}}'
        if not isinstance(item, dict):
            what = "a null element" if item is None else "non-map elements"
            raise MergeTypeError(f"associative list with keys may not have {what}")
        pairs = []
        for name, prefix, default in self._keys:
            value = item.get(name, default)
            if value is not MISSING:
                pairs.append(prefix + path_element.go_json(value))
        if not pairs:
            names = " ".join(map(path_element.go_json, self._names))
            raise MergeTypeError(
                f"associative list with keys has an element that omits all key fields [{names}] "
                "(and doesn't have default values for any key fields)"
            )
        return f"k:{{{','.join(pairs)}}}"


class SetList(ItemList):
    """The merge type of a list of unique scalars: `x-kubernetes-list-type: set`."""

    def element(self, item: Any) -> str:
        """Return the path element `v:...`, which contains the item itself."""
        if isinstance(item, dict):
            raise MergeTypeError("associative list without keys has an element that's a map type")
        if isinstance(item, list):
            raise MergeTypeError("not supported: associative list with lists as elements")
        if item is None:
            raise MergeTypeError("associative list without keys has an element that's an explicit null")
        return path_element.item(item)


class _Merge:
    """Merges two lists once, and holds the state of this merge (smd's `mergingWalker.visitListItems`)."""

    def __init__(self, merge_type: ItemList, old: list[Any], new: list[Any]) -> None:
        self._merge_type = merge_type
        self._old = [(merge_type.element(item), item) for item in old]
        self._new = [(merge_type.element(item), item) for item in new]
        self._index = merge_type._index(old)
        self._remaining = dict(self._new)
        self._shared = deque(element for element, _ in self._new if element in self._index)
        self._merged: set[str] = set()
        self._result: list[Any] = []

    def run(self) -> list[Any]:
        """Emit old items that are not in `new` immediately, and emit the other items when they are next in `new`."""
        old, new = 0, 0
        while old < len(self._old) or new < len(self._new):
            if old < len(self._old):
                element, item = self._old[old]
                if element not in self._remaining:
                    self._result.append(item)
                    old += 1
                    continue
                if element != (self._new[new][0] if new < len(self._new) else None):
                    if self._shared and self._shared[0] != element:
                        # The item is emitted at its position in `new`, or has already been emitted.
                        old += 1
                        continue
                    old += element in self._merged
                else:
                    old += 1
            if new < len(self._new):
                self._take(*self._new[new])
                new += 1
        return self._result

    def _take(self, element: str, item: Any) -> None:
        self._merged.add(element)
        if self._shared and self._shared[0] == element:
            self._shared.popleft()
        before = self._index.get(element, [])
        # An item with duplicates in the old list is replaced, not merged.
        self._result.append(self._merge_type.items.merge(before[0], item) if len(before) == 1 else item)
