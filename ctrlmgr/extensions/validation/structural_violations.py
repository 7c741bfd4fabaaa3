"""Checks whether a schema is structural, and returns the violations.

Guarantees: the errors are sorted by their text, as in Kubernetes. Source: apiextensions-apiserver
`pkg/apiserver/schema/{validation,complete}.go`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias

from ctrlmgr.api.field import FieldError, Path, forbidden, invalid, required
from ctrlmgr.extensions.schema_validation.go_json_values import same
from ctrlmgr.extensions.structural import (
    EMBEDDED,
    INT_OR_STRING,
    JUNCTORS,
    LIST_MAP_KEYS,
    LIST_TYPE,
    MAP_TYPE,
    PRESERVE,
    RULES,
    TYPE_META,
    NotStructural,
    Raw,
    junctors,
    refuse_unsupported,
    single_items,
)
from ctrlmgr.regexp import PatternError, compiled

Level: TypeAlias = Literal["root", "item", "field"]

_UNTYPED: Mapping[Level, str] = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}
_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
_ROOT_METADATA: Final = frozenset(("name", "generateName"))
_NESTED: Final = (
    ("type", "must be empty to be structural"),
    ("additionalProperties", "must be undefined to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    (PRESERVE, "must be false to be structural"),
    (EMBEDDED, "must be false to be structural"),
    (INT_OR_STRING, "must be false to be structural"),
    (LIST_MAP_KEYS, "must be empty to be structural"),
    (LIST_TYPE, "must be undefined to be structural"),
    (MAP_TYPE, "must be undefined to be structural"),
    (RULES, "must be empty to be structural"),
)
"""The keywords that are forbidden in schemas below a junctor, each with its error message.

