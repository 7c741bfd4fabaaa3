"""Validates the keywords of a schema in a CustomResourceDefinition, including the `x-kubernetes-…` keywords.

Source: apiextensions-apiserver `pkg/apis/apiextensions/validation/validation.go`
(`ValidateCustomResourceDefinitionOpenAPISchema`, `specStandardValidatorV3`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ctrlmgr.api.field import FieldError, Path, forbidden, invalid, not_supported, required
from ctrlmgr.extensions.paths.field_path import resolve
from ctrlmgr.extensions.structural import (
    EMBEDDED,
    JUNCTORS,
    LIST_MAP_KEYS,
    LIST_TYPE,
    MAP_TYPE,
    META,
    NESTING,
    PRESERVE,
    RULES,
    NotStructural,
    Raw,
    Structural,
    refuse_unsupported,
    single_items,
)
from ctrlmgr.extensions.validation.error_formatting import printed_items

TYPES: Final = frozenset(("string", "number", "integer", "boolean", "array", "object"))
"""The types that a schema may have."""
_REASONS: Final = frozenset(("FieldValueRequired", "FieldValueForbidden", "FieldValueInvalid", "FieldValueDuplicate"))
_UNSUPPORTED: Final = (
    ("id", "id"),
    ("additionalItems", "additionalItems"),
    ("patternProperties", "patternProperties"),
    ("definitions", "definitions"),
    ("dependencies", "dependencies"),
    ("$ref", "$ref"),
)
_JUDGED: Final = frozenset((*(keyword for keyword, _ in _UNSUPPORTED), "default", "items", "uniqueItems", EMBEDDED))
_EXTENSIONS: Final = frozenset((PRESERVE, MAP_TYPE, LIST_TYPE, LIST_MAP_KEYS, RULES))
"""The `x-kubernetes-…` keywords that need checks. The checks are skipped for a schema that has none of these
keywords.
"""
_breaks_line = re.compile(r"[\n\r]").search


class Rules(NamedTuple):
    """The requirements that a schema must meet; in an update, violations that the old schema contains are allowed."""

    known_types: bool = True
    atomic_set_items: bool = True
    """Whether the items of lists of type `set` must be atomic."""
    strict_lists: bool = True
    """Whether the keys of lists of type `map` must always be set, and the items of lists of type `set` and `map` must
    never be null.
    """
    no_defaults: str | None = None
    """The reason why defaults are forbidden in this schema; None if defaults are allowed."""
    inside_metadata: bool = False


def validate_schema(raw: Raw, path: Path, rules: Rules, *, is_root: bool = True) -> Iterator[FieldError]:
    """Yield the validation errors of a schema and of all schemas nested in it."""
    if not _JUDGED.isdisjoint(raw) or (raw.get("type") or "string") not in TYPES:
        yield from _keywords(raw, path, rules)
    if not NESTING.isdisjoint(raw):
        if "properties" in raw or "additionalProperties" in raw:
            yield from _properties(raw, path, rules, is_root)
        yield from _below_junctors(raw, path, rules)
        if "items" in raw:
            yield from _items(raw, path, rules)
    if not _EXTENSIONS.isdisjoint(raw):
        yield from _extensions(raw, path, rules)


def _extensions(raw: Raw, path: Path, rules: Rules) -> Iterator[FieldError]:
    if raw.get(PRESERVE) is False:
        yield invalid(path.child(PRESERVE), False, "must be true or undefined")
    yield from _map_type(raw, path)
    yield from _list_type(raw, path, rules)
    if raw.get(LIST_TYPE) == "map":
        yield from _list_map(raw, path)
    if rules.strict_lists:
        yield from strict_list_errors(raw, path)
    for at, rule in enumerate(raw.get(RULES) or ()):
        yield from _rule(raw, rule, path.child(RULES).at(at))


def _keywords(raw: Raw, path: Path, rules: Rules) -> Iterator[FieldError]:
    type_ = raw.get("type") or ""
    if rules.known_types and type_ and type_ not in TYPES:
        yield not_supported(path.child("type"), type_, TYPES)
    if raw.get("default") is not None and rules.no_defaults is not None:
        yield forbidden(path.child("default"), f"must not be set {rules.no_defaults}".rstrip())
    for keyword, name in _UNSUPPORTED:
        value = raw.get(keyword)
        if value or (keyword in ("additionalItems", "dependencies", "$ref") and value is not None):
            yield forbidden(path.child(keyword), f"{name} is not supported")
    if type_ == "null":
        yield forbidden(path.child("type"), "type cannot be set to null, use nullable as an alternative")
    if isinstance(raw.get("items"), list) and raw["items"]:
        yield forbidden(path.child("items"), "items must be a schema object and not an array")
    if rules.inside_metadata and raw.get(EMBEDDED):
        yield forbidden(path.child(EMBEDDED), "must not be used inside of resource meta")
    if raw.get("uniqueItems"):
        words = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden(path.child("uniqueItems"), words)


def _properties(raw: Raw, path: Path, rules: Rules, is_root: bool) -> Iterator[FieldError]:
    properties: Mapping[str, Raw] = raw.get("properties") or {}
    others = raw.get("additionalProperties")
    at = path.child("additionalProperties")
    if others is not None and others is not True and properties:
        yield forbidden(at, "additionalProperties and properties are mutual exclusive")
    if isinstance(others, dict) and others:
        why = "inside additionalProperties applying to object metadata"
        yield from validate_schema(
            others, at, rules._replace(no_defaults=why) if rules.inside_metadata else rules, is_root=False
        )
    where = path.child("properties")
    for name, below in properties.items():
        if not below:
            continue
        there = rules
        if name in META and (is_root or raw.get(EMBEDDED)):
            there = there._replace(inside_metadata=True)
            if is_root:
                there = there._replace(no_defaults=f"in top-level {name}")
        yield from validate_schema(below, where.key(name), there, is_root=False)


def _below_junctors(raw: Raw, path: Path, rules: Rules) -> Iterator[FieldError]:
    if isinstance(negated := raw.get("not"), dict) and negated:
        yield from validate_schema(negated, path.child("not"), rules, is_root=False)
    for junctor in JUNCTORS:
        if junctor in raw:
            there = path.child(junctor)
            for at, each in enumerate(raw[junctor] or ()):
                if each:
                    yield from validate_schema(each, there.at(at), rules, is_root=False)
    for keyword in ("definitions", "dependencies"):
        if keyword in raw:
            there = path.child(keyword)
            for name, each in (raw[keyword] or {}).items():
                if each and isinstance(each, dict):
                    yield from validate_schema(each, there.key(name), rules, is_root=False)


def _items(raw: Raw, path: Path, rules: Rules) -> Iterator[FieldError]:
    items = raw.get("items")
    if isinstance(items, dict):
        yield from validate_schema(items, path.child("items"), rules, is_root=False)
    elif isinstance(items, list):
        for at, each in enumerate(items):
            if each:
                yield from validate_schema(each, path.child("items").at(at), rules, is_root=False)


def _map_type(raw: Raw, path: Path) -> Iterator[FieldError]:
    map_type = raw.get(MAP_TYPE)
    if map_type is None:
        return
    yield from _type_is(raw, "object", MAP_TYPE, path)
    if map_type not in ("atomic", "granular"):
        yield not_supported(path.child(MAP_TYPE), map_type, ["atomic", "granular"])


def _type_is(raw: Raw, type_: str, keyword: str, path: Path) -> Iterator[FieldError]:
    found = raw.get("type") or ""
    if found != type_:
        words = f"must be {type_} if {keyword} is specified"
        yield invalid(path.child("type"), found, words) if found else required(path.child("type"), words)


def _list_type(raw: Raw, path: Path, rules: Rules) -> Iterator[FieldError]:
    list_type = raw.get(LIST_TYPE)
    at = path.child(LIST_TYPE)
    if list_type is not None:
        if raw.get("type") != "array":
            yield from _type_is(raw, "array", LIST_TYPE, path)
        elif rules.atomic_set_items:
            yield from set_item_errors(raw, path)
        if list_type not in ("atomic", "set", "map"):
            yield not_supported(at, list_type, ["atomic", "set", "map"])
    if raw.get(LIST_MAP_KEYS) and list_type != "map":
        words = f"must be map if {LIST_MAP_KEYS} is non-empty"
        yield required(at, words) if list_type is None else invalid(at, list_type, words)


def set_item_errors(raw: Raw, path: Path) -> Iterator[FieldError]:
    """Yield an error if a list of type `set` may contain items that are not scalars and not atomic."""
    items = single_items(raw)
    if raw.get(LIST_TYPE) != "set" or items is None:
        return
    words = f"must be atomic as item of a list with {LIST_TYPE}=set"
    list_type = items.get(LIST_TYPE)
    if items.get("type") == "array" and list_type not in (None, "atomic"):
        yield invalid(path.child("items", LIST_TYPE), list_type, words)
    elif items.get("type") == "object" and items.get(MAP_TYPE) != "atomic":
        # Kubernetes shows the type of the list in this error.
        yield invalid(path.child("items", MAP_TYPE), list_type, words)


def _list_map(raw: Raw, path: Path) -> Iterator[FieldError]:
    keys: Sequence[str] = raw.get(LIST_MAP_KEYS) or ()
    at = path.child(LIST_MAP_KEYS)
    if not keys:
        yield required(at, f"must not be empty if {LIST_TYPE} is map")
    items, there = raw.get("items"), path.child("items")
    if items is None:
        yield required(there, f"must have a schema if {LIST_TYPE} is map")
    elif isinstance(items, list):
        yield invalid(there, printed_items(items), f"must only have a single schema if {LIST_TYPE} is map")
    elif (type_ := items.get("type") or "") != "object":
        yield invalid(there.child("type"), type_, f"must be object if parent array's {LIST_TYPE} is map")
    else:
        yield from _list_map_keys(items, keys, path)


def _list_map_keys(items: Raw, keys: Sequence[str], path: Path) -> Iterator[FieldError]:
    at = path.child(LIST_MAP_KEYS)
    properties: Mapping[str, Raw] = items.get("properties") or {}
    seen: set[str] = set()
    for key in keys:
        if key not in properties:
            yield invalid(at, list(keys), "entries must all be names of item properties")
        elif properties[key].get("type") in ("array", "object"):
            words = f"must be a scalar type if parent array's {LIST_TYPE} is map"
            yield invalid(path.child("items", "properties").key(key).child("type"), items.get("type"), words)
        if key in seen:
            yield invalid(at, list(keys), "must not contain duplicate entries")
        seen.add(key)


def strict_list_errors(raw: Raw, path: Path) -> Iterator[FieldError]:
    """Yield errors for items of lists of type `set` or `map` that may be null, and for map keys that may be absent."""
    items, list_type = single_items(raw), raw.get(LIST_TYPE)
    if items is None or list_type not in ("set", "map"):
        return
    if items.get("nullable"):
        yield forbidden(path.child("items", "nullable"), f"cannot be nullable when {LIST_TYPE} is {list_type}")
    if list_type == "set":
        return
    properties: Mapping[str, Raw] = items.get("properties") or {}
    for key in raw.get(LIST_MAP_KEYS) or ():
        if key not in properties:
            continue
        at = path.child("items", "properties").key(key)
        if key not in (items.get("required") or ()) and properties[key].get("default") is None:
            words = f"this property is in {LIST_MAP_KEYS}, so it must have a default or be a required property"
            yield required(at.child("default"), words)
        if properties[key].get("nullable"):
            yield forbidden(at.child("nullable"), f"this property is in {LIST_MAP_KEYS}, so it cannot be nullable")


def _rule(raw: Raw, rule: Raw, path: Path) -> Iterator[FieldError]:
    yield from _rule_text(rule, path)
    expression = rule.get("messageExpression") or ""
    if expression and not expression.strip():
        yield required(path.child("messageExpression"), "messageExpression must be non-empty if specified")
    reason = rule.get("reason")
    if reason is not None and reason not in _REASONS:
        yield not_supported(path.child("reason"), reason, _REASONS)
    yield from _rule_path(raw, rule.get("fieldPath") or "", path.child("fieldPath"))


def _rule_text(rule: Raw, path: Path) -> Iterator[FieldError]:
    text, message = (rule.get("rule") or "").strip(), rule.get("message") or ""
    if not text:
        yield required(path.child("rule"), "rule is not specified")
    elif message and not message.strip():
        yield invalid(path.child("message"), message, "must be non-empty if specified")
    elif _breaks_line(message.strip()):
        yield invalid(path.child("message"), message, "must not contain line breaks")
    elif _breaks_line(text) and not message.strip():
        yield required(path.child("message"), "message must be specified if rule contains line breaks")


def _rule_path(raw: Raw, text: str, path: Path) -> Iterator[FieldError]:
    if not text:
        return
    if not text.strip():
        yield invalid(path, text, "must be non-empty if specified")
    if _breaks_line(text):
        yield invalid(path, text, "must not contain line breaks")
    if not _leads_somewhere(raw, text):
        yield invalid(path, text, "must be a valid path")


def _leads_somewhere(raw: Any, text: str) -> bool:
    try:
        refuse_unsupported(raw)
    except NotStructural:
        return True
    try:
        resolve(text, Structural(raw))
    except ValueError:
        return False
    return True
