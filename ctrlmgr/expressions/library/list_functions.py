"""Functions of lists from Kubernetes (sums, extremes, indexes) and cel-go (slices, sorting, flattening).

The module also contains functions of maps.

Source: apiserver `pkg/cel/library/lists.go`; cel-go `ext/lists.go` (version 3) and `ext/comprehensions.go`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cmp_to_key
from itertools import pairwise
from typing import Any, Final

from ctrlmgr.expressions.declarations import Library
from ctrlmgr.expressions.library.operators import add, compare
from ctrlmgr.expressions.value_keys import keys_of
from ctrlmgr.expressions.values import NONE, SEQUENCES, Duration, EvalError, Optional, UInt, entry, equal
from ctrlmgr.work_budget import spend

LISTS: Final = Library()
_function = LISTS.function

_NUMERIC = ("int", "uint", "double", "duration")
_ORDERED = (*_NUMERIC, "bool", "string", "bytes", "timestamp")
_LARGEST_RANGE: Final = 1_000_000
_COPIED: Final = 16
"""Creating or copying this number of elements counts as one step of work."""


@_function("isSorted", *(f"list({each}).() -> bool" for each in _ORDERED))
def _is_sorted(items: Sequence[Any]) -> bool:
    return all(compare(one, other) <= 0 for one, other in pairwise(items))


@_function("sum", *(f"list({each}).() -> {each}" for each in _NUMERIC))
def _sum(items: Sequence[Any]) -> Any:
    if not items:
        return 0
    total = items[0]
    if type(total) not in (int, UInt, float, Duration):
        raise EvalError("no such overload: sum")
    for each in items[1:]:
        total = add(total, each)
    return total


@_function("min", *(f"list({each}).() -> {each}" for each in _ORDERED))
def _min(items: Sequence[Any]) -> Any:
    if not items:
        raise EvalError("min called on empty list")
    found = items[0]
    for each in items[1:]:
        found = each if compare(each, found) < 0 else found
    return found


@_function("max", *(f"list({each}).() -> {each}" for each in _ORDERED))
def _max(items: Sequence[Any]) -> Any:
    if not items:
        raise EvalError("max called on empty list")
    found = items[0]
    for each in items[1:]:
        found = each if compare(each, found) > 0 else found
    return found


@_function("indexOf", "list(T).(T) -> int")
def _index_of(items: Sequence[Any], value: Any) -> int:
    return next((at for at, each in enumerate(items) if equal(each, value)), -1)


@_function("lastIndexOf", "list(T).(T) -> int")
def _last_index_of(items: Sequence[Any], value: Any) -> int:
    return next((at for at in range(len(items) - 1, -1, -1) if equal(items[at], value)), -1)


@_function("slice", "list(T).(int, int) -> list(T)")
def _slice(items: Sequence[Any], begin: int, end: int) -> Sequence[Any]:
    if begin < 0 or end < 0:
        raise EvalError(f"cannot slice({begin}, {end}), negative indexes not supported")
    if begin > end:
        raise EvalError(f"cannot slice({begin}, {end}), start index must be less than or equal to end index")
    if end > len(items):
        raise EvalError(f"cannot slice({begin}, {end}), list is length {len(items)}")
    return items[begin:end]


@_function("flatten", "list(list(T)).() -> list(T)", "list(dyn).(int) -> list(dyn)")
def _flatten(items: Sequence[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise EvalError("level must be non-negative")
    flat: list[Any] = list(items)
    for _ in range(min(depth, 100)):
        spend(len(flat))
        if not any(type(each) in SEQUENCES for each in flat):
            break
        flat = [part for each in flat for part in (each if type(each) in SEQUENCES else (each,))]
    return flat


@_function("lists.range", "(int) -> list(int)")
def _range(count: int) -> list[int]:
    spend(max(count, 0) // _COPIED)
    if count > _LARGEST_RANGE:
        raise EvalError(f"range of {count} is too large")
    return list(range(count))


@_function("reverse", "list(T).() -> list(T)")
def _reverse(items: Sequence[Any]) -> list[Any]:
    return list(reversed(items))


@_function("distinct", "list(T).() -> list(T)")
def _distinct(items: Sequence[Any]) -> list[Any]:
    keys = keys_of(items)
    if keys is not None:
        first: dict[Hashable, Any] = {}
        for key, each in zip(keys, items, strict=True):
            first.setdefault(key, each)
        return list(first.values())
    distinct: list[Any] = []
    for each in items:
        if not any(equal(each, known) for known in distinct):
            distinct.append(each)
    return distinct


@_function("sort", *(f"list({each}).() -> list({each})" for each in _ORDERED))
def _sort(items: Sequence[Any]) -> list[Any]:
    return _by_keys(items, items)


@_function("@sortByAssociatedKeys", *(f"list(T).(list({each})) -> list(T)" for each in _ORDERED))
def _by_keys(items: Sequence[Any], keys: Sequence[Any]) -> list[Any]:
    if any(type(each) is not type(keys[0]) for each in keys):
        raise EvalError("list elements must have the same type")
    pairs = sorted(zip(keys, items, strict=True), key=cmp_to_key(_compare_keys))
    return [item for _, item in pairs]


def _compare_keys(one: tuple[Any, Any], other: tuple[Any, Any]) -> int:
    return compare(one[0], other[0])


@_function("first", "list(T).() -> optional_type(T)")
def _first(items: Sequence[Any]) -> Optional:
    return Optional(True, items[0]) if items else NONE


@_function("last", "list(T).() -> optional_type(T)")
def _last(items: Sequence[Any]) -> Optional:
    return Optional(True, items[-1]) if items else NONE


@_function("cel.@mapInsert", "(map(K, V), K, V) -> map(K, V)")
def _insert(before: dict[Any, Any], key: Any, value: Any) -> dict[Any, Any]:
    if entry(before, key)[0]:
        raise EvalError(f"insert failed: key {key} already exists")
    before[key] = value  # this map belongs to the loop and may be changed, because only macros call this function
    return before


@_function("cel.@mapInsert", "(map(K, V), map(K, V)) -> map(K, V)")
def _insert_all(before: dict[Any, Any], more: dict[Any, Any]) -> dict[Any, Any]:
    for key in more:
        if entry(before, key)[0]:
            raise EvalError(f"insert failed: key {key} already exists")
    before.update(more)
    return before
