"""Validates object metadata, on creation and on update, for every kind.

Guarantees: the errors equal Kubernetes' errors, in the same order and number. Kubernetes validates metadata in several
layers. If two layers find the same error, a 422 response lists this error twice in its causes, but its message contains
the error once. Therefore callers must not omit one of these passes:

- `validate_metadata` for a new object makes the kind's own pass, including the kind's `name_check`.
- `update_errors` for a changed object makes the pass of the generic layer, and then the passes of the kind itself.

The metadata to validate is in the kind's decoded form: types are correct, times have Kubernetes' form, and nulls may be
absent. Rules come from apimachinery's `pkg/api/validation/objectmeta.go`, `pkg/apis/meta/v1/validation`, the finalizer
rule of `pkg/apis/core/validation` and the order of `registry/rest/{create,update}.go`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ctrlmgr.api.field import MOST_ERRORS, FieldError, Path, forbidden, invalid, required, too_long
from ctrlmgr.caches.memoized import memoized
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.engine.validation.label_validation import validate_labels

METADATA = Path("metadata")
IMMUTABLE = "field is immutable"
ANNOTATIONS_SIZE = 256 * 1024
FIELD_MANAGER_LENGTH = 128
SUBRESOURCE_LENGTH = 256
ORPHAN = "orphan"
FOREGROUND_DELETION = "foregroundDeletion"
_OPERATIONS = ("Apply", "Update")
_SHORT = FIELD_MANAGER_LENGTH // 4
"""A name with at most this many characters cannot exceed the limits in bytes."""
_COLLECTIONS = ("labels", "annotations", "ownerReferences", "finalizers")
_LONGEST = 4096
"""The maximum size of memoized collections, in bytes of JSON."""
_encode, _decode = msgspec.json.Encoder().encode, msgspec.json.Decoder(list[Any]).decode
_STANDARD_FINALIZERS = frozenset(("kubernetes", ORPHAN, FOREGROUND_DELETION))

_MAINTAINED = {"managedFields": None, "resourceVersion": None}

# The fields that the generic layer and the kind compare on every update, each with Go's value of an absent field.
_IMMUTABLE_FIELDS = (
    ("name", ""),
    ("namespace", ""),
    ("uid", ""),
    ("creationTimestamp", None),
    ("deletionTimestamp", None),
    ("deletionGracePeriodSeconds", None),
)


def update_errors(
    new: Mapping[str, Any],
    old: Mapping[str, Any],
    *,
    namespaced: bool,
    name_check: name_formats.NameCheck,
    revalidated: int,
    compared: bool = True,
    any_finalizer: bool = False,
) -> list[FieldError]:
    """Return the errors of a changed object's metadata.

    The argument `compared` says whether the kind itself also compares metadata, in addition to the generic layer
    (`Strategy.compares_metadata`). The argument `revalidated` is the number of times that this update repeats the
    validation of a creation: `Strategy.revalidates` for the object itself, or 0 for a subresource.
    """
    collections = _validate_collections(new, METADATA)
    changes = collections if _is_unchanged(new, old) else _validate_changes(new, old, METADATA) + collections
    finalizers = [] if any_finalizer else _known_finalizers(new, METADATA)
    errors = _validate_identity(new, namespaced, name_formats.path_segment_name, METADATA) + collections + changes
    if compared:
        errors += changes + finalizers
    if revalidated:
        errors += (_validate_identity(new, namespaced, name_check, METADATA) + collections + finalizers) * revalidated
    return errors


def validate_metadata(
    metadata: Mapping[str, Any],
    *,
    namespaced: bool,
    name_check: name_formats.NameCheck,
    path: Path = METADATA,
    any_finalizer: bool = False,
) -> list[FieldError]:
    """Return the errors of a new object's metadata; its name must have been generated already.

    The argument `any_finalizer` allows finalizers that are neither `domain/name` nor Kubernetes' own
    (`Strategy.any_finalizer`).
    """
    errors = _validate_identity(metadata, namespaced, name_check, path)
    errors += _validate_collections(metadata, path)
    if not any_finalizer:
        errors += _known_finalizers(metadata, path)
    return errors


def _validate_identity(
    metadata: Mapping[str, Any], namespaced: bool, name_check: name_formats.NameCheck, path: Path
) -> list[FieldError]:
    errors: list[FieldError] = []
    if prefix := metadata.get("generateName"):
        errors += [invalid(path.child("generateName"), prefix, each) for each in name_check(prefix, True)]
    if name := metadata.get("name"):
        if problems := name_check(name, False):
            errors += [invalid(path.child("name"), name, each) for each in problems]
    else:
        errors.append(required(path.child("name"), "name or generateName is required"))
    errors += _validate_namespace(metadata.get("namespace") or "", namespaced, path)
    if (metadata.get("generation") or 0) < 0:
        errors.append(invalid(path.child("generation"), metadata["generation"], "must be greater than or equal to 0"))
    return errors


def _validate_namespace(namespace: str, namespaced: bool, path: Path) -> list[FieldError]:
    if not namespaced:
        return [forbidden(path.child("namespace"), "not allowed on this type")] if namespace else []
    if not namespace:
        return [required(path.child("namespace"))]
    return [invalid(path.child("namespace"), namespace, each) for each in name_formats.dns1123_label(namespace)]


def _validate_collections(metadata: Mapping[str, Any], path: Path) -> list[FieldError]:
    """Validate the fields whose rules are the same for creation and update.

    Results are memoized, because many objects have equal collections.
    """
    encoded = _encode([metadata.get(field) for field in _COLLECTIONS])
    errors = [] if len(encoded) <= _LONGEST and _are_right(encoded) else _validate_said(metadata, path)
    if managed := metadata.get("managedFields"):
        errors += validate_managed_fields(managed, path.child("managedFields"))
    return errors


@memoized(entries=2048, longest=_LONGEST)
def _are_right(encoded: bytes) -> bool:
    """Return whether collections of metadata, given as JSON, are valid."""
    return not _validate_said(dict(zip(_COLLECTIONS, _decode(encoded), strict=True)), METADATA)


def _validate_said(metadata: Mapping[str, Any], path: Path) -> list[FieldError]:
    """Validate the collections of metadata that clients set.

    Collections that are absent or empty are not validated.
    """
    errors: list[FieldError] = []
    if labels := metadata.get("labels"):
        errors += validate_labels(labels, path.child("labels"))
    if annotations := metadata.get("annotations"):
        errors += validate_annotations(annotations, path.child("annotations"))
    if owners := metadata.get("ownerReferences"):
        errors += validate_owner_references(owners, path.child("ownerReferences"))
    if finalizers := metadata.get("finalizers"):
        errors += _validate_finalizers(finalizers, path.child("finalizers"))
    return errors


def validate_annotations(annotations: Mapping[str, str], path: Path) -> list[FieldError]:
    """Validate annotations: keys follow the rules of label keys, ignoring case, and the total is at most 256 KiB."""
    errors = [invalid(path, key, each) for key in annotations for each in name_formats.qualified_name(key.lower())]
    if (
        sum(name_formats.length(key) + name_formats.length(value) for key, value in annotations.items())
        > ANNOTATIONS_SIZE
    ):
        errors.append(too_long(path, ANNOTATIONS_SIZE))
    return errors


def validate_owner_references(owners: Sequence[Mapping[str, Any]], path: Path) -> list[FieldError]:
    """Validate owner references: each must be complete and must not name an Event, and at most one is a controller."""
    errors: list[FieldError] = []
    controller = ""
    for owner in owners:
        errors += _validate_owner_reference(owner, path)
        if not owner.get("controller"):
            continue
        named = f"{owner.get('kind', '')}/{owner.get('name', '')}"
        if not controller:
            controller = named
        elif len(errors) < MOST_ERRORS:  # each error contains all references: format only those that are listed
            found = f'Found "true" in references for {controller} and {named}'
            errors.append(invalid(path, owners, f"Only one reference can have Controller set to true. {found}"))
    return errors


def _validate_owner_reference(owner: Mapping[str, Any], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    api_version = owner.get("apiVersion", "")
    if not api_version or api_version.count("/") > 1 or api_version.endswith("/"):
        errors.append(invalid(path.child("apiVersion"), api_version, "version must not be empty"))
    errors += [
        invalid(path.child(field), owner.get(field, ""), "must not be empty")
        for field in ("kind", "name", "uid")
        if not owner.get(field)
    ]
    if owner.get("kind") == "Event" and api_version in ("v1", "/v1"):
        errors.append(invalid(path, owner, "/v1, Kind=Event is disallowed from being an owner"))
    return errors


def _validate_finalizers(finalizers: Sequence[str], path: Path) -> list[FieldError]:
    """Validate the form of finalizers, and that at most one finalizer of the garbage collector is set."""
    errors = [invalid(path, each, problem) for each in finalizers for problem in name_formats.qualified_name(each)]
    if ORPHAN in finalizers and FOREGROUND_DELETION in finalizers:
        detail = f"finalizer {ORPHAN} and {FOREGROUND_DELETION} cannot be both set"
        errors.append(invalid(path, list(finalizers), detail))
    return errors


def _known_finalizers(metadata: Mapping[str, Any], path: Path) -> list[FieldError]:
    finalizers: Sequence[str] = metadata.get("finalizers") or ()
    if not finalizers:
        return []
    below = path.child("finalizers")
    return [error for at, each in enumerate(finalizers) for error in known_finalizer(each, below.at(at))]


def known_finalizer(name: str, path: Path) -> list[FieldError]:
    """Validate that a finalizer is `domain/name` or one of Kubernetes' own finalizers (`validateKubeFinalizerName`)."""
    if "/" in name or name in _STANDARD_FINALIZERS:
        return []
    return [invalid(path, name, "name is neither a standard finalizer name nor is it fully qualified")]


