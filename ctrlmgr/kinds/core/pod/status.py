"""Validates updates of pod statuses.

If a write omits required fields, their old values are kept. Terminated containers stay terminated. Source: Kubernetes
`pkg/registry/core/pod/strategy.go` (`podStatusStrategy`) and `pkg/apis/core/validation/validation.go`,
`ValidatePodStatusUpdate`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ctrlmgr.api.field import FieldError, Path, duplicate, forbidden, invalid, required, too_long
from ctrlmgr.api.unstructured import Unstructured, metadata_of
from ctrlmgr.engine.features.gates import is_on
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.engine.validation.ip_validation import is_ipv6, validate_legacy_ip
from ctrlmgr.kinds.common_rules import each_problem, immutable
from ctrlmgr.kinds.core.pod.allocated_devices import (
    validate_allocated,
    validate_extended_resources,
    validate_node_allocatable,
)
from ctrlmgr.kinds.core.pod.annotations import validate_annotation_update
from ctrlmgr.kinds.core.pod.validation import ANNOTATIONS

STATUS = Path("status")
_GENERATION = STATUS.child("observedGeneration")
_NOMINATED = STATUS.child("nominatedNodeName")
_QUALITY = STATUS.child("qosClass")
_SYSTEM_CONDITIONS = ("PodScheduled", "Ready", "Initialized")
_LONGEST_IMAGE = 256
_ONE_PER_FAMILY = "may specify no more than one IP for each IP family"
NEGATIVE_GENERATION = "must be a non-negative integer"
_NOT_AGAIN = "may not be transitioned to non-terminated state"
_LISTS = {
    "containerStatuses": "containers",
    "initContainerStatuses": "initContainers",
    "ephemeralContainerStatuses": "ephemeralContainers",
}


def prepare_status(new: Unstructured, old: Unstructured) -> None:
    """Keep, in place, the fields that a status update may omit but cannot remove."""
    status: dict[str, Any] = new.setdefault("status", {})
    before = old.get("status") or {}
    if not status.get("qosClass") and before.get("qosClass"):
        status["qosClass"] = before["qosClass"]
    _keep_owners(metadata_of(new), old.get("metadata") or {})
    if not status.get("observedGeneration") and before.get("observedGeneration"):
        status["observedGeneration"] = before["observedGeneration"]
    observed: dict[str, list[int]] = {}
    for condition in before.get("conditions") or ():
        observed.setdefault(condition.get("type") or "", []).append(condition.get("observedGeneration") or 0)
    for condition in status.get("conditions") or ():
        earlier = observed.get(condition.get("type") or "")
        generation = earlier.pop(0) if earlier else 0
        if generation and not condition.get("observedGeneration"):
            condition["observedGeneration"] = generation


def _keep_owners(new: dict[str, Any], old: Mapping[str, Any]) -> None:
    new.pop("ownerReferences", None)
    if owners := old.get("ownerReferences"):
        new["ownerReferences"] = owners


def validate_status_update(new: Unstructured, old: Unstructured) -> list[FieldError]:
    """Validate an update of a pod's status."""
    spec, status, before = new.get("spec") or {}, new.get("status") or {}, old.get("status") or {}
    errors = validate_annotation_update(new, old, ANNOTATIONS)
    errors += _validate_conditions(status.get("conditions") or ())
    errors += _validate_nomination(status, before, old.get("spec") or {})
    if (generation := status.get("observedGeneration") or 0) < 0:
        errors.append(invalid(_GENERATION, generation, NEGATIVE_GENERATION))
    errors += immutable(status.get("qosClass", ""), before.get("qosClass", ""), _QUALITY)
    if not before.keys().isdisjoint(_LISTS):
        errors += _validate_transitions(old.get("spec") or {}, status, before)
    if claims := status.get("resourceClaimStatuses"):
        errors += _validate_claims(claims, spec)
    if allocatable := status.get("nodeAllocatableResourceClaimStatuses"):
        errors += validate_node_allocatable(allocatable, status, spec, STATUS)
    if (extended := status.get("extendedResourceClaimStatus")) is not None:
        errors += validate_extended_resources(extended, spec, STATUS.child("extendedResourceClaimStatus"))
    errors += _validate_addresses(status, before, "podIPs") + _validate_host_addresses(status, before)
    if status.keys().isdisjoint(_LISTS):
        return errors
    return errors + _validate_containers(status, spec)