Junctors are `allOf`, `anyOf`, `oneOf` and `not`.
"""
_NESTED_WORDS: Final = frozenset(keyword for keyword, _ in _NESTED)
_VALUES: Final = frozenset((*JUNCTORS, "not", "pattern"))
_BELOW: Final = frozenset(("items", "properties", "additionalProperties"))


def validate_structure(raw: Raw, path: Path) -> list[FieldError]:
    """Return the reasons why a schema is not structural; the caller must have called `refuse_unsupported` before."""
    errors = [*_invariants(raw, "root", path), *_completeness(raw, raw, path, path)]
    return sorted(errors, key=lambda error: error.message)


def is_structural(raw: Raw) -> bool:
    """Return whether a schema is structural."""
    try:
        refuse_unsupported(raw)
    except NotStructural:
        return False
    return not validate_structure(raw, Path())


def condition(definition: Raw) -> dict[str, str] | None:
    """Return the condition NonStructuralSchema of a CustomResourceDefinition, without timestamps.

    Return None if all schemas of the CustomResourceDefinition are structural.
    """
    spec: Raw = definition.get("spec") or {}
    path = Path("spec")
    errors: list[FieldError] = []
    if spec.get("preserveUnknownFields"):
        errors.append(invalid(path.child("preserveUnknownFields"), True, "must be false"))
    for at, version in enumerate(spec.get("versions") or ()):
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if schema is None:
            continue
        try:
            refuse_unsupported(schema)
        except NotStructural as error:
            message = f"failed to check validation schema for version {version.get('name', '')}: {error}"
            return _condition("Unknown", "StructuralError", message)
        errors += validate_structure(schema, path.child("versions").at(at).child("schema", "openAPIV3Schema"))
    messages = list(dict.fromkeys(error.message for error in errors))
    if not messages:
        return None
    return _condition("True", "Violations", messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]")


def _condition(status: str, reason: str, message: str) -> dict[str, str]:
    return {"type": "NonStructuralSchema", "status": status, "reason": reason, "message": message}


def _invariants(raw: Raw, level: Level, path: Path) -> Iterator[FieldError]:
    if raw.get("type") == "array" and single_items(raw) is None:
        yield required(path.child("items"), "must be specified")
    if not _BELOW.isdisjoint(raw):
        yield from _invariants_below(raw, level, path)
    yield from _extensions(raw, path)
    if not _VALUES.isdisjoint(raw):
        yield from _value_validation(raw, path, _is_either(raw.get("anyOf")), _begins_with_either(raw.get("allOf")))
    yield from _types(raw, level, path)
    if "properties" in raw:
        yield from _metadata(raw, level, path)


def _invariants_below(raw: Raw, level: Level, path: Path) -> Iterator[FieldError]:
    items = single_items(raw)
    if items is not None:
        yield from _invariants(items, "item", path.child("items"))
    if "properties" in raw:
        there = path.child("properties")
        for name, below in (raw["properties"] or {}).items():
            yield from _invariants(below, "field", there.key(name))
    others = raw.get("additionalProperties")
    if others is not None and level == "root":
        yield forbidden(path.child("additionalProperties"), "must not be used at the root")
    if isinstance(others, dict):
        yield from _invariants(others, "field", path.child("additionalProperties"))


def _is_either(any_of: Any) -> bool:
    return isinstance(any_of, list) and same(any_of, _INT_OR_STRING)


def _begins_with_either(all_of: Any) -> bool:
    return isinstance(all_of, list) and bool(all_of) and _is_either(all_of[0].get("anyOf"))


def _extensions(raw: Raw, path: Path) -> Iterator[FieldError]:
    if not raw.get(INT_OR_STRING):
        return
    for keyword in (PRESERVE, EMBEDDED):
        if raw.get(keyword):
            yield invalid(path.child(keyword), True, f"must be false if {INT_OR_STRING} is true")


def _types(raw: Raw, level: Level, path: Path) -> Iterator[FieldError]:
    type_, at = raw.get("type") or "", path.child("type")
    embedded = bool(raw.get(EMBEDDED))
    if embedded and type_ != "object":
        words = f"must be object if {EMBEDDED} is true"
        yield invalid(at, type_, words) if type_ else required(at, words)
    elif not type_ and not raw.get(INT_OR_STRING) and not raw.get(PRESERVE):
        yield required(at, _UNTYPED[level])
    if embedded and raw.get("additionalProperties") is not None:
        yield forbidden(path.child("additionalProperties"), f"must not be used if {EMBEDDED} is set")
    if level == "root" and type_ and type_ != "object":
        yield invalid(at, type_, "must be object at the root")
    if embedded and not raw.get(PRESERVE) and not raw.get("properties"):
        words = f"must not be empty if {EMBEDDED} is true without {PRESERVE}"
        yield required(path.child("properties"), words)


def _metadata(raw: Raw, level: Level, path: Path) -> Iterator[FieldError]:
    properties = raw.get("properties") or {}
    is_checked = level == "root" or bool(raw.get(EMBEDDED))
    if is_checked:
        for name in sorted(TYPE_META & properties.keys()):
            type_ = properties[name].get("type") or ""
            if type_ != "string":
                yield invalid(path.child("properties").key(name).child("type"), type_, "must be string")
    if "metadata" not in properties:
        return
    metadata, at = properties["metadata"], path.child("properties").key("metadata")
    type_ = metadata.get("type") or ""
    if is_checked and type_ != "object":
        yield invalid(at.child("type"), type_, "must be object")
    if level == "root" and not _is_root_metadata(metadata):
        words = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        yield forbidden(at, words)


def _is_root_metadata(metadata: Raw) -> bool:
    named = frozenset(metadata.get("properties") or ())
    given_fields = {name for name, value in metadata.items() if value not in (None, "", False, [], {})}
    allowed = {"type", "default"} | ({"properties"} if named <= _ROOT_METADATA else set())
    return given_fields <= allowed


def _value_validation(raw: Raw, path: Path, skips_any: bool, skips_first: bool) -> Iterator[FieldError]:
    """Yield the errors of the value validation (`allOf`, `anyOf`, `oneOf`, `not`) of a schema."""
    for where, below in junctors(raw):
        if where.startswith("anyOf") and skips_any:
            continue
        skips_below = skips_first and where == "allOf[0]"
        yield from _nested(below, path.child(where), skips_below)
    if pattern := raw.get("pattern"):
        try:
            compiled(pattern)
        except PatternError as error:
            words = f"must be a valid regular expression, but isn't: {error}"
            yield invalid(path.child("pattern"), pattern, words)


def _nested(raw: Raw, path: Path, skips_any: bool = False) -> Iterator[FieldError]:
    if not _VALUES.isdisjoint(raw):
        yield from _value_validation(raw, path, skips_any, False)
    if (items := single_items(raw)) is not None:
        yield from _nested(items, path.child("items"))
    properties = raw.get("properties") or {}
    for name, below in properties.items():
        if below:
            yield from _nested(below, path.child("properties").key(name))
    if not _NESTED_WORDS.isdisjoint(raw):
        yield from _nested_words(raw, path)
    if "metadata" in properties:
        yield forbidden(path.child("properties").key("metadata"), "must not be specified in a nested context")


def _nested_words(raw: Raw, path: Path) -> Iterator[FieldError]:
    for keyword, words in _NESTED:
        value = raw.get(keyword)
        if value or (keyword == "additionalProperties" and isinstance(value, dict)) or _is_said(keyword, value):
            yield forbidden(path.child(keyword), words)


def _is_said(keyword: str, value: Any) -> bool:
    """Return whether a field counts as set; a default such as 0 counts as set, although it is false in Python."""
    return keyword in ("default", LIST_TYPE, MAP_TYPE) and value is not None


def _completeness(raw: Raw, structure: Raw, s_path: Path, v_path: Path) -> Iterator[FieldError]:
    """Yield an error for each field that occurs in a junctor (such as `allOf`) but not in the structural schema."""
    if _VALUES.isdisjoint(raw):
        return
    if isinstance(negated := raw.get("not"), dict):
        yield from _nested_completeness(negated, structure, s_path, v_path.child("not"))
    for junctor in JUNCTORS:
        if junctor in raw:
            there = v_path.child(junctor)
            for at, each in enumerate(raw[junctor] or ()):
                if each:
                    yield from _nested_completeness(each, structure, s_path, there.at(at))


def _nested_completeness(raw: Raw, structure: Raw | None, s_path: Path, v_path: Path) -> Iterator[FieldError]:
    if structure is None:
        yield required(s_path, f"because it is defined in {v_path}")
        return
    if not raw:
        return
    yield from _completeness(raw, structure, s_path, v_path)
    if (items := single_items(raw)) is not None:
        yield from _nested_completeness(items, single_items(structure), s_path.child("items"), v_path.child("items"))
    if "properties" not in raw:
        return
    fields = structure.get("properties") or {}
    for name, below in (raw["properties"] or {}).items():
        at, where = s_path.child("properties").key(name), v_path.child("properties").key(name)
        yield from _nested_completeness(below, fields.get(name), at, where)
