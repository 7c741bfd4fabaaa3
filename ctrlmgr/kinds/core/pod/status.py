"""What a pod's status may become: what a kubelet forgets to repeat stays, and what ended stays ended.

Rules come from Kubernetes' `pkg/registry/core/pod/strategy.go` (`podStatusStrategy`) and
`pkg/apis/core/validation/validation.go`, `ValidatePodStatusUpdate`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ctrlmgr.api.field import FieldError, Path, duplicate, forbidden, invalid, not_supported
from ctrlmgr.api.unstructured import Unstructured, metadata_of, repeated
from ctrlmgr.engine.validation import names
from ctrlmgr.engine.validation.addresses import is_ipv6, validate_legacy_ip
from ctrlmgr.kinds.core.pod.annotations import validate_annotation_update, validate_pod_annotations
from ctrlmgr.kinds.core.pod.validation import ANNOTATIONS
from ctrlmgr.kinds.rules import each_problem, immutable, nonnegative

STATUS = Path("status")
_GENERATION = STATUS.child("observedGeneration")
_NOMINATED = STATUS.child("nominatedNodeName")
_QUALITY = STATUS.child("qosClass")
_POD_ADDRESSES = STATUS.child("podIPs")
_HOST_ADDRESSES = STATUS.child("hostIPs")
_CONDITIONS = Path("metadata.conditions")  # where Kubernetes says they are
_SYSTEM_CONDITIONS = ("PodScheduled", "Ready", "Initialized")
_HEALTH = ("Healthy", "Unhealthy", "Unknown")
_ONE_PER_FAMILY = "may specify no more than one IP for each IP family"
_NOT_AGAIN = "may not be transitioned to non-terminated state"
_LISTS = {
    "containerStatuses": "containers",
    "initContainerStatuses": "initContainers",
    "ephemeralContainerStatuses": "ephemeralContainers",
}


def prepare_status(new: Unstructured, old: Unstructured) -> None:
    """Keep what a writer of the status may leave out but not take away, in place."""
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
    """Check a change of a pod's status."""
    spec, status, before = new.get("spec") or {}, new.get("status") or {}, old.get("status") or {}
    errors = _validate_annotations(new, old)
    errors += nonnegative(status.get("observedGeneration"), _GENERATION)
    errors += _validate_conditions(status.get("conditions") or ())
    nominated = status.get("nominatedNodeName") or ""
    if nominated and nominated != before.get("nominatedNodeName"):
        errors += each_problem(names.dns1123_subdomain, nominated, _NOMINATED)
    errors += immutable(status.get("qosClass", ""), before.get("qosClass", ""), _QUALITY)
    if not before.keys().isdisjoint(_LISTS):
        errors += _validate_transitions(spec, status, before)
    if claims := status.get("resourceClaimStatuses"):
        errors += _validate_claims(claims, spec)
    errors += _validate_addresses(status.get("podIPs") or (), _POD_ADDRESSES)
    errors += _validate_host_addresses(status)
    if status.keys().isdisjoint(_LISTS):
        return errors
    for field, containers in _LISTS.items():
        for index, container in enumerate(status.get(field) or ()):
            at = STATUS.child(field).at(index)
            errors += _validate_user(container.get("user"), spec, at.child("linux"))
            if allocated := container.get("allocatedResourcesStatus"):
                owner = _named(container.get("name"), spec.get(containers) or ())
                errors += _validate_allocated(allocated, field, owner, at.child("allocatedResourcesStatus"))
    return errors