def validate_finalizer(name: str, path: Path) -> list[FieldError]:
    """Validate a finalizer in a field other than metadata.finalizers, such as a Namespace's spec.finalizers."""
    return [invalid(path, name, each) for each in name_formats.qualified_name(name)] + known_finalizer(name, path)


def validate_field_manager(manager: str, path: Path) -> list[FieldError]:
    """Validate a field manager's name, which has up to 128 printable characters."""
    errors = [too_long(path, FIELD_MANAGER_LENGTH)] if name_formats.length(manager) > FIELD_MANAGER_LENGTH else []
    if manager.isprintable():
        return errors
    at = 0
    for character in manager:
        if not character.isprintable() and len(errors) < MOST_ERRORS:  # each error contains the whole name
            detail = f"invalid character U+{ord(character):04X} (at position {at})"
            errors.append(invalid(path, manager, detail))
        at += name_formats.length(character)
    return errors


def validate_managed_fields(entries: Sequence[Mapping[str, Any]], path: Path) -> list[FieldError]:
    """Validate the entries of metadata.managedFields in a request."""
    errors: list[FieldError] = []
    for index, entry in enumerate(entries):
        if _is_usual(entry):
            continue
        below = path.at(index)
        operation = entry.get("operation", "")
        if operation not in _OPERATIONS:
            errors.append(invalid(below.child("operation"), operation, "must be `Apply` or `Update`"))
        fields_type = entry.get("fieldsType", "")
        if fields_type not in ("", "FieldsV1"):
            errors.append(invalid(below.child("fieldsType"), fields_type, "must be `FieldsV1`"))
        errors += validate_field_manager(entry.get("manager", ""), below.child("manager"))
        if name_formats.length(entry.get("subresource", "")) > SUBRESOURCE_LENGTH:
            errors.append(too_long(below.child("subresource"), SUBRESOURCE_LENGTH))
    return errors


