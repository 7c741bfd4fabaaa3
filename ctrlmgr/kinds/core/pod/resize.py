"""Validates writes to a pod's `/resize`, which change the cpu and memory of a running pod and of its containers.

Source: Kubernetes `pkg/apis/core/validation/validation.go`, `ValidatePodResize`, and
`pkg/registry/core/pod/strategy.go`, `dropNonResizeUpdates` (KEP-1287; KEP-5419 for whole pods).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ctrlmgr.api.field import FieldError, Path, forbidden, invalid
from ctrlmgr.api.quantity import parse
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.kinds.core.pod.annotations import MIRROR
from ctrlmgr.kinds.core.pod.pod_resources import amounts_of, quality_of_service
from ctrlmgr.kinds.core.pod.spec_updates import keep_all_but_spec
from ctrlmgr.kinds.core.pod.validation import SPEC, validate_pod

_COMPUTE = ("cpu", "memory")
_LISTS = ("containers", "initContainers")
_ONLY_COMPUTE = "only cpu and memory resources are mutable"
_ONLY_COMPUTE_OF_POD = "only cpu and memory resources are mutable at pod-level"
_ONLY_COMPUTE_OF_INIT = "only cpu and memory resources for init or sidecar containers are mutable"
_RESTARTS = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"


def keep_all_but_resources(new: Unstructured, old: Unstructured) -> None:
    """Revert, in place, everything in a write to `/resize` except resources and resize policies.

    The function does not change a write that adds, removes or reorders containers, so that validation refuses the
    write.
    """
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    if any(len(spec.get(field) or ()) != len(before.get(field) or ()) for field in _LISTS):
        return
    kept = {**before, **{field: _resized(spec[field], before[field]) for field in _LISTS if spec.get(field)}}
    kept.pop("resources", None)
    if spec.get("resources") is not None:
        kept["resources"] = spec["resources"]
    new["spec"] = kept
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
    """Validate a write to a pod's `/resize`."""
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    if reason := _impossible(before, old):
        return [forbidden("[]", reason)]
    errors = validate_pod(new)
    status = old.get("status") or {}
    if quality_of_service(before) != quality_of_service(spec):
        detail = "Pod QOS Class may not change as a result of resizing"
        errors.append(invalid(SPEC, status.get("qosClass") or "", detail))
    if not _node_can_resize(status):
        errors.append(forbidden(SPEC, "Pod running on node without support for resize"))
    errors += _validate_pod_level(spec.get("resources"), before.get("resources"))
    if status.get("nodeAllocatableResourceClaimStatuses"):
        errors.append(forbidden(SPEC, "pods with node allocatable resource claims cannot be resized"))
    if misplaced := [error for field in _LISTS for error in _misplaced(field, spec, before)]:
        return errors + misplaced
    for field in reversed(_LISTS):
        for index, pair in enumerate(zip(spec.get(field) or (), before.get(field) or (), strict=True)):
            errors += _removed(*pair, SPEC.child(field).at(index).child("resources"), "resource")
    main, init = (list(zip(spec.get(field) or (), before.get(field) or (), strict=True)) for field in _LISTS)
    errors += [forbidden(SPEC, _ONLY_COMPUTE) for pair in main if _without_compute(pair[0]) != _with_claims(pair[1])]
    for index, pair in enumerate(init):
        errors += _validate_init(*pair, SPEC.child("initContainers").at(index))
    return errors


def _impossible(before: Mapping[str, Any], old: Unstructured) -> str:
    if MIRROR in ((old.get("metadata") or {}).get("annotations") or {}):
        return "static pods cannot be resized"
    return "windows pods cannot be resized" if (before.get("os") or {}).get("name") == "windows" else ""


def _node_can_resize(status: Mapping[str, Any]) -> bool:
    """Return whether the status of the first running container has resources.

    If the status has resources, the kubelet of the pod can resize pods.
    """
    running = [each for each in status.get("containerStatuses") or () if (each.get("state") or {}).get("running")]
    return not running or running[0].get("resources") is not None


def _validate_pod_level(new: Mapping[str, Any] | None, old: Mapping[str, Any] | None) -> list[FieldError]:
    """Validate the resources at pod level in a write to `/resize`."""
    path = SPEC.child("resources")
    if not any((each or {}).get(field) for each in (new, old) for field in ("limits", "requests")):
        return []
    if old is not None and new is None:
        return [forbidden(path, "pod-level resources cannot be removed")]
    after, before = ({"resources": each or {}} for each in (new, old))
    errors = list(_removed(after, before, path, "pod-level resource"))
    if _rest(after) != _rest(before):
        errors.append(forbidden(SPEC, _ONLY_COMPUTE_OF_POD))
    return errors


def _misplaced(field: str, spec: Mapping[str, Any], before: Mapping[str, Any]) -> Iterator[FieldError]:
    """Yield errors for containers that were added, removed or reordered."""
    new, old = spec.get(field) or (), before.get(field) or ()
    if len(new) != len(old):
        yield forbidden(SPEC.child(field), f"{field} may not be added or removed on resize")
        return
    for index, (after, earlier) in enumerate(zip(new, old, strict=True)):
        if after.get("name") != earlier.get("name"):
            path = SPEC.child(field).at(index).child("name")
            yield forbidden(path, f"{field} may not be renamed or reordered on resize")


def _removed(new: Mapping[str, Any], old: Mapping[str, Any], path: Path, what: str) -> Iterator[FieldError]:
    for field in ("requests", "limits"):
        if not amounts_of(old, field).keys() <= amounts_of(new, field).keys():
            yield forbidden(path.child(field), f"{what} {field} cannot be removed")


def _validate_init(new: Mapping[str, Any], old: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    if _without_compute(new) != _with_claims(old):
        yield forbidden(path, _ONLY_COMPUTE_OF_INIT)
    if new.get("restartPolicy") == "Always" or new == old:
        return
    if any(each.get("restartPolicy") == "RestartContainer" for each in new.get("resizePolicy") or ()):
        yield forbidden(path, _RESTARTS)


def _rest(owner: Mapping[str, Any]) -> dict[str, Any]:
    """Return resources without cpu and memory, normalized so that equal amounts compare as equal."""
    kept = {
        field: {name: parse(amount) for name, amount in amounts_of(owner, field).items() if name not in _COMPUTE}
        for field in ("limits", "requests")
    }
    return {**kept, "claims": (owner.get("resources") or {}).get("claims") or None}


def _without_compute(container: Mapping[str, Any]) -> dict[str, Any]:
    """Return a resized container without its mutable fields, and without the resource claims that it may not have."""
    return {**_with_claims(container), "claims": None}


def _with_claims(container: Mapping[str, Any]) -> dict[str, Any]:
    others = {field: value for field, value in container.items() if field != "resources"}
    return {**others, **_rest(container)}
