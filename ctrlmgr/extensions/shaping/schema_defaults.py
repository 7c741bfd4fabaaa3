"""Prepares a schema's defaults: prunes undeclared fields, and converts metadata to its canonical form.

Source: apiextensions-apiserver `pkg/apiserver/schema/defaulting/{prune,surroundingobject}.go`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from ctrlmgr.extensions.schema_validation.go_json_values import same
from ctrlmgr.extensions.shaping.defaulting import copied
from ctrlmgr.extensions.shaping.embedded_metadata import coerce
from ctrlmgr.extensions.shaping.structural_pruning import prune
from ctrlmgr.extensions.structural import MISSING, Structural

Steps: TypeAlias = tuple[str | None, ...]
"""The path from the root schema to a node: names of fields, `*` for a map's values, None for a list's items."""


def steps_below(schema: Structural) -> Iterator[tuple[str | None, Structural]]:
    """Yield the child nodes of a schema node, each with its step in the path."""
    if schema.additional is not None:
        yield "*", schema.additional
    if schema.items is not None:
        yield None, schema.items
    yield from schema.properties.items()


def surround(value: Any, steps: Steps) -> Any:
    """Return the smallest object that contains `value` at `path`."""
    for step in reversed(steps):
        value = [value] if step is None else {step: value}
    return value


def at_end(value: Any, steps: Steps) -> Any:
    """Return the value at a path; MISSING if there is none."""
    for step in steps:
        if step is None:
            value = value[0] if type(value) is list and value else MISSING
        else:
            value = value.get(step, MISSING) if type(value) is dict else MISSING
    return value


def pruned_defaults(root: Structural) -> Mapping[int, Any]:
    """Return the defaults that pruning changes; each key is the `id()` of the schema node that has the default.

    If pruning removes a whole default, the result contains MISSING instead of the default.
    """
    changed: dict[int, Any] = {}
    waiting: list[tuple[Steps, Structural]] = [((), root)]
    while waiting:
        steps, schema = waiting.pop()
        waiting += [((*steps, step), below) for step, below in steps_below(schema)]
        if schema.default is MISSING or not _can_change(schema.default, steps):
            continue
        pruned = _pruned(root, steps, schema.default)
        if pruned is MISSING or not same(pruned, schema.default):
            changed[id(schema)] = pruned
    return changed


def _can_change(default: Any, steps: Steps) -> bool:
    return type(default) in (dict, list) or "metadata" in steps


def _pruned(root: Structural, steps: Steps, default: Any) -> Any:
    whole = surround(copied(default), steps)
    if type(whole) is not dict:
        return default
    as_object = root.as_object
    coerce(whole, as_object, drop_invalid=True)
    prune(whole, as_object)
    return at_end(whole, steps)
