"""Validates devices in the status of pods: their health, and the resource claims that were allocated.

Source: Kubernetes `pkg/apis/core/validation/validation.go`, `ValidatePodStatusUpdate`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ctrlmgr.api.field import FieldError, Path, duplicate, forbidden, invalid, not_supported, required, too_long
from ctrlmgr.api.quantity import parse
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.engine.validation.quantities import is_native
from ctrlmgr.kinds.common_rules import each_problem

_HEALTH = ("Healthy", "Unhealthy", "Unknown")
_LONGEST_MESSAGE = 1024
_EMPTY = "must not be empty"


def validate_allocated(
    allocated: Sequence[Mapping[str, Any]], field: str, container: Mapping[str, Any] | None, path: Path
) -> list[FieldError]:
    """Validate the health of resources that are allocated to a container.

    Ephemeral containers have no allocated resources.
    """
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
            errors += _validate_message(each.get("message"), below.child("message"))
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


def _validate_message(message: str | None, path: Path) -> list[FieldError]:
    if message is None:
        return []
    if not message:
        return [required(path, "must be non-empty if specified")]
    return [too_long(path, _LONGEST_MESSAGE)] if name_formats.length(message) > _LONGEST_MESSAGE else []


def validate_extended_resources(status: Mapping[str, Any], spec: Mapping[str, Any], path: Path) -> list[FieldError]:
    """Validate which requests of a resource claim satisfy the extended resources of containers (KEP-5004)."""
    containers = {
        each.get("name") or "": each for each in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ()))
    }
    mappings, below = status.get("requestMappings") or (), path.child("requestMappings")
    errors = [] if mappings else [required(below, "at least one request mapping is required")]
    seen: set[tuple[str, ...]] = set()
    for index, mapping in enumerate(mappings):
        key = tuple(mapping.get(field) or "" for field in _MAPPED)
        errors += _validate_mapping(key, containers, below.at(index))
        errors += each_problem(name_formats.dns1123_label, key[2], path.child("requestName"))
        if key in seen:
            errors += [duplicate(below.at(index).child(*each), value) for each, value in zip(_PARTS, key, strict=True)]
        seen.add(key)
    claim = status.get("resourceClaimName") or ""
    named = path.child("resourceClaimName")
    return errors + (each_problem(name_formats.dns1123_subdomain, claim, named) if claim else [required(named)])


_MAPPED = ("containerName", "resourceName", "requestName")
_PARTS = tuple((each,) for each in _MAPPED)


def _validate_mapping(key: tuple[str, ...], containers: Mapping[str, Any], path: Path) -> list[FieldError]:
    container, resource, _ = key
    if container not in containers:
        detail = "must match the name of an entry in spec.initContainers.name or spec.containers.name"
        return [invalid(path.child("containerName"), container, detail)]
    if resource in ((containers[container].get("resources") or {}).get("requests") or {}):
        return []
    places = "spec.initContainers.resources.requests or spec.containers.resources.requests"
    detail = f"must match the extended resource name of an entry in {places}"
    return [invalid(path.child("resourceName"), resource, detail)]


def validate_node_allocatable(
    statuses: Sequence[Mapping[str, Any]], status: Mapping[str, Any], spec: Mapping[str, Any], path: Path
) -> list[FieldError]:
    """Validate the amounts of a node's allocatable resources that resource claims provide (KEP-5517).

    `path` is the path of the pod's status.
    """
    known = {each.get("resourceClaimName") for each in spec.get("resourceClaims") or ()}
    known |= {each.get("resourceClaimName") for each in status.get("resourceClaimStatuses") or ()}
    errors: list[FieldError] = []
    for index, each in enumerate(statuses):
        at = path.child("nodeAllocatableResourceClaimStatuses").at(index)
        name, resources = each.get("resourceClaimName") or "", each.get("resources") or {}
        if not name:
            errors.append(required(at.child("resourceClaimName"), _EMPTY))
        if name not in known:
            errors.append(invalid(at.child("resourceClaimName"), name, "no mapping found in pod reference"))
        errors += [required(at.child(field), _EMPTY) for field in ("containers", "resources") if not each.get(field)]
        for resource, amount in sorted(resources.items()):
            below = at.child("resources").key(resource)
            if not is_native(resource):
                errors.append(invalid(below, resource, "must be a node allocatable resource name"))
            if parse(amount) < 0:
                errors.append(invalid(below, amount, "must be non-negative"))
    return errors
