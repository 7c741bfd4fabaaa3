"""Determines the identity of elements in merged lists, and their order after a strategic merge patch.

The order of elements is that of apimachinery `strategicpatch.normalizeElementOrder`. Elements that the patch names are
in the patch's order, and all other elements are in their previous order. The two groups are interleaved by the
positions of their elements in the original list.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, TypeAlias

from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.patch.go_value import go_type, plain
from ctrlmgr.engine.patch.json_patch import REJECTED
from ctrlmgr.errors import Invalid, StatusDetails, UnknownError

Items: TypeAlias = list[Any]

DIRECTIVE = "$patch"
DELETE = "delete"
MERGE = "merge"
REPLACE = "replace"


def missing_merge_key(element: Unstructured, merge_key: str) -> UnknownError:
    """Return the error for an element that lacks its merge key (`mergepatch.ErrNoMergeKey`)."""
    return UnknownError(f"map: {plain(element)} does not contain declared merge key: {merge_key}")


def wrong_type(expected: Any, actual: Any) -> UnknownError:
    """Return the error for a value that does not have the type of `expected` (`mergepatch.ErrBadArgType`)."""
    return UnknownError(f"expected a {go_type(expected)}, but received a {go_type(actual)}")


def identity(value: Any) -> Hashable:
    """Return a key that is equal for two elements (or merge keys) if and only if they are equal in Go."""
    return (type(value), plain(value) if isinstance(value, dict | list) else value)


def element_type(*lists: Items, required: bool = False) -> type | None:
    """Return the type that the elements of all lists have; None if the lists are empty.

    Raises `UnknownError` if the types of elements differ, or if the lists are empty and a type is `required`. Raises
    `Invalid` if an element is itself a list.
    """
    types = dict.fromkeys(type(each) for items in lists for each in items)
    if not types and required:
        raise UnknownError("no elements in any of the given slices")
    first = next(iter(types), None)
    if first is list:
        raise Invalid(REJECTED, details=StatusDetails())
    if len(types) > 1:
        raise UnknownError(f"list element types are not identical: {plain(list(lists))}")
    return first


def places(items: Items, merge_key: str) -> dict[Hashable, int]:
    """Return the index of the first object with each merge key; objects without the key are skipped."""
    found: dict[Hashable, int] = {}
    for index, each in enumerate(items):
        if merge_key in each:
            found.setdefault(identity(each[merge_key]), index)
    return found


def check_order(patch: Items, order: Items, merge_key: str) -> None:
    """Raise `UnknownError` unless a patch's `$setElementOrder` contains all elements of the patch in the same order."""
    if not patch or not order:
        return
    if merge_key and (odd := next((each for each in patch if not isinstance(each, dict)), None)) is not None:
        raise wrong_type({}, odd)
    remaining = iter(order)
    for element in patch:
        if isinstance(element, dict) and DIRECTIVE in element:
            continue
        key = _key(element, merge_key)
        if not any(_key(each, merge_key) == key for each in remaining):
            raise UnknownError(
                f"The order in patch list:\n{plain(patch)}\n doesn't match $setElementOrder list:\n{plain(order)}\n"
            )


def arrange(merged: Items, order: Items, original: Items, merge_key: str) -> Items:
    """Return `merged` in its final order; `order` is the patch's order, and `original` is the list before the merge.

    Raises `UnknownError` if an element lacks its merge key.
    """
    named, found = _places(order, merge_key), _places(original, merge_key)
    ours = [(key, each) for each in merged if (key := _key(each, merge_key)) in named]
    others = [(key, each) for each in merged if (key := _key(each, merge_key)) not in named]
    ours.sort(key=lambda pair: named[pair[0]])
    others.sort(key=lambda pair: found.get(pair[0], len(found)))
    return _interleave(others, ours, found)


def _interleave(
    others: Sequence[tuple[Hashable, Any]], ours: Sequence[tuple[Hashable, Any]], found: dict[Hashable, int]
) -> Items:
    """Interleave two lists: each element of `others` precedes those of `ours` that it preceded originally."""
    result, waiting = [], 0
    for key, each in ours:
        place = found.get(key, -1)
        while waiting < len(others) and found.get(others[waiting][0], place) < place:
            result.append(others[waiting][1])
            waiting += 1
        result.append(each)
    return result + [each for _, each in others[waiting:]]


def _places(items: Items, merge_key: str) -> dict[Hashable, int]:
    places: dict[Hashable, int] = {}
    for index, each in enumerate(items):
        places.setdefault(_key(each, merge_key), index)
    return places


def _key(element: Any, merge_key: str) -> Hashable:
    if not merge_key:
        return identity(element)
    if not isinstance(element, dict):
        raise wrong_type({}, element)
    if merge_key not in element:
        raise missing_merge_key(element, merge_key)
    return identity(element[merge_key])
