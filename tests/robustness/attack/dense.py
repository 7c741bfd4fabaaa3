"""Bodies with as many elements as possible, in any list or map of a kind's schema."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from ctrlmgr.engine.kind import Kind
from ctrlmgr.schema.definitions import Definitions
from ctrlmgr.schema.schema import Schema
from tests.engine.stage import builtin_kinds

Steps = tuple[str | int, ...]
"""The path of a list or a map in a schema: names of fields, `k` for the value of a map, 0 for the item of a list."""

_PARTS = re.compile(r"/apis?(?:/([a-z0-9.-]+))?/(v[a-z0-9]+)(?:/namespaces/[a-z]+)?/([a-z]+)")
_TIMES = {"date-time": "2026-01-01T00:00:00Z", "micro-time": "2026-01-01T00:00:00.000000Z", "quantity": "1"}


def kind_of(path: str) -> Kind:
    """Return the kind whose objects are posted to a URL path."""
    parts = _PARTS.fullmatch(path)
    assert parts is not None, path
    group, version, resource = parts.groups()
    kind = builtin_kinds().find(group or "", version, resource)
    assert kind is not None, path
    return kind


@cache
def lists_of(path: str) -> Sequence[tuple[Steps, Schema]]:
    """Return the paths of every list and map in the schema of the kind whose objects are posted to a URL path."""
    kind = kind_of(path)
    definitions = Definitions.builtin()
    definition = definitions.by_kind[kind.gvk.api_version, kind.gvk.kind]
    return tuple(_lists_in(definitions.schema(definition), (), frozenset()))


def _lists_in(schema: Schema, steps: Steps, within: frozenset[str]) -> Iterator[tuple[Steps, Schema]]:
    if schema.definition in within:
        return
    within |= {schema.definition} - {""}
    if schema.kind in ("array", "map") and steps:
        yield steps, schema
    if schema.items is not None:
        yield from _lists_in(schema.items, (*steps, 0), within)
    elif schema.values is not None:
        yield from _lists_in(schema.values, (*steps, "k"), within)
    elif schema.is_struct:
        for name, each in schema.properties.items():
            yield from _lists_in(each, (*steps, name), within)


def filled(schema: Schema, size: int, choice: random.Random) -> Any:
    """Return a list or a map of about `size` bytes, whose elements are short, equal, empty or different from each
    other.
    """
    below = schema.items or schema.values
    assert below is not None
    least = _least(below)
    if schema.kind == "map":
        return {f"k{number}": least for number in range(max(size // (len(json.dumps(least)) + 10), 1))}
    way = choice.randrange(4)
    if way == 0:
        return [None] * (size // 5)
    properties = below.properties if below.is_struct else {}
    if way == 1 and properties:
        full = {name: _least(each) for name, each in properties.items()}
        return [full] * max(size // len(json.dumps(full)), 1)
    names = [name for name, each in properties.items() if each.kind == "string" and not each.format]
    if way == 2 and names:
        name = choice.choice([name for name in schema.list_map_keys if name in names] or names)
        return [{name: f"a-{number}"} for number in range(max(size // (len(name) + 14), 1))]
    return [least] * max(size // (len(json.dumps(least)) + 1), 1)


def _least(schema: Schema) -> Any:
    """Return the shortest value that a schema allows."""
    if schema.kind == "array":
        return []
    if schema.kind in ("map", "any") or schema.is_struct:
        return {}
    return _TIMES.get(schema.format, {"string": "", "boolean": True}.get(schema.kind, 0))


def wrapped(steps: Steps, value: Any) -> Any:
    """Return an object that contains only a value at a path."""
    for step in reversed(steps):
        value = [value] if step == 0 else {step: value}
    return value


def put(fields: Any, steps: Steps, value: Any) -> None:
    """Set a value at a path of an object, and keep the other values."""
    *way, last = steps
    for at, step in enumerate(way):
        below: Any = [] if steps[at + 1] == 0 else {}
        if step == 0 and not fields:
            fields.append(below)
        elif step != 0 and not isinstance(fields.get(step), type(below)):
            fields[step] = below
        fields = fields[step]
    if last == 0:
        fields[:] = [value]
    else:
        fields[last] = value