def _is_usual(entry: Mapping[str, Any]) -> bool:
    """Return whether a quick check shows that an entry is valid.

    An entry is valid if the server created it and its manager's name is short.

    Most entries pass the quick check.
    """
    manager = entry.get("manager", "")
    return (
        entry.get("operation") in _OPERATIONS
        and entry.get("fieldsType") == "FieldsV1"
        and len(manager) <= _SHORT
        and manager.isprintable()
        and len(entry.get("subresource", "")) <= _SHORT
    )


def _is_unchanged(new: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
    """Return whether metadata is unchanged, except for its resourceVersion and managedFields.

    The function returns False for an object that is being deleted.
    """
    if not new.get("resourceVersion") or old.get("deletionTimestamp"):
        return False
    return {**new, **_MAINTAINED} == {**old, **_MAINTAINED}


def _validate_changes(new: Mapping[str, Any], old: Mapping[str, Any], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    if old.get("deletionTimestamp"):
        errors += _no_new_finalizers(new.get("finalizers") or (), old.get("finalizers") or (), path)
    if not new.get("resourceVersion"):
        errors.append(invalid(path.child("resourceVersion"), "", "must be specified for an update"))
    generation = new.get("generation") or 0
    if generation < (old.get("generation") or 0):
        errors.append(invalid(path.child("generation"), generation, "must not be decremented"))
    for field, absent in _IMMUTABLE_FIELDS:
        value = new.get(field, absent)
        if value != old.get(field, absent):
            errors.append(invalid(path.child(field), value, IMMUTABLE))
    return errors


def _no_new_finalizers(new: Sequence[str], old: Sequence[str], path: Path) -> list[FieldError]:
    added = sorted(set(new).difference(old))
    if not added:
        return []
    shown = ", ".join(f'"{each}"' for each in added)
    detail = f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{shown}}}"
    return [forbidden(path.child("finalizers"), detail)]
