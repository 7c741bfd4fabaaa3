"""Computes hashable keys of CEL values.

Equal CEL values have equal keys. Therefore functions of sets look elements up by their keys, and do not compare all
pairs of elements.

Source: cel-go compares values pairwise (`ext/sets.go`, `ext/lists.go`); the results of this module are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Final

from ctrlmgr.expressions.types import Type
from ctrlmgr.expressions.values import Optional, StructValue, UInt
from ctrlmgr.work_budget import spend


def keys_of(values: Iterable[Any]) -> list[Hashable] | None:
    """Return the keys of values; None if one of the values has no key."""
    try:
        return [_key(each) for each in values]
    except TypeError:
        return None


def _key(value: Any) -> Hashable:
    """Return the key of a value; raises TypeError if the value, such as an unordered list, has no key."""
    make = _KEYS.get(type(value))
    if make is not None:
        return make(value)
    made = (type(value), value)
    hash(made)
    return made


def _number(value: Any) -> Hashable:
    """Return the number itself as its key, because Python compares numbers as CEL does.

    The number NaN has no key, because NaN equals no value.
    """
    return value if value == value else object()


def _text(value: Any) -> Hashable:
    return str(value)


def _list(value: Any) -> Hashable:
    spend(1 + len(value))
    return ("list", *map(_key, value))


def _map(value: Mapping[Any, Any]) -> Hashable:
    spend(1 + len(value))
    return ("map", frozenset((_key(key), _key(each)) for key, each in value.items()))


def _struct(value: StructValue) -> Hashable:
    return ("struct", value.name, _map(value.fields))


def _optional(value: Optional) -> Hashable:
    return ("optional", _key(value.value)) if value.present else ("none",)


def _named(value: Type) -> Hashable:
    return ("type", value.name)


_KEYS: Final[Mapping[type, Callable[[Any], Hashable]]] = {
    str: _text,
    int: _number,
    UInt: _number,
    float: _number,
    list: _list,
    tuple: _list,
    dict: _map,
    StructValue: _struct,
    Optional: _optional,
    Type: _named,
}
