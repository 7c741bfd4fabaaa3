"""Compares two states of an object, and matches the items of lists; all functions are pure.

Guarantees:

- The result contains all differences; differences in `metadata.managedFields` are included only if requested.
- If the items of a list have unique names (`name`, `type`, `ip`, `key`, `uid`), items with the same name are compared.
  Other lists are aligned, so an inserted item does not cause a difference in all later items.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from ctrlmgr.api.object import Object

_ALIGNED = 10_000
"""The maximum product of the lengths of two lists of unnamed items; if the product is larger, the lists are not
aligned.
"""

_NAMES = ("name", "type", "ip", "key", "uid")
_encode = msgspec.json.Encoder(order="deterministic").encode


class _Absent(msgspec.Struct, frozen=True):
    """The value that stands for a missing value."""


ABSENT = _Absent()


class Difference(NamedTuple):
    """A path at which two states differ, such as `status.conditions[type=Ready].status`, with both values.

    The value `ABSENT` represents a field that one state lacks.
    """

    path: str
    before: Any
    after: Any


def content(obj: Object | None, *, managed_fields: bool = False) -> Any:
    """Return the fields of an object that are compared: all except managedFields; {} if the object does not exist."""
    if obj is None:
        return {}
    fields = msgspec.json.decode(obj.body)
    if not managed_fields:
        fields["metadata"].pop("managedFields", None)
    return fields


def differences(before: Any, after: Any, path: str = "") -> Iterator[Difference]:
    """Yield every difference between two JSON values, in the order of the fields."""
    if before == after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for name in before | after:
            yield from differences(before.get(name, ABSENT), after.get(name, ABSENT), field_path(path, name))
    elif isinstance(before, list) and isinstance(after, list):
        old_steps, new_steps = item_paths(path, before), item_paths(path, after)
        for left, right in align(before, after):
            step = new_steps[right] if right is not None else old_steps[left or 0]
            old, new = (ABSENT if at is None else items[at] for at, items in ((left, before), (right, after)))
            yield from differences(old, new, step)
    else:
        yield Difference(path, before, after)


def align(before: list[Any], after: list[Any]) -> Iterator[tuple[int | None, int | None]]:
    """Yield pairs of indexes of matching items, in the order of `after`; None for an item without a match."""
    old, new = _identities(before), _identities(after)
    if old is not None and new is not None:
        where = {identity: index for index, identity in enumerate(old)}
        yield from ((where.get(identity), index) for index, identity in enumerate(new))
        kept = set(new)
        yield from ((index, None) for index, identity in enumerate(old) if identity not in kept)
        return
    for start, end, new_start, new_end in _blocks([*map(_encode, before)], [*map(_encode, after)]):
        for offset in range(max(end - start, new_end - new_start)):
            left, right = start + offset, new_start + offset
            yield left if left < end else None, right if right < new_end else None


def _blocks(before: list[bytes], after: list[bytes]) -> Iterator[tuple[int, int, int, int]]:
    """Yield pairs of corresponding ranges of old items and new items.

    Long lists with many differences are compared item by item, because aligning two lists takes time cubic in their
    length.
    """
    first = next((at for at, (old, new) in enumerate(zip(before, after, strict=False)) if old != new), None)
    if first is None:
        first = min(len(before), len(after))
    last = 0
    while last < min(len(before), len(after)) - first and before[-1 - last] == after[-1 - last]:
        last += 1
    old, new = before[first : len(before) - last], after[first : len(after) - last]
    yield 0, first, 0, first
    if len(old) * len(new) > _ALIGNED:
        yield first, first + len(old), first, first + len(new)
    else:
        for _, *stretch in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            start, end, new_start, new_end = (first + each for each in stretch)
            yield start, end, new_start, new_end
    yield len(before) - last, len(before), len(after) - last, len(after)


def item_paths(path: str, items: list[Any]) -> list[str]:
    """Return the path of each item of the list at `path`: by name if the item has one, otherwise by position."""
    return [f"{path}[{name}]" for name in _identities(items) or range(len(items))]


def _identities(items: list[Any]) -> list[str] | None:
    """Return the name of each item of a list; None if not all items have unique names."""
    found = [_identity(item) for item in items]
    return [each for each in found if each] if all(found) and len(set(found)) == len(found) else None


def _identity(item: Any) -> str | None:
    """Return the name of a list item, such as `type=Ready`; None if the item has no name."""
    if not isinstance(item, dict):
        return None
    return next((f"{name}={item[name]}" for name in _NAMES if isinstance(item.get(name), str)), None)


def field_path(path: str, name: str) -> str:
    """Return the path of a field in the value at `path`."""
    step = f'"{name}"' if not name or set(name) & set('."/[]') else name
    return f"{path}.{step}" if path else step
