"""Checks that a value has no undeclared fields and no nulls that its schema forbids.

The check is a fast path for the usual case: it walks a value once, changes nothing and tracks no paths. If a value
fails the check of this module, `structural_pruning` and `null_removal` prune the value.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from ctrlmgr.extensions.structural import META, MISSING, Structural

Check: TypeAlias = Callable[[Any], bool]


def compile_clean(schema: Structural, *, is_root: bool = True) -> Check:
    """Return a function that checks values of a schema.

    A value for which the function returns True needs no pruning and no removal of nulls.
    """
    return _node(schema.as_object if is_root else schema)


def _node(schema: Structural, preserving: bool = False) -> Check:
    keeps_unknown = preserving or schema.preserves
    skipped = META if schema.embedded else frozenset[str]()
    fields = {
        name: (partial(_is_free_of_nulls, each) if name in skipped else _node(each), _may_be_null(each))
        for name, each in schema.properties.items()
    }
    others = _others(schema)
    items = _items(schema, keeps_unknown)

    def clean(value: Any) -> bool:
        kind = type(value)
        if kind is dict:
            for key, each in value.items():
                known = fields.get(key) or others
                if known is None:
                    if not keeps_unknown and key not in skipped:
                        return False
                elif not known[1] if each is None else not known[0](each):
                    return False
            return True
        return all(map(items, value)) if kind is list else True

    return clean


def _may_be_null(schema: Structural) -> bool:
    return schema.nullable or schema.default is not MISSING


def _is_free_of_nulls(schema: Structural, value: Any) -> bool:
    """Return whether a value contains no forbidden nulls; undeclared fields are allowed, as in metadata."""
    if type(value) is dict:
        below = ((each, schema.field(key)) for key, each in value.items())
    elif type(value) is list:
        below = ((each, schema.items) for each in value if each is not None)
    else:
        return True
    return all(
        known is None or (_may_be_null(known) if each is None else _is_free_of_nulls(known, each))
        for each, known in below
    )


def _others(schema: Structural) -> tuple[Check, bool] | None:
    if schema.additional is not None:
        return _node(schema.additional), _may_be_null(schema.additional)
    if schema.has_additional:
        return _without_fields, True
    return None


def _items(schema: Structural, keeps_unknown: bool) -> Check:
    if schema.items is not None:
        return _node(schema.items, keeps_unknown)
    return _anything if keeps_unknown else _without_fields


def _anything(value: Any) -> bool:
    return True


def _without_fields(value: Any) -> bool:
    """Return whether a value without a schema has no fields; pruning would remove all its fields."""
    if type(value) is dict:
        return not value
    return all(map(_without_fields, value)) if type(value) is list else True
