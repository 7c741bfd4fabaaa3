"""Validates each default of a schema against the schema node that has the default, and refuses unknown fields.

Source: apiextensions-apiserver `pkg/apiserver/schema/defaulting/validation.go`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ctrlmgr.api.field import FieldError, Path, invalid
from ctrlmgr.extensions.rules.compiled_rules import compile_rules
from ctrlmgr.extensions.rules.rule_evaluation import evaluate_rules
from ctrlmgr.extensions.schema_validation.error_validator import explain
from ctrlmgr.extensions.schema_validation.go_json_values import same, shown_value
from ctrlmgr.extensions.schema_validation.schema_node import Node
from ctrlmgr.extensions.shaping.defaulting import copied
from ctrlmgr.extensions.shaping.embedded_metadata import coerce, validate_embedded
from ctrlmgr.extensions.shaping.schema_defaults import Steps, surround
from ctrlmgr.extensions.shaping.structural_pruning import prune
from ctrlmgr.extensions.structural import META, MISSING, Structural

_TYPE_META = {"kind": "Validation", "apiVersion": "validation/v1"}


class _Place(NamedTuple):
    """The position of a schema node: its object, the path within that object, and whether the node is in metadata."""

    path: Path
    root: Structural
    steps: Steps = ()
    inside_meta: bool = False


def validate_defaults(schema: Structural, path: Path, *, require_pruned: bool = True) -> list[FieldError]:
    """Return the validation errors of the defaults in a structural schema of an object."""
    root = schema.as_object
    return list(_validate(root, _Place(path, root), require_pruned))


def _validate(schema: Structural, place: _Place, require_pruned: bool) -> Iterator[FieldError]:
    if schema.embedded:
        place = _Place(place.path, schema)
    if schema.default is not MISSING:
        at = place.path.child("default")
        if place.inside_meta:
            yield from _inside_metadata(schema, place, at)
        else:
            yield from _outside_metadata(schema, at, require_pruned)
    if schema.items is not None:
        yield from _validate(schema.items, _below(place, "items", None), require_pruned)
    for name, below in schema.properties.items():
        inside = place.inside_meta or (schema.embedded and name in META)
        there = _below(place, f"properties[{name}]", name)._replace(inside_meta=inside)
        yield from _validate(below, there, require_pruned)


def _below(place: _Place, name: str, step: str | None) -> _Place:
    return place._replace(path=place.path.child(name), steps=(*place.steps, step))


def _by_keywords(schema: Structural, at: Path) -> list[FieldError]:
    return explain(Node(schema.raw, is_default=True), schema.default).field_errors(at)


def _outside_metadata(schema: Structural, at: Path, require_pruned: bool) -> Iterator[FieldError]:
    default = copied(schema.default)
    if require_pruned:
        pruned = copied(default)
        prune(pruned, schema, is_root=False)
        if not same(pruned, default):
            yield invalid(at, shown_value(default), "must not have unknown fields")
    error = coerce(default, schema, path=at).error
    if error is not None:
        yield error
    elif (errors := validate_embedded(default, schema, at)) or (errors := _by_keywords(schema, at)):
        yield from errors
    elif (rules := compile_rules(schema.raw, is_resource=schema.embedded)) is not None:
        yield from evaluate_rules(rules, default, path=at)


def _inside_metadata(schema: Structural, place: _Place, at: Path) -> Iterator[FieldError]:
    whole: Any = surround(copied(schema.default), place.steps)
    whole = {**_TYPE_META, **whole}
    error = coerce(whole, place.root.as_object).error
    if error is not None:
        yield invalid(at, shown_value(schema.default), f"must result in valid metadata: {error.message}")
    elif errors := validate_embedded(whole, place.root.as_object):
        messages = list(dict.fromkeys(each.message for each in errors))
        text = messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]"
        yield invalid(at, shown_value(schema.default), f"must result in valid metadata: {text}")
    else:
        yield from _by_keywords(schema, at)
