"""The resources of pods: names and amounts, sums over containers, and the quality of service class.

Guarantees: resource amounts are compared exactly, even if their notations differ. No function of this module reads
cluster state.

Source: Kubernetes `pkg/apis/core/helper/{helpers.go,qos/qos.go}`, `pkg/apis/core/validation/validation.go` (resource
requirements), `pkg/apis/core/v1/defaults.go` (KEP-2837) and `component-helpers/resource/helpers.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ctrlmgr.api.field import FieldError, Path, duplicate, forbidden, invalid, not_found, not_supported, required
from ctrlmgr.api.quantity import parse, total
from ctrlmgr.engine.features.gates import is_on
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.engine.validation.quantities import (
    HUGE_PAGES,
    is_huge_pages,
    is_overcommittable,
    validate_amount,
    validate_container_resource_name,
    validate_resource_name,
)
from ctrlmgr.kinds.common_rules import each_problem

Amounts = Mapping[str, str]

_COMPUTE = ("cpu", "memory")


def is_pod_level(name: str) -> bool:
    """Return whether a resource may be set at pod level, which means for all containers together."""
    return name in _COMPUTE or is_huge_pages(name)


def quality_of_service(spec: Mapping[str, Any]) -> str:
    """Return `Guaranteed`, `Burstable` or `BestEffort` (`ComputePodQOS`)."""
    pod_level = spec.get("resources") is not None and is_on("PodLevelResources")
    owners = [spec] if pod_level else [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    requests: dict[str, int] = {}
    limits: dict[str, int] = {}
    guaranteed = True
    for owner in owners:
        resources = owner.get("resources") or {}
        _add_compute(requests, resources.get("requests"))
        limited = _add_compute(limits, resources.get("limits"))
        guaranteed = guaranteed and (limited == len(_COMPUTE) or (pod_level and not resources.get("limits")))
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if guaranteed and requests == limits else "Burstable"


def _add_compute(sums: dict[str, int], amounts: Amounts | None) -> int:
    """Add the amounts of cpu and memory to `sums`; return how many of these two amounts exist and are not zero."""
    found = 0
    for name in _COMPUTE if amounts else ():
        amount = parse((amounts or {}).get(name) or "0")
        if amount > 0:
            sums[name] = sums.get(name, 0) + amount
            found += 1
    return found


def aggregate(spec: Mapping[str, Any], field: str) -> dict[str, str]:
    """Return the total requests or limits of a pod's containers; `field` is `requests` or `limits`.

    The total adds up containers and restartable init containers, because they run at the same time. An init container
    that is not restartable runs at the same time as the restartable init containers before it.
    """
    sums: dict[str, str] = {}
    restartable: dict[str, str] = {}
    highest: dict[str, str] = {}
    for container in spec.get("containers") or ():
        _add(sums, amounts_of(container, field))
    for container in spec.get("initContainers") or ():
        amounts = amounts_of(container, field)
        if container.get("restartPolicy") == "Always":
            _add(sums, amounts)
            _add(restartable, amounts)
            _raise(highest, restartable)
        else:
            together = dict(restartable)
            _add(together, amounts)
            _raise(highest, together)
    _raise(sums, highest)
    return sums


def amounts_of(owner: Mapping[str, Any], field: str) -> Amounts:
    """Return the `requests` or `limits` of an object with `resources`: a container, a pod spec, or a claim."""
    return (owner.get("resources") or {}).get(field) or {}


def _add(sums: dict[str, str], amounts: Amounts) -> None:
    for name, amount in amounts.items():
        sums[name] = total([sums[name], amount]) if name in sums else amount


def _raise(highest: dict[str, str], amounts: Amounts) -> None:
    for name, amount in amounts.items():
        if name not in highest or parse(amount) > parse(highest[name]):
            highest[name] = amount


def default_pod_resources(spec: dict[str, Any]) -> None:
    """Set the default limits of huge pages and the default requests at pod level to the containers' sums (KEP-2837)."""
    resources = spec["resources"]
    requests: dict[str, str] = dict(resources.get("requests") or {})
    limits: dict[str, str] = dict(resources.get("limits") or {})
    if not (requests or limits):
        return
    for name, amount in aggregate(spec, "limits").items():
        if is_huge_pages(name) and name not in requests:
            limits.setdefault(name, amount)
    if limits:
        resources["limits"] = limits
        for name, amount in aggregate(spec, "requests").items():
            if is_pod_level(name) and is_overcommittable(name):
                requests.setdefault(name, amount)
        for name, amount in limits.items():
            if is_pod_level(name):
                requests.setdefault(name, amount)
    if requests:
        resources["requests"] = requests


