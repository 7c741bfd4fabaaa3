"""Validates a whole CustomResourceDefinition that is created or updated.

Guarantees: validation errors and their paths are the same as in Kubernetes. If all versions of a
CustomResourceDefinition share a part, the path of its errors is one of `spec.validation`, `spec.subresources`,
`spec.additionalPrinterColumns` and `spec.selectableFields`. Of the metadata of a CustomResourceDefinition, this module
validates only the name and the approval annotation, because they depend on the spec.

Source: apiextensions-apiserver `pkg/apis/apiextensions/validation/validation.go`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ctrlmgr.api.field import FieldError, Path, invalid, not_supported, required, tentatively
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.engine.validation.object_meta import IMMUTABLE
from ctrlmgr.extensions.api_approval import approval_errors
from ctrlmgr.extensions.structural import Raw
from ctrlmgr.extensions.validation.conversion_validation import conversion_errors
from ctrlmgr.extensions.validation.definition_names import name_errors
from ctrlmgr.extensions.validation.error_formatting import printed_versions
from ctrlmgr.extensions.validation.internal_form import SPEC, InternalSpec, internal_spec, schema_of
from ctrlmgr.extensions.validation.ratcheting import Requirements, has_defaults, has_extensions, requirements
from ctrlmgr.extensions.validation.root_schema_validation import part_errors, version_errors

_STATUS = Path("status")
_SCOPES = ("Cluster", "Namespaced")


def validate_definition(new: Raw, old: Raw | None = None) -> list[FieldError]:
    """Return the validation errors of a CustomResourceDefinition with defaults, after the strategy has prepared it."""
    spec = internal_spec(new.get("spec") or {})
    needed = tentatively(lambda: requirements(spec, old))
    errors: list[FieldError] = []
    if old is None:
        errors += _name(new)
    errors += _spec(spec, needed)
    if old is not None:
        errors += _changes(spec.raw, old.get("spec") or {}, needed)
    errors += validate_status(new)
    errors += _stored_versions(new, spec)
    errors += approval_errors(new, old)
    if spec.raw.get("preserveUnknownFields") and not (old and (old.get("spec") or {}).get("preserveUnknownFields")):
        words = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        )
        errors.append(invalid(SPEC.child("preserveUnknownFields"), True, words))
    return errors


def validate_status(new: Raw) -> list[FieldError]:
    """Return the validation errors of the status of a CustomResourceDefinition."""
    accepted = (new.get("status") or {}).get("acceptedNames") or {}
    return list(name_errors(accepted, _STATUS.child("acceptedNames")))


def _name(definition: Raw) -> list[FieldError]:
    spec, metadata = definition.get("spec") or {}, definition.get("metadata") or {}
    expected = f"{(spec.get('names') or {}).get('plural') or ''}.{spec.get('group') or ''}"
    given = {field: metadata.get(field) or "" for field in ("generateName", "name")}
    return [
        invalid(Path("metadata").child(field), name, 'must be spec.names.plural+"."+spec.group')
        for field, name in given.items()
        if name not in ("", expected)
    ]


def _spec(spec: InternalSpec, needed: Requirements) -> Iterator[FieldError]:
    raw = spec.raw
    keeps_unknown = bool(raw.get("preserveUnknownFields"))
    yield from _group(raw.get("group") or "", SPEC.child("group"))
    yield from _one_of(raw.get("scope") or "", _SCOPES, SPEC.child("scope"))
    yield from _schemas_there(spec, needed, keeps_unknown)
    if keeps_unknown and any(map(has_defaults, spec.schemas())):
        words = "must be false in order to use defaults in the schema"
        yield invalid(SPEC.child("preserveUnknownFields"), True, words)
    if not keeps_unknown or any(has_defaults(each) or has_extensions(each) for each in spec.schemas()):
        needed = needed._replace(structural=True)
    yield from _versions(spec, needed)
    yield from _version_list(spec)
    yield from _names(raw.get("names") or {}, SPEC.child("names"))
    yield from part_errors(spec.top, needed, has_status=spec.has_status(spec.top))
    conversion = raw.get("conversion")
    if keeps_unknown and conversion is not None and conversion.get("strategy") != "None":
        at = SPEC.child("conversion", "strategy")
        yield invalid(at, conversion.get("strategy") or "", "must be None if spec.preserveUnknownFields is true")
    yield from conversion_errors(
        conversion, SPEC.child("conversion"), known_review=needed.known_review, checked_ca=needed.checked_ca
    )


def _group(group: str, path: Path) -> Iterator[FieldError]:
    if not group:
        yield required(path)
    elif problems := name_formats.dns1123_subdomain(group):
        yield invalid(path, group, ",".join(problems))
    elif "." not in group:
        yield invalid(path, group, "should be a domain with at least one dot")


def _one_of(value: str, accepted: Sequence[str], path: Path) -> Iterator[FieldError]:
    if not value:
        yield required(path)
    elif value not in accepted:
        yield not_supported(path, value, accepted)


def _schemas_there(spec: InternalSpec, needed: Requirements, keeps_unknown: bool) -> Iterator[FieldError]:
    if schema_of(spec.top.validation) is not None:
        return
    for part, version in zip(spec.own, spec.versions, strict=True):
        if schema_of(part.validation) is not None:
            continue
        at = part.path.child("schema", "openAPIV3Schema")
        if needed.schemas:
            yield required(at)
        elif not keeps_unknown and version.get("served"):
            yield required(at, "because otherwise all fields are pruned")


def _versions(spec: InternalSpec, needed: Requirements) -> Iterator[FieldError]:
    for part, version in zip(spec.own, spec.versions, strict=True):
        yield from _version_name(part.version, part.path.child("name"))
        yield from version_errors(version, part.path)
        yield from part_errors(part, needed, has_status=spec.has_status(part))


def _version_name(name: str, path: Path) -> Iterator[FieldError]:
    if problems := name_formats.dns1035_label(name):
        yield invalid(path, name, ",".join(problems))


def _version_list(spec: InternalSpec) -> Iterator[FieldError]:
    at = SPEC.child("versions")
    found = [part.version for part in spec.own]
    if len(set(found)) != len(found):
        yield invalid(at, printed_versions(spec), "must contain unique version names")
    if sum(bool(version.get("storage")) for version in spec.versions) != 1:
        yield invalid(at, printed_versions(spec), "must have exactly one version marked as storage version")
    if found and found[0]:
        yield from _version_name(found[0], SPEC.child("version"))


def _names(raw: Raw, path: Path) -> Iterator[FieldError]:
    for field in ("plural", "singular", "kind", "listKind"):
        if not raw.get(field):
            yield required(path.child(field))
    yield from name_errors(raw, path)


def _changes(new: Raw, old: Raw, needed: Requirements) -> Iterator[FieldError]:
    """Yield validation errors for changes of fields that are part of the storage key, such as the group."""
    fields: list[tuple[str, ...]] = [("group",), ("names", "plural")]
    if needed.same_names:
        fields = [("scope",), ("names", "kind"), *fields]
    for field in fields:
        value = _at(new, field)
        if value != _at(old, field):
            yield invalid(SPEC.child(*field), value, IMMUTABLE)


def _at(raw: Any, field: tuple[str, ...]) -> str:
    for name in field:
        raw = (raw or {}).get(name)
    return raw or ""


def _stored_versions(definition: Raw, spec: InternalSpec) -> Iterator[FieldError]:
    path = _STATUS.child("storedVersions")
    stored: Sequence[str] | None = (definition.get("status") or {}).get("storedVersions")
    if not stored:
        yield invalid(path, stored, "must have at least one stored version")
        return
    places = {name: at for at, name in enumerate(stored)}
    for version in spec.versions:  # as in Kubernetes, the second of two versions with the same name is not found
        name = version.get("name") or ""
        if places.pop(name, None) is None and version.get("storage"):
            yield invalid(path, list(stored), f"must have the storage version {name}")
    for name, at in places.items():
        yield invalid(path.at(at), name, _still_stored(name))


def _still_stored(name: str) -> str:
    return (
        f"missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a"
        f" storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
    )
