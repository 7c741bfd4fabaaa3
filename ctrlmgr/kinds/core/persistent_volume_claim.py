"""The strategy of PersistentVolumeClaims: validates the requested storage, its class, and its data source.

Source: Kubernetes `pkg/apis/core/v1/defaults.go`, `pkg/apis/core/validation/validation.go`,
`pkg/api/persistentvolumeclaim/util.go` and `pkg/registry/core/persistentvolumeclaim/strategy.go`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctrlmgr.api.field import FieldError, Path, forbidden, invalid, not_supported, required
from ctrlmgr.api.quantity import WHOLE, parse
from ctrlmgr.api.unstructured import Unstructured, metadata_of
from ctrlmgr.engine.strategy import Context, Strategy
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.engine.validation.quantities import is_native
from ctrlmgr.kinds.apps.status import STATUS
from ctrlmgr.kinds.apps.templates import SPEC, fill
from ctrlmgr.kinds.common_rules import each_problem, immutable
from ctrlmgr.kinds.core.claim_spec import claim_warnings, validate_claim_spec
from ctrlmgr.kinds.core.persistent_volume import CLASS_WARNING, STORAGE_CLASS
from ctrlmgr.kinds.core.pod.volumes.defaults import default_claim_spec
from ctrlmgr.kinds.spec_difference import difference

_COPIED = ("apiGroup", "kind", "name")
_IMMUTABLE = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
_RESIZES = (
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
)


class PersistentVolumeClaimStrategy(Strategy):
    """The strategy of the kind v1 PersistentVolumeClaim."""

    returns_deleted = True

    def default(self, obj: Unstructured) -> None:
        """Default the volume mode of a claim to Filesystem."""
        default_claim_spec(obj.setdefault("spec", {}))
        fill(obj.setdefault("status", {}), {"phase": "Pending"})

    def prepare_for_create(self, ctx: Context, obj: Unstructured) -> None:
        """Set the initial status of a claim, and make its two data source fields agree (KEP-1495)."""
        obj["status"] = {"phase": "Pending"}
        _prepare_sources(obj["spec"], {})

    def prepare_for_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> None:
        """Make dataSource and dataSourceRef of a claim agree."""
        if not ctx.subresource:
            _prepare_sources(new["spec"], old.get("spec") or {})

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate the `spec` of the object."""
        if ctx.subresource:
            return []
        return validate_claim_spec(obj.get("spec") or {}, SPEC, None if ctx.old is None else ctx.old.get("spec") or {})

    def validate_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> list[FieldError]:
        """Validate that only mutable fields have changed; in a write to `/status`, validate the status instead."""
        return _validate_status(new) if ctx.subresource else _validate_changes(new, old)

    def warnings(self, ctx: Context, obj: Unstructured, old: Unstructured | None) -> list[str]:
        """Warn about a storage class in an annotation of a claim, and about fractions of bytes."""
        if ctx.subresource:
            return []
        found = [CLASS_WARNING] if STORAGE_CLASS in (metadata_of(obj).get("annotations") or {}) else []
        return found + claim_warnings(obj.get("spec") or {}, SPEC)


def _prepare_sources(spec: dict[str, Any], before: Mapping[str, Any]) -> None:
    """Make dataSource and dataSourceRef agree.

    A dataSource of a kind that is not allowed is dropped. If one of the two fields is missing, the other field is
    copied to it.
    """
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    is_new = before.get("dataSource") is None and before.get("dataSourceRef") is None
    if is_new and reference is None and source is not None and not _is_claim_or_snapshot(source):
        del spec["dataSource"]
        return
    if source is not None and reference is None:
        spec["dataSourceRef"] = _copy(source)
    elif reference is not None and source is None and not reference.get("namespace"):
        spec["dataSource"] = _copy(reference)


def _is_claim_or_snapshot(source: Mapping[str, Any]) -> bool:
    kind = source.get("apiGroup") or "", source.get("kind")
    return kind in (("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot"))


def _copy(source: Mapping[str, Any]) -> dict[str, Any]:
    return {field: source[field] for field in _COPIED if field in source}


