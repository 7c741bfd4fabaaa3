"""Sets the defaults of a schema in a value, at any depth.

Guarantees: each default is copied when it is set, and setting defaults is idempotent. A forbidden null is replaced by
the default, if the schema has a default. Schemas without defaults cause no work.

If the caller has set a work budget (`work_budget`), each byte of JSON in a set default costs one step of this budget.

Source: apiextensions-apiserver `pkg/apiserver/schema/defaulting/algorithm.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import msgspec

from ctrlmgr.extensions.structural import MISSING, Structural
from ctrlmgr.work_budget import spend

Fill: TypeAlias = Callable[[Any], None]


def compile_defaults(schema: Structural, defaults: Mapping[int, Any]) -> Fill | None:
    """Return the function that sets the defaults in values of a schema node; None if the node has no defaults.

    The argument `defaults` contains the pruned defaults, by the identity of their node (`shaping.schema_defaults`).
    """
    fields = {name: _field(each, defaults) for name, each in schema.properties.items()}
    defaulted = [(name, each) for name, each in fields.items() if each.default is not MISSING]
    deep = [(name, each.fill) for name, each in fields.items() if each.fill is not None]
    others = _worth_a_look(schema.additional, defaults)
    items = _worth_a_look(schema.items, defaults)
    if not (defaulted or deep or others or items):
        return None
    return _filler(defaulted, deep, frozenset(fields), others, items)


class _Field(NamedTuple):
    default: Any
    nullable: bool
    fill: Fill | None
    size: int
    """The size of the default in bytes of JSON."""

    def replacement(self) -> Any:
        return None if self.default is MISSING else self.copy()

    def copy(self) -> Any:
        """Return a copy of the default, and subtract its size from the work budget."""
        spend(self.size)
        return copied(self.default)


def _field(schema: Structural, defaults: Mapping[int, Any]) -> _Field:
    default = defaults.get(id(schema), schema.default)
    size = 0 if default is MISSING else len(msgspec.json.encode(default))
    return _Field(default, schema.nullable, compile_defaults(schema, defaults), size)


def _worth_a_look(schema: Structural | None, defaults: Mapping[int, Any]) -> _Field | None:
    field = None if schema is None else _field(schema, defaults)
    return field if field is not None and (field.fill is not None or field.default is not MISSING) else None


def _filler(
    defaulted: list[tuple[str, _Field]],
    deep: list[tuple[str, Fill]],
    declared: frozenset[str],
    others: _Field | None,
    items: _Field | None,
) -> Fill:
    def fill(value: Any) -> None:
        kind = type(value)
        if kind is dict:
            for name, each in defaulted:
                if value.get(name) is None and (name not in value or not each.nullable):
                    value[name] = each.copy()
            for name, fill_below in deep:
                below = value.get(name)
                if below is not None:
                    fill_below(below)
            if others is not None:
                _fill_others(value, declared, others)
        elif kind is list and items is not None:
            _fill_items(value, items)

    return fill


def _fill_others(value: dict[str, Any], declared: frozenset[str], others: _Field) -> None:
    for name, each in value.items():
        if name in declared:
            continue
        if each is None and not others.nullable:
            value[name] = each = others.replacement()
        if others.fill is not None:
            others.fill(each)


def _fill_items(value: list[Any], items: _Field) -> None:
    for index, each in enumerate(value):
        if each is None and not items.nullable:
            value[index] = each = items.replacement()
        if items.fill is not None:
            items.fill(each)


def copied(value: Any) -> Any:
    """Return a copy of a decoded JSON value."""
    if type(value) is dict:
        return {key: copied(each) for key, each in value.items()}
    return [copied(each) for each in value] if type(value) is list else value