def _validate_containers(status: Mapping[str, Any], spec: Mapping[str, Any]) -> list[FieldError]:
    """Validate the users of containers, and the health of the containers' resources."""
    places = [
        (field, STATUS.child(field).at(index), container)
        for field in _LISTS
        for index, container in enumerate(status.get(field) or ())
    ]
    errors: list[FieldError] = []
    for _, at, container in places:
        errors += _validate_user(container.get("user"), spec, at.child("user", "linux"))
    for field, at, container in places:
        if allocated := container.get("allocatedResourcesStatus"):
            owner = _named(container.get("name"), spec.get(_LISTS[field]) or ())
            errors += validate_allocated(allocated, field, owner, at.child("allocatedResourcesStatus"))
    if is_on("ImageVolumeWithDigest"):
        for _, at, container in places:
            for index, mount in enumerate(container.get("volumeMounts") or ()):
                below = at.child("volumeMounts").at(index).child("volumeStatus", "imageVolumeStatus")
                errors += _validate_image((mount.get("volumeStatus") or {}).get("image"), below)
    return errors


def _validate_image(image: Mapping[str, Any] | None, path: Path) -> list[FieldError]:
    if image is None:
        return []
    reference, below = image.get("imageRef") or "", path.child("imageRef")
    errors = [] if reference else [required(below, "imageRef must not be empty")]
    if name_formats.length(reference) > _LONGEST_IMAGE:
        errors.append(too_long(below, _LONGEST_IMAGE))
    return errors


def _validate_nomination(
    status: Mapping[str, Any], before: Mapping[str, Any], spec: Mapping[str, Any]
) -> list[FieldError]:
    nominated = status.get("nominatedNodeName") or ""
    if not nominated or nominated == before.get("nominatedNodeName"):
        return []
    errors = each_problem(name_formats.dns1123_subdomain, nominated, _NOMINATED)
    if spec.get("nodeName"):
        errors.append(forbidden(_NOMINATED, "may not be set on pods that are already bound to a node"))
    return errors


