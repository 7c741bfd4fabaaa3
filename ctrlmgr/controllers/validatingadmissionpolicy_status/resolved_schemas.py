"""Resolves the schema of a kind for type checks of expressions: replaces each reference by its schema.

Guarantees: a recursive schema ends in an object without fields at the point of recursion. Quantities have no CEL type,
so the schema lacks fields with quantities. A field whose value is either an integer or a string has the type dyn.
Source: apiserver `pkg/cel/openapi/resolver/{definitions,refs}.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ctrlmgr.engine.kind import Kind
from ctrlmgr.extensions.structural import INT_OR_STRING, Raw

_REFERENCE: Final = "#/definitions/"
_UNTYPED: Final[Mapping[str, Raw]] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {},
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {INT_OR_STRING: True},
}
"""The schema definitions that differ from the definitions in the published document."""

_Look = Callable[[str], Raw]


def schema_of(kind: Kind) -> Raw:
    """Return the schema of a built-in kind or custom kind."""
    own: Mapping[str, Raw] = kind.document.definitions(v2=False) if kind.document is not None else {}
    name = next(iter(own), kind.definition)
    known: dict[str, Raw] = {**_UNTYPED, **own}

    def look(name: str) -> Raw:
        if name not in known:
            known[name] = kind.definitions.raw(name)
        return known[name]

    return _complete(look(name), look, frozenset((name,)))


def _complete(raw: Raw, look: _Look, around: frozenset[str]) -> Raw:
    """Return a schema with all references resolved; `around` contains the names of the enclosing schema definitions."""
    name = _referred(raw)
    if name:
        if name in around:
            return {"type": "object"}
        raw, around = look(name), around | {name}
    complete: dict[str, Any] = dict(raw)
    if properties := raw.get("properties"):
        complete["properties"] = {field: _complete(each, look, around) for field, each in properties.items()}
    for keyword in ("items", "additionalProperties"):
        if isinstance(raw.get(keyword), dict):
            complete[keyword] = _complete(raw[keyword], look, around)
    return complete


def _referred(raw: Raw) -> str:
    """Return the name of the schema definition to which a schema, or one of the schemas in its `allOf`, refers.

    The result is an empty string if there is no reference.
    """
    reference: str = raw.get("$ref") or ""
    if reference:
        return reference.removeprefix(_REFERENCE)
    return next((name for each in raw.get("allOf") or () if (name := _referred(each))), "")