def validate_pod_resources(spec: Mapping[str, Any], claims: Iterable[str], path: Path) -> list[FieldError]:
    """Validate the resources at pod level, and validate that the containers' resources do not exceed them."""
    resources = spec["resources"]
    if (spec.get("os") or {}).get("name") == "windows":
        return [forbidden(path, "may not be set for a windows pod")]
    errors: list[FieldError] = []
    if resources.get("claims"):
        errors.append(forbidden(path.child("claims"), "claims may not be set for Resources at pod-level"))
    errors += _validate(resources, _pod_resource_name, claims, path)
    errors += _validate_sums(spec, "requests", path.child("requests"))
    errors += _validate_sums(spec, "limits", path.child("limits"))
    limits = resources.get("limits") or {}
    for index, container in enumerate(spec.get("containers") or ()):
        for name, amount in sorted(amounts_of(container, "limits").items()):
            if name in limits and parse(amount) > parse(limits[name]):
                detail = f"must be less than or equal to pod limits of {limits[name]}"
                below = path.child("containers").at(index).key(name).child("limits")
                errors.append(invalid(below, amount, detail))
    return errors


def _validate_sums(spec: Mapping[str, Any], field: str, path: Path) -> list[FieldError]:
    """Validate the resources at pod level against the sums of the containers.

    At pod level, only the limits of huge pages are compared with the sums of the containers' limits.
    """
    given = amounts_of(spec, field)
    errors: list[FieldError] = []
    for name, amount in sorted(aggregate(spec, field).items()) if given else ():
        if name not in given or (field == "limits" and not is_huge_pages(name)):
            continue
        if parse(amount) > parse(given[name]):
            detail = f"must be greater than or equal to aggregate container {field} of {amount}"
            errors.append(invalid(path.key(name), given[name], detail))
    return errors


def validate_container_resources(resources: Mapping[str, Any], claims: Iterable[str], path: Path) -> list[FieldError]:
    """Validate the limits, requests and claims of a container; `claims` are the names of the pod's resource claims."""
    if not resources:
        return []
    return _validate(resources, validate_container_resource_name, claims, path)


def _validate(
    resources: Mapping[str, Any],
    check_name: Callable[[str, Path], list[FieldError]],
    claims: Iterable[str],
    path: Path,
) -> list[FieldError]:
    errors: list[FieldError] = []
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for field, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in sorted(amounts.items()):
            at = path.child(field).key(name)
            if name not in _COMPUTE:
                errors += check_name(name, at)
                errors += _huge_pages(name, amount, at)
            errors += validate_amount(name, amount, at)
            if field == "requests":
                errors += _against_limit(name, amount, limits, path)
    names = {*limits, *requests}
    if not names.intersection(_COMPUTE) and any(is_huge_pages(each) for each in names):
        errors.append(forbidden(path, "HugePages require cpu or memory"))
    return errors + _validate_claims(resources.get("claims") or (), sorted(claims), path.child("claims"))


def _against_limit(name: str, amount: str, limits: Amounts, path: Path) -> list[FieldError]:
    if name not in limits:
        if is_overcommittable(name):
            return []
        return [required(path.child("limits"), "Limit must be set for non overcommitable resources")]
    requested, limit = parse(amount), parse(limits[name])
    if requested != limit and not is_overcommittable(name):
        detail = f"must be equal to {name} limit of {limits[name]}"
    elif requested > limit:
        detail = f"must be less than or equal to {name} limit of {limits[name]}"
    else:
        return []
    return [invalid(path.child("requests"), amount, detail)]


def _huge_pages(name: str, amount: str, path: Path) -> list[FieldError]:
    if not is_huge_pages(name):
        return []
    try:
        size = parse(name.removeprefix(HUGE_PAGES))
    except ValueError:
        size = 0
    if size > 0 and not parse(amount) % size:
        return []
    return [invalid(path, amount, f"{amount} is not positive integer multiple of {name}")]


def _pod_resource_name(name: str, path: Path) -> list[FieldError]:
    if errors := validate_resource_name(name, path):
        return errors
    return [] if is_pod_level(name) else [not_supported(path, name, {HUGE_PAGES, *_COMPUTE})]


def _validate_claims(claims: Iterable[Mapping[str, Any]], known: list[str], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    requested: set[str] = set()
    there = set(known)
    for index, claim in enumerate(claims):
        name, request = claim.get("name") or "", claim.get("request") or ""
        at = path.at(index)
        if not name:
            errors.append(required(at))
            continue
        if request:
            errors += each_problem(name_formats.dns1123_label, request, at.child("request"))
        key = f"{name}/{request}" if request else name
        if name in seen or key in seen or (not request and name in requested):
            errors.append(duplicate(at, name if name in seen or not request else key))
        seen.add(key)
        if request:
            requested.add(name)
        if name not in there:
            listed = f": {', '.join(known)}" if known else " which is empty"
            detail = f"must be one of the names in pod.spec.resourceClaims{listed}"
            errors.append(not_found(at, name, detail))
    return errors