def _named(name: str | None, containers: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    return next((each for each in containers if each.get("name") == name), None)


def _validate_conditions(conditions: Sequence[Mapping[str, Any]]) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, condition in enumerate(conditions):
        at, type_ = STATUS.child("conditions").at(index), condition.get("type") or ""
        if (generation := condition.get("observedGeneration") or 0) < 0:
            errors.append(invalid(at.child("observedGeneration"), generation, NEGATIVE_GENERATION))
        if type_ not in _SYSTEM_CONDITIONS:
            errors += each_problem(name_formats.qualified_name, type_, at.child("Type"))
    return errors


def _validate_transitions(
    spec: Mapping[str, Any], status: Mapping[str, Any], before: Mapping[str, Any]
) -> list[FieldError]:
    """Validate that a terminated container runs again only if the restart policy of the pod or container allows it."""
    lists = ["ephemeralContainerStatuses"] if _may_all_restart(spec) else [*_LISTS]
    errors: list[FieldError] = []
    for field in lists:
        after = {each.get("name"): each for each in reversed(status.get(field) or ())}
        for index, old in enumerate(before.get(field) or ()):
            ended, new = (old.get("state") or {}).get("terminated"), after.get(old.get("name"))
            if ended is None or new is None or (new.get("state") or {}).get("terminated") is not None:
                continue
            if not _may_restart(spec, field, old.get("name"), ended.get("exitCode") or 0):
                errors.append(forbidden(STATUS.child(field).at(index).child("state"), _NOT_AGAIN))
    return errors


def _may_all_restart(spec: Mapping[str, Any]) -> bool:
    """Return whether the exit of a container may restart the whole pod (KEP-5532)."""
    if not is_on("RestartAllContainersOnContainerExits"):
        return False
    containers = (*(spec.get("initContainers") or ()), *(spec.get("containers") or ()))
    rules = (rule for container in containers for rule in container.get("restartPolicyRules") or ())
    return any(rule.get("action") == "RestartAllContainers" for rule in rules)


def _may_restart(spec: Mapping[str, Any], field: str, name: str | None, exit_code: int) -> bool:
    """Return whether a terminated container may run again (`ContainerShouldRestart`).

    For ephemeral containers, the result is False, because ephemeral containers never run again.
    """
    container = None if field == "ephemeralContainerStatuses" else _named(name, spec.get(_LISTS[field]) or ())
    if container is None:
        return False
    policy = container.get("restartPolicy")
    if policy is not None and any(_matches(rule, exit_code) for rule in container.get("restartPolicyRules") or ()):
        return True
    policy = policy or spec.get("restartPolicy")
    return exit_code != 0 if policy == "OnFailure" else policy != "Never"


def _matches(rule: Mapping[str, Any], exit_code: int) -> bool:
    codes = rule.get("exitCodes") or {}
    return (exit_code in (codes.get("values") or ())) == (codes.get("operator") == "In") if codes else False


def _validate_claims(statuses: Sequence[Mapping[str, Any]], spec: Mapping[str, Any]) -> list[FieldError]:
    known = {each.get("name") for each in spec.get("resourceClaims") or ()}
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, status in enumerate(statuses):
        element, name = STATUS.child("resourceClaimStatuses").at(index), status.get("name") or ""
        at = element.child("name")
        if name not in known:
            errors.append(invalid(at, name, "must match the name of an entry in `spec.resourceClaims`"))
        if name in seen:
            errors.append(duplicate(at, name))
        seen.add(name)
        if (claim := status.get("resourceClaimName")) is not None:
            errors += each_problem(name_formats.dns1123_subdomain, claim, element.child("resourceClaimName"))
    return errors


def _validate_addresses(status: Mapping[str, Any], before: Mapping[str, Any], field: str) -> list[FieldError]:
    """Validate the IP addresses in a pod's status. Malformed addresses are allowed if the old status contained them."""
    path, texts = STATUS.child(field), [each.get("ip") or "" for each in status.get(field) or ()]
    known = {each.get("ip") or "" for each in before.get(field) or ()}
    errors: list[FieldError] = []
    for index, text in enumerate(texts):
        if text not in known:
            errors += validate_legacy_ip(path.at(index), text)
    if len(texts) > 1 and (len(texts) > 2 or is_ipv6(texts[0]) == is_ipv6(texts[1])):
        errors.append(invalid(path, [{"IP": text} for text in texts], _ONE_PER_FAMILY))
    return errors


def _validate_host_addresses(status: Mapping[str, Any], before: Mapping[str, Any]) -> list[FieldError]:
    addresses = status.get("hostIPs") or ()
    if not addresses:
        return []
    errors: list[FieldError] = []
    first = addresses[0].get("ip") or ""
    if (status.get("hostIP") or "") != first:
        errors.append(invalid(STATUS.child("hostIPs").at(0).child("ip"), first, "must be equal to `hostIP`"))
    return errors + _validate_addresses(status, before, "hostIPs")


def _validate_user(user: Mapping[str, Any] | None, spec: Mapping[str, Any], path: Path) -> list[FieldError]:
    linux = (user or {}).get("linux")
    if linux is None:
        return []
    if (spec.get("os") or {}).get("name") == "windows":
        return [forbidden(path, "cannot be set for a windows pod")]
    ids = [(path.child(field), linux.get(field) or 0) for field in ("uid", "gid")]
    groups = path.child("supplementalGroups")
    ids += [(groups.at(index), group) for index, group in enumerate(linux.get("supplementalGroups") or ())]
    return [invalid(at, value, problem) for at, value in ids for problem in name_formats.user_id(value)]