def _validate_changes(new: Unstructured, old: Unstructured) -> list[FieldError]:
    spec, before = dict(new.get("spec") or {}), dict(old.get("spec") or {})
    given, written = spec.copy(), before.copy()
    is_bound = (old.get("status") or {}).get("phase") == "Bound"
    if not before.get("volumeName"):
        _take(before, spec, "volumeName")
    errors = _validate_class(new, old, spec, before)
    if is_bound and (spec.get("resources") or {}).get("requests"):
        _take_size(spec, before)
    if is_bound:
        _take(spec, before, "volumeAttributesClassName")
    if spec != before:
        shown = difference("PersistentVolumeClaimSpec", before, spec)
        errors.append(forbidden(SPEC, f"{_IMMUTABLE}\n{shown}"))
    size, capacity = _size(given), parse(((old.get("status") or {}).get("capacity") or {}).get("storage") or "0")
    if size < _size(written) and size <= capacity:
        path = SPEC.child("resources", "requests", "storage")
        errors.append(forbidden(path, "field can not be less than status.capacity"))
    errors += immutable(given.get("volumeMode"), written.get("volumeMode"), Path("volumeMode"))
    return errors + _validate_attributes_class(given, old)


def _validate_class(
    new: Unstructured, old: Unstructured, spec: dict[str, Any], before: dict[str, Any]
) -> list[FieldError]:
    """Validate that the storage class is unchanged or set for the first time.

    After that, the function removes the storage class from both specs, so that their comparison ignores the storage
    class.
    """
    given = (metadata_of(new).get("annotations") or {}).get(STORAGE_CLASS)
    annotated = ((old.get("metadata") or {}).get("annotations") or {}).get(STORAGE_CLASS)
    requested, was = spec.get("storageClassName"), before.get("storageClassName")
    if annotated is not None and was is None and requested == annotated and given in (None, annotated):
        del spec["storageClassName"]
        return []
    if was is None and requested is not None and annotated in (None, requested):
        del spec["storageClassName"]
    path = Path("metadata.annotations").child(STORAGE_CLASS)
    return [] if (given or "") == (annotated or "") else [invalid(path, given or "", "field is immutable")]


def _take(to: dict[str, Any], source: Mapping[str, Any], field: str) -> None:
    if field in source:
        to[field] = source[field]
    else:
        to.pop(field, None)


def _take_size(spec: dict[str, Any], before: Mapping[str, Any]) -> None:
    resources = dict(spec["resources"])
    size = ((before.get("resources") or {}).get("requests") or {}).get("storage") or "0"
    resources["requests"] = {**resources["requests"], "storage": size}
    spec["resources"] = resources


def _size(spec: Mapping[str, Any]) -> int:
    return parse(((spec.get("resources") or {}).get("requests") or {}).get("storage") or "0")


def _validate_attributes_class(spec: Mapping[str, Any], old: Unstructured) -> list[FieldError]:
    """Validate that an update does not remove the VolumeAttributesClass."""
    field = "volumeAttributesClassName"
    requested, was = spec.get(field), (old.get("spec") or {}).get(field)
    current = (old.get("status") or {}).get("currentVolumeAttributesClassName")
    if requested == was or requested or current is None:
        return []
    gone = "nil" if requested is None else "empty string"
    detail = f"update to {gone} is forbidden when status.currentVolumeAttributesClassName is not nil"
    return [forbidden(SPEC.child(field), detail)]


def _validate_status(new: Unstructured) -> list[FieldError]:
    status = new.get("status") or {}
    errors = [] if (new.get("spec") or {}).get("accessModes") else [required("Spec.accessModes")]
    errors += _validate_amounts(status.get("capacity") or {}, STATUS.child("capacity"))
    path = STATUS.child("allocatedResourceStatuses")
    for resource, state in sorted((status.get("allocatedResourceStatuses") or {}).items()):
        errors += _validate_resource(resource, path)
        if state not in _RESIZES:
            errors.append(not_supported(path, resource, frozenset(_RESIZES)))
    allocated, path = status.get("allocatedResources") or {}, STATUS.child("allocatedResources")
    for resource in sorted(allocated):
        problems = _validate_resource(resource, path)
        errors += problems or _validate_amounts({resource: allocated[resource]}, path)
    return errors


def _validate_amounts(amounts: Mapping[str, str], path: Path) -> list[FieldError]:
    negative = {resource: parse(amount) for resource, amount in sorted(amounts.items()) if parse(amount) < 0}
    detail = "must be a valid resource quantity"
    return [invalid(path.key(resource), -(-amount // WHOLE), detail) for resource, amount in negative.items()]


def _validate_resource(resource: str, path: Path) -> list[FieldError]:
    if errors := each_problem(name_formats.qualified_name, resource, path):
        return errors
    return [not_supported(path, resource, ("storage",))] if is_native(resource) and resource != "storage" else []