def _named(name: str | None, containers: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    return next((each for each in containers if each.get("name") == name), None)


def _validate_annotations(new: Unstructured, old: Unstructured) -> list[FieldError]:
    after = (new.get("metadata") or {}).get("annotations") or {}
    before = (old.get("metadata") or {}).get("annotations") or {}
    if not after and not before:
        return []
    errors = validate_annotation_update(after, before, ANNOTATIONS)
    return errors + validate_pod_annotations(after, new.get("spec") or {}, ANNOTATIONS)


def _validate_conditions(conditions: Sequence[Mapping[str, Any]]) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, condition in enumerate(conditions):
        type_ = condition.get("type") or ""
        if type_ not in _SYSTEM_CONDITIONS:
            errors += each_problem(names.qualified_name, type_, _CONDITIONS.at(index).child("Type"))
        if generation := condition.get("observedGeneration"):
            errors += nonnegative(generation, _CONDITIONS.at(index).child("observedGeneration"))
    return errors


def _validate_transitions(
    spec: Mapping[str, Any], status: Mapping[str, Any], before: Mapping[str, Any]
) -> list[FieldError]:
    """Check that no container runs again whose pod, or whose nature, does not let it."""
    policy = spec.get("restartPolicy") or ""
    policies = {each.get("name"): each.get("restartPolicy") or policy for each in spec.get("containers") or ()}
    initial = {each.get("name"): each.get("restartPolicy") or policy for each in spec.get("initContainers") or ()}
    errors: list[FieldError] = []
    for field, known, otherwise in (
        ("containerStatuses", policies, policy),
        ("initContainerStatuses", initial, policy),
        ("ephemeralContainerStatuses", {}, "Never"),
    ):
        after = status.get(field) or ()
        for index, old in enumerate(before.get(field) or ()):
            ended = (old.get("state") or {}).get("terminated")
            rule = known.get(old.get("name"), otherwise)
            if ended is None or "Always" in (rule, otherwise) or _may_retry(old, spec, field):
                continue
            if (ended.get("exitCode") or 0) != 0 and rule == "OnFailure":
                continue
            running = [
                new
                for new in after
                if new.get("name") == old.get("name") and (new.get("state") or {}).get("terminated") is None
            ]
            errors += [forbidden(STATUS.child(field).at(index).child("state"), _NOT_AGAIN) for _ in running]
    return errors


def _may_retry(status: Mapping[str, Any], spec: Mapping[str, Any], field: str) -> bool:
    """Say whether a container has restart rules of its own (KEP-5307), which its kubelet judges."""
    container = _named(status.get("name"), spec.get(_LISTS[field]) or ())
    return container is not None and bool(container.get("restartPolicyRules"))


def _validate_claims(statuses: Sequence[Mapping[str, Any]], spec: Mapping[str, Any]) -> list[FieldError]:
    known = {each.get("name") for each in spec.get("resourceClaims") or ()}
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, status in enumerate(statuses):
        at, name = STATUS.child("resourceClaimStatuses").at(index).child("name"), status.get("name") or ""
        if name not in known:
            errors.append(invalid(at, name, "must match the name of an entry in `spec.resourceClaims`"))
        if name in seen:
            errors.append(duplicate(at, name))
        seen.add(name)
        if (claim := status.get("resourceClaimName")) is not None:
            errors += each_problem(names.dns1123_subdomain, claim, at)
    return errors


def _validate_addresses(addresses: Sequence[Mapping[str, Any]], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    texts = [each.get("ip") or "" for each in addresses]
    for index, text in enumerate(texts):
        errors += validate_legacy_ip(path.at(index), text)
    if len(texts) > 1:
        if len(texts) > 2 or is_ipv6(texts[0]) == is_ipv6(texts[1]):
            errors.append(invalid(path, [{"IP": text} for text in texts], _ONE_PER_FAMILY))
        errors += [duplicate(path.at(index), {"IP": texts[index]}) for index in sorted(repeated(texts))]
    return errors


def _validate_host_addresses(status: Mapping[str, Any]) -> list[FieldError]:
    addresses = status.get("hostIPs") or ()
    if not addresses:
        return []
    errors: list[FieldError] = []
    first = addresses[0].get("ip") or ""
    if (status.get("hostIP") or "") != first:
        errors.append(invalid(_HOST_ADDRESSES.at(0).child("ip"), first, "must be equal to `hostIP`"))
    return errors + _validate_addresses(addresses, _HOST_ADDRESSES)


def _validate_user(user: Mapping[str, Any] | None, spec: Mapping[str, Any], path: Path) -> list[FieldError]:
    linux = (user or {}).get("linux")
    if linux is None:
        return []
    if (spec.get("os") or {}).get("name") == "windows":
        return [forbidden(path, "cannot be set for a windows pod")]
    ids = [(path.child(field), linux.get(field) or 0) for field in ("uid", "gid")]
    groups = path.child("supplementalGroups")
    ids += [(groups.at(index), group) for index, group in enumerate(linux.get("supplementalGroups") or ())]
    return [invalid(at, value, problem) for at, value in ids for problem in names.user_id(value)]


def _validate_allocated(
    allocated: Sequence[Mapping[str, Any]], field: str, container: Mapping[str, Any] | None, path: Path
) -> list[FieldError]:
    """Check the health of what a container was given; ephemeral ones are given nothing."""
    if field == "ephemeralContainerStatuses":
        return [forbidden(path, "must not be specified in container status")]
    errors: list[FieldError] = []
    for index, resource in enumerate(allocated):
        at = path.at(index)
        if container is not None:
            errors += _validate_allocated_name(resource.get("name") or "", container.get("resources") or {}, at)
        seen: set[str] = set()
        for number, each in enumerate(resource.get("resources") or ()):
            below = at.child("resources").at(number)
            health, id_ = each.get("health") or "", each.get("resourceID") or ""
            if health not in _HEALTH:
                errors.append(not_supported(below.child("health"), health, frozenset(_HEALTH)))
            if id_ in seen:
                errors.append(duplicate(below.child("resourceID"), id_))
            seen.add(id_)
    return errors


def _validate_allocated_name(name: str, resources: Mapping[str, Any], path: Path) -> list[FieldError]:
    if name.startswith("claim:"):
        claims = [(each.get("name") or "", each.get("request") or "") for each in resources.get("claims") or ()]
        known = [f"claim:{claim}/{request}" if request else f"claim:{claim}" for claim, request in claims]
        detail = (
            "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or "
            "'claim:<claimName>' if request is empty"
        )
    else:
        known = list(resources.get("requests") or ())
        detail = "must match one of the container's resource requests"
    return [] if name in known else [invalid(path.child("name"), name, detail)]
