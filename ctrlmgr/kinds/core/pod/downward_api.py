"""Validates references to a pod's own fields and resources, in environment variables and downward API volumes.

Source: Kubernetes `pkg/apis/core/validation/validation.go` and `pkg/apis/core/pods/helpers.go`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctrlmgr.api.field import FieldError, Path, invalid, not_supported, required
from ctrlmgr.api.quantity import parse
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.kinds.common_rules import each_problem

VOLUME_FIELDS = frozenset(
    ("metadata.name", "metadata.namespace", "metadata.labels", "metadata.annotations", "metadata.uid")
)
ENVIRONMENT_FIELDS = frozenset(
    (
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "spec.nodeName",
        "spec.serviceAccountName",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
    )
)
_LABELS = VOLUME_FIELDS | ENVIRONMENT_FIELDS | {"spec.restartPolicy", "spec.schedulerName", "status.phase"}
_RESOURCES = frozenset(
    f"{kind}.{name}" for kind in ("limits", "requests") for name in ("cpu", "memory", "ephemeral-storage")
)
_HUGE_PAGES = ("requests.hugepages-", "limits.hugepages-")
_CPU_UNITS = ("1m", "1")
_BYTE_UNITS = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")


def validate_field_reference(reference: Mapping[str, Any], allowed: frozenset[str], path: Path) -> list[FieldError]:
    """Validate an ObjectFieldSelector; `allowed` contains the fields of the pod to which it may refer."""
    for field in ("apiVersion", "fieldPath"):
        if not reference.get(field):
            return [required(path.child(field))]
    version, label = reference["apiVersion"], reference["fieldPath"]
    name, key, subscripted = _split_subscript(label)
    if version != "v1":
        return [_unconvertible(path, label, f"unsupported pod version: {version}")]
    if subscripted:
        if name not in ("metadata.annotations", "metadata.labels"):
            return [_unconvertible(path, label, f"field label does not support subscript: {label}")]
        return each_problem(name_formats.qualified_name, key.lower() if name == "metadata.annotations" else key, path)
    name = "spec.nodeName" if name == "spec.host" else name
    if name not in _LABELS:
        return [_unconvertible(path, label, f"field label not supported: {name}")]
    return [] if name in allowed else [not_supported(path.child("fieldPath"), name, allowed)]


def _split_subscript(label: str) -> tuple[str, str, bool]:
    """Split `path['key']` into the path, the key, and whether a key is given (fieldpath.SplitMaybeSubscriptedPath)."""
    name, bracket, key = label.removesuffix("']").partition("['")
    return (name, key, True) if label.endswith("']") and bracket and name else (label, "", False)


def _unconvertible(path: Path, label: str, problem: str) -> FieldError:
    return invalid(path.child("fieldPath"), label, f"error converting fieldPath: {problem}")


def validate_resource_reference(reference: Mapping[str, Any], path: Path, *, named: bool) -> list[FieldError]:
    """Validate a ResourceFieldSelector; if `named` is set, the selector must contain the name of a container."""
    resource = reference.get("resource") or ""
    errors: list[FieldError] = []
    if named and not reference.get("containerName"):
        errors.append(required(path.child("containerName")))
    elif not resource:
        errors.append(required(path.child("resource")))
    elif resource not in _RESOURCES and not resource.startswith(_HUGE_PAGES):
        errors.append(not_supported(path.child("resource"), resource, _RESOURCES))
    return errors + _validate_divisor(resource, reference.get("divisor") or "0", path)


def _validate_divisor(resource: str, divisor: str, path: Path) -> list[FieldError]:
    kind = "hugepages" if resource.startswith(_HUGE_PAGES) else resource.partition(".")[2]
    if not parse(divisor) or (kind != "hugepages" and resource not in _RESOURCES):
        return []
    if kind == "cpu":
        detail = "only divisor's values 1m and 1 are supported with the cpu resource"
        return [] if divisor in _CPU_UNITS else [invalid(path.child("divisor"), resource, detail)]
    if divisor in _BYTE_UNITS:
        return []
    what = "local ephemeral storage" if kind == "ephemeral-storage" else kind
    detail = f"only divisor's values {', '.join(_BYTE_UNITS)} are supported with the {what} resource"
    return [invalid(path.child("divisor"), resource, detail)]
