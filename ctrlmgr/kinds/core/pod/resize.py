"""What a write to a pod's `/resize` may change: how much cpu and memory its containers ask for, while they run.

Rules come from Kubernetes' `pkg/apis/core/validation/validation.go`, `ValidatePodResize`, and
`pkg/registry/core/pod/strategy.go`, `dropNonResizeUpdates` (KEP-1287).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctrlmgr.api.field import FieldError, Path, forbidden, invalid
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.kinds.core.pod.annotations import MIRROR
from ctrlmgr.kinds.core.pod.resources import quality_of_service
from ctrlmgr.kinds.core.pod.update import keep_all_but_spec
from ctrlmgr.kinds.core.pod.validation import SPEC

_COMPUTE = ("cpu", "memory")
_LISTS = ("containers", "initContainers")
_ONLY_COMPUTE = "only cpu and memory resources are mutable"


def keep_all_but_resources(new: Unstructured, old: Unstructured) -> None:
    """Take nothing of a write to `/resize` but resources and resize policies, in place.

    If it adds, removes or reorders containers it stays as it is, for validation to refuse.
    """
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    if any(len(spec.get(field) or ()) != len(before.get(field) or ()) for field in _LISTS):
        return
    new["spec"] = {**before, **{field: _resized(spec[field], before[field]) for field in _LISTS if spec.get(field)}}
    keep_all_but_spec(new, old)


def _resized(containers: list[dict[str, Any]], before: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if [each.get("name") for each in containers] != [each.get("name") for each in before]:
        return containers
    fields = ("resources", "resizePolicy")
    return [
        {
            **{field: value for field, value in old.items() if field not in fields},
            **{field: new[field] for field in fields if field in new},
        }
        for new, old in zip(containers, before, strict=True)
    ]


def validate_resize(new: Unstructured, old: Unstructured) -> list[FieldError]:
    """Check a resize."""
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    if reason := _impossible(spec, before, old):
        return [forbidden("", reason)]
    if any(len(spec.get(field) or ()) != len(before.get(field) or ()) for field in _LISTS):
        return [forbidden(SPEC, _ONLY_COMPUTE)]
    errors: list[FieldError] = []
    status = old.get("status") or {}
    if quality_of_service(before) != quality_of_service(spec):
        detail = "Pod QOS Class may not change as a result of resizing"
        errors.append(invalid(SPEC, status.get("qosClass") or "", detail))
    if not _node_can_resize(status):
        errors.append(forbidden(SPEC, "Pod running on node without support for resize"))
    for field in _LISTS:
        for index, pair in enumerate(zip(spec.get(field) or (), before.get(field) or (), strict=True)):
            errors += _validate_container(*pair, field == "initContainers", SPEC.child(field).at(index))
    others = [field for field in {**before, **spec} if field not in _LISTS and spec.get(field) != before.get(field)]
    return errors or [forbidden(SPEC, _ONLY_COMPUTE) for _ in others[:1]]


def _impossible(spec: Mapping[str, Any], before: Mapping[str, Any], old: Unstructured) -> str:
    if any((each.get("resources") or {}).get(field) for each in (spec, before) for field in ("limits", "requests")):
        return "pods with pod-level resources cannot be resized"
    if MIRROR in ((old.get("metadata") or {}).get("annotations") or {}):
        return "static pods cannot be resized"
    return "windows pods cannot be resized" if (before.get("os") or {}).get("name") == "windows" else ""


def _node_can_resize(status: Mapping[str, Any]) -> bool:
    """Say whether the first running container tells of its resources, as kubelets that can resize make it do."""
    running = [each for each in status.get("containerStatuses") or () if (each.get("state") or {}).get("running")]
    return not running or running[0].get("resources") is not None


def _validate_container(new: dict[str, Any], old: dict[str, Any], initial: bool, path: Path) -> list[FieldError]:
    restartable = new.get("restartPolicy") == "Always"
    if initial and not restartable:
        if new == old:
            return []
        return [forbidden(SPEC, "resources for non-sidecar init containers are immutable")]
    errors: list[FieldError] = []
    for field in ("requests", "limits"):
        after, before = _amounts(new, field), _amounts(old, field)
        if not before.keys() <= after.keys():
            errors.append(forbidden(path.child("resources", field), f"resource {field} cannot be removed"))
    if _without_compute(new) != _without_compute(old):
        what = "only cpu and memory resources for sidecar containers are mutable" if initial else _ONLY_COMPUTE
        errors.append(forbidden(SPEC, what))
    return errors


def _amounts(container: Mapping[str, Any], field: str) -> Mapping[str, str]:
    return (container.get("resources") or {}).get(field) or {}


def _without_compute(container: Mapping[str, Any]) -> dict[str, Any]:
    kept = {
        field: {name: amount for name, amount in _amounts(container, field).items() if name not in _COMPUTE}
        for field in ("limits", "requests")
    }
    claims = (container.get("resources") or {}).get("claims")
    others = {field: value for field, value in container.items() if field not in ("resources", "resizePolicy")}
    return {**others, "resources": kept, "claims": claims}
