"""Validates the specs of PersistentVolumeClaims and of volume claim templates.

Source: Kubernetes `pkg/apis/core/validation/validation.go`, `ValidatePersistentVolumeClaimSpec`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ctrlmgr.api.field import FieldError, Path, forbidden, invalid, not_supported, required, tentatively
from ctrlmgr.api.quantity import WHOLE, parse
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.engine.validation.label_validation import validate_label_selector
from ctrlmgr.kinds.common_rules import each_problem

NOT_POSITIVE = "must be greater than zero"
_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_DATA_SOURCES = ("dataSource", "dataSourceRef")
_VOLUME_MODES = ("Block", "Filesystem")
# In the error about differing data sources, Kubernetes shows the path of the other field as the value. The Go type of a
# path has no public fields.
_PATH: dict[str, Any] = {}
_CORE_GROUP = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"


def validate_claim_spec(
    spec: Mapping[str, Any], path: Path, before: Mapping[str, Any] | None = None
) -> list[FieldError]:
    """Validate a PersistentVolumeClaimSpec.

    `before` is the old PersistentVolumeClaimSpec; None for a new claim. In an update, a selector may keep invalid
    values, and the group of an unchanged data source is not validated again.
    """
    before = before or {}
    lenient = bool(tentatively(lambda: validate_label_selector(before.get("selector"), Path())))
    errors = [] if spec.get("accessModes") else [_no_mode(path)]
    errors += validate_label_selector(spec.get("selector"), path.child("selector"), invalid_values_allowed=lenient)
    errors += validate_access_modes(spec.get("accessModes") or (), path.child("accessModes"))
    errors += _validate_size(spec.get("resources") or {}, path.child("resources").key("storage"))
    errors += _validate_class(spec, "storageClassName", path)
    errors += validate_volume_mode(spec, path)
    any_group = any((before.get(field) or {}).get("apiGroup") is not None for field in _DATA_SOURCES)
    for field in _DATA_SOURCES:
        if (source := spec.get(field)) is not None:
            errors += _validate_data_source(source, path.child(field), any_group=any_group)
    errors += _validate_sources_agree(spec, path)
    return errors + _validate_class(spec, "volumeAttributesClassName", path)


def claim_warnings(spec: Mapping[str, Any], path: Path) -> list[str]:
    """Return the warnings for a PersistentVolumeClaimSpec: its amounts must not have fractions of bytes."""
    found: list[str] = []
    for field in ("requests", "limits"):
        size = ((spec.get("resources") or {}).get(field) or {}).get("storage") or "0"
        if parse(size) % WHOLE:
            below = path.child("resources", field).key("storage")
            found.append(f'{below}: fractional byte value "{size}" is invalid, must be an integer')
    return found


def _validate_class(spec: Mapping[str, Any], field: str, path: Path) -> list[FieldError]:
    name = spec.get(field)
    return each_problem(name_formats.dns1123_subdomain, name, path.child(field)) if name else []


def _no_mode(path: Path) -> FieldError:
    return required(path.child("accessModes"), "at least 1 access mode is required")


def validate_access_modes(modes: Sequence[str], path: Path) -> list[FieldError]:
    """Validate the access modes of a volume."""
    errors = [not_supported(path, mode, _ACCESS_MODES) for mode in modes if mode not in _ACCESS_MODES]
    if "ReadWriteOncePod" in modes and any(mode in _ACCESS_MODES[:3] for mode in modes):
        errors.append(forbidden(path, "may not use ReadWriteOncePod with other access modes"))
    return errors


def validate_volume_mode(spec: Mapping[str, Any], path: Path) -> list[FieldError]:
    """Validate the volume mode, which must be Filesystem or Block."""
    mode = spec.get("volumeMode")
    if mode is None or mode in _VOLUME_MODES:
        return []
    return [not_supported(path.child("volumeMode"), mode, _VOLUME_MODES)]


def _validate_size(resources: Mapping[str, Any], path: Path) -> list[FieldError]:
    size = (resources.get("requests") or {}).get("storage")
    if size is None:
        return [required(path)]
    return [] if parse(size) > 0 else [invalid(path, size, NOT_POSITIVE)]


def _validate_data_source(source: Mapping[str, Any], path: Path, *, any_group: bool) -> list[FieldError]:
    errors = [required(path.child(field)) for field in ("name", "kind") if not source.get(field)]
    group, kind = source.get("apiGroup") or "", source.get("kind") or ""
    if not group and kind != "PersistentVolumeClaim":
        errors.append(invalid(path, kind, _CORE_GROUP))
    if group and not any_group:
        errors += each_problem(name_formats.dns1123_subdomain, group, path.child("apiGroup"))
    if namespace := source.get("namespace"):
        errors += each_problem(name_formats.dns1123_label, namespace, path.child("namespace"))
    return errors


def _validate_sources_agree(spec: Mapping[str, Any], path: Path) -> list[FieldError]:
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is None or reference is None:
        return []
    if reference.get("namespace"):
        return [invalid(path, _PATH, "may not be specified when dataSourceRef.namespace is specified")]
    if any(source.get(field) != reference.get(field) for field in ("apiGroup", "kind", "name")):
        return [invalid(path, _PATH, "must match dataSourceRef")]
    return []
