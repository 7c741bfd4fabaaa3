"""Determines the requirements that a CustomResourceDefinition must meet.

A new CustomResourceDefinition must meet all requirements. An updated CustomResourceDefinition may keep violations that
its old state had.

Source: apiextensions-apiserver `pkg/apis/apiextensions/validation/validation.go` (`require…`, `allow…`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from ctrlmgr.api.field import ROOT
from ctrlmgr.engine.validation.webhook_validation import validate_ca_bundle
from ctrlmgr.extensions.schema_validation.go_json_values import same
from ctrlmgr.extensions.shaping.schema_defaults import pruned_defaults
from ctrlmgr.extensions.structural import (
    EMBEDDED,
    INT_OR_STRING,
    JUNCTORS,
    LIST_MAP_KEYS,
    LIST_TYPE,
    NESTING,
    PRESERVE,
    RULES,
    Raw,
    Structural,
)
from ctrlmgr.extensions.validation.conversion_validation import has_known_review
from ctrlmgr.extensions.validation.internal_form import InternalSpec, internal_spec, schema_of
from ctrlmgr.extensions.validation.schema_validation import TYPES, set_item_errors, strict_list_errors
from ctrlmgr.extensions.validation.structural_violations import is_structural
from ctrlmgr.extensions.validation.version_validation import MOST_SELECTABLE_FIELDS


class Requirements(NamedTuple):
    """The requirements that apply to a CustomResourceDefinition.

    The defaults are those for a new CustomResourceDefinition.
    """

    known_review: bool = True
    """Whether the conversion webhook must list a supported version of ConversionReview."""
    same_names: bool = False
    """Whether scope and kind must not change, because both are part of the key of stored objects."""
    schemas: bool = True
    """Whether every version of the CustomResourceDefinition must have a schema, even a version that is not served."""
    known_types: bool = True
    structural: bool = True
    pruned_defaults: bool = True
    atomic_set_items: bool = True
    strict_lists: bool = True
    checked_ca: bool = False
    """Whether the certificates of the conversion webhook must be valid; a CustomResourceDefinition that is not
    established yet may have invalid certificates.
    """
    many_selectable: frozenset[str] = frozenset()
    """The versions that may have too many selectable fields; "" means the parts that all versions share."""
    unchanged: frozenset[str] = frozenset()
    """The versions whose schemas are unchanged; "" means the schema that all versions share."""


def requirements(new: InternalSpec, old: Raw | None) -> Requirements:
    """Return the requirements for a CustomResourceDefinition that replaces `old`."""
    if old is None:
        return Requirements()
    before = internal_spec(old.get("spec") or {})
    schemas = before.schemas()
    established = _is_established(old)
    webhook: Raw = (before.raw.get("conversion") or {}).get("webhook") or {}
    review_versions = webhook.get("conversionReviewVersions") or ()
    return Requirements(
        known_review=not review_versions or has_known_review(review_versions),
        same_names=established,
        schemas=_all_have_schemas(before),
        known_types=not any(_any(each, _has_unknown_type) for each in schemas),
        structural=all(is_structural(each) for each in schemas),
        pruned_defaults=not any(_has_unpruned_defaults(each) for each in schemas),
        atomic_set_items=not any(_any(each, lambda raw: any(set_item_errors(raw, ROOT))) for each in schemas),
        strict_lists=not any(_any(each, lambda raw: any(strict_list_errors(raw, ROOT))) for each in schemas),
        checked_ca=established and not has_invalid_ca(before.raw),
        many_selectable=_many_selectable(new, before),
        unchanged=_unchanged(new, before),
    )


def _is_established(definition: Raw) -> bool:
    conditions = (definition.get("status") or {}).get("conditions") or ()
    return any(each.get("type") == "Established" and each.get("status") == "True" for each in conditions)


def _all_have_schemas(spec: InternalSpec) -> bool:
    return schema_of(spec.top.validation) is not None or all(
        schema_of(part.validation) is not None for part in spec.own
    )


def has_invalid_ca(spec: Raw) -> bool:
    """Return whether the CA certificates of a CustomResourceDefinition's conversion webhook are invalid."""
    webhook: Raw = (spec.get("conversion") or {}).get("webhook") or {}
    bundle: str = (webhook.get("clientConfig") or {}).get("caBundle") or ""
    return bool(bundle and validate_ca_bundle(ROOT, bundle))


def _many_selectable(new: InternalSpec, old: InternalSpec) -> frozenset[str]:
    before = {part.version: part.selectable for part in old.parts()}
    return frozenset(
        part.version
        for part in new.parts()
        if len(before.get(part.version, ())) > MOST_SELECTABLE_FIELDS
        and same(list(part.selectable), list(before[part.version]))
    )


def _unchanged(new: InternalSpec, old: InternalSpec) -> frozenset[str]:
    before, after = _schemas_of_versions(old), _schemas_of_versions(new)
    found = {name for name, schema in after.items() if name in before and same(schema, before[name])}
    if new.own and new.own[0].version in found:  # this version decides for the schema that all versions share
        found.add("")
    return frozenset(found)


def _schemas_of_versions(spec: InternalSpec) -> dict[str, Raw | None]:
    common = schema_of(spec.top.validation)
    return {part.version: common if common is not None else schema_of(part.validation) for part in spec.own}


_WITHIN = (
    *((keyword, False) for keyword in ("items", "not", "additionalProperties", "additionalItems", *JUNCTORS)),
    *((keyword, True) for keyword in ("properties", "patternProperties", "definitions", "dependencies")),
)
"""The keywords that contain schemas; each value says whether the keyword contains a map of schemas."""


def schemas_within(raw: Raw) -> Iterator[Raw]:
    """Yield a schema and all non-empty schemas nested in it, under any keyword."""
    yield raw
    if not NESTING.isdisjoint(raw):
        yield from _below(raw)


def _below(raw: Raw) -> Iterator[Raw]:
    for keyword, is_map in _WITHIN:
        if not (value := raw.get(keyword)):
            continue
        for each in value.values() if is_map else value if isinstance(value, list) else (value,):
            if each and isinstance(each, dict):
                yield from schemas_within(each)


def _any(raw: Raw, is_so: Callable[[Raw], bool]) -> bool:
    return any(map(is_so, schemas_within(raw)))


def _has_unknown_type(raw: Raw) -> bool:
    return bool(raw.get("type")) and raw["type"] not in TYPES


def _has_unpruned_defaults(raw: Raw) -> bool:
    return has_defaults(raw) and is_structural(raw) and bool(pruned_defaults(Structural(raw)))


def has_defaults(raw: Raw) -> bool:
    """Return whether a schema contains defaults."""
    return _any(raw, lambda each: each.get("default") is not None)


def has_extensions(raw: Raw) -> bool:
    """Return whether a schema contains keywords that only structural schemas may have."""
    return _any(
        raw,
        lambda each: (
            bool(each.get(EMBEDDED) or each.get(INT_OR_STRING) or each.get(LIST_MAP_KEYS) or each.get(RULES))
            or each.get(PRESERVE) is not None
            or each.get(LIST_TYPE) is not None
        ),
    )
