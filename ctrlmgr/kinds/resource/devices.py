"""Validates a device in a ResourceSlice: its attributes, its capacities, its counters, and its nodes.

Source: Kubernetes `pkg/apis/resource/validation/validation.go`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from ctrlmgr.api import quantity
from ctrlmgr.api.field import FieldError, Path, invalid, not_found, required, too_long
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.engine.validation.quantities import is_native
from ctrlmgr.kinds.common_rules import each_problem
from ctrlmgr.kinds.core.pod.scheduling import validate_node_selector
from ctrlmgr.kinds.resource.capacities import validate_capacity
from ctrlmgr.kinds.resource.shared_parts import (
    MAX_QUALIFIED_NAME,
    Fields,
    label,
    qualified_name,
    required_label,
    validate_binding,
    validate_entries,
    validate_list,
    validate_set,
    validate_taint,
)
from ctrlmgr.kinds.spec_difference import shown

LISTS: Final = ("bools", "ints", "strings", "versions")
"""The fields that hold the values of a device attribute with several values (KEP-5491)."""
_VALUES: Final = ("bool", "int", "string", "version")
_PLACES: Final = ("nodeName", "nodeSelector", "allNodes")
_MAX_ATTRIBUTES_AND_CAPACITIES = 32
_MAX_ATTRIBUTE_VALUES = 48
_MAX_VALUE = 64
_MAX_TAINTS = 16
_MAX_COUNTER_SETS = 2
_MAX_COUNTERS = 32
_ONE_PLACE = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true "
    "in the ResourceSlice spec"
)
_NO_PLACE = (
    "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the "
    "ResourceSlice spec"
)
_NUMBER = r"(0|[1-9][0-9]*)"
_PRE_RELEASE = r"(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)"
_BUILD = r"[0-9a-zA-Z-]+"
_is_version = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_PRE_RELEASE}(\.{_PRE_RELEASE})*)?(\+{_BUILD}(\.{_BUILD})*)?"
).fullmatch


def validate_device(device: Fields, before: Fields | None, path: Path, *, is_each_placed: bool) -> list[FieldError]:
    """Validate a device; `before` is the old device, or None if the device is new.

    If `is_each_placed` is set, each device of the slice specifies its own nodes.
    """
    attributes, capacities = device.get("attributes") or {}, device.get("capacity") or {}
    taints = device.get("taints") or []
    errors = label(device.get("name") or "", path.child("name"))
    errors += _validate_numbers(attributes, capacities, path)
    below = path.child("attributes")
    errors += validate_entries(attributes, None, qualified_name, _validate_attribute, below, MAX_QUALIFIED_NAME)
    is_shared = device.get("allowMultipleAllocations") or False
    errors += validate_entries(
        capacities,
        None,
        qualified_name,
        lambda each, at: validate_capacity(each, at, is_shared=is_shared),
        path.child("capacity"),
        MAX_QUALIFIED_NAME,
    )
    if before is None or (before.get("taints") or []) != taints:
        errors += validate_list(taints, _MAX_TAINTS, validate_taint, path.child("taints"))
    errors += validate_set(
        device.get("consumesCounters") or (),
        _MAX_COUNTER_SETS,
        _validate_consumption,
        path.child("consumesCounters"),
        lambda each: each.get("counterSet") or "",
    )
    errors += _validate_place(device, path, is_each_placed=is_each_placed) + validate_binding(device, path)
    mappings = device.get("nodeAllocatableResourceMappings") or {}
    return errors + _validate_mappings(mappings, capacities, path.child("nodeAllocatableResourceMappings"))


def _validate_numbers(attributes: Mapping[str, Fields], capacities: Fields, path: Path) -> list[FieldError]:
    total, most = len(attributes) + len(capacities), _MAX_ATTRIBUTES_AND_CAPACITIES
    errors: list[FieldError] = []
    if total > most:
        detail = f"the total number of attributes and capacities must not exceed {most}"
        errors.append(invalid(path, total, detail))
    values = sum(sum(len(each.get(field) or ()) for field in LISTS) or 1 for each in attributes.values())
    if values > _MAX_ATTRIBUTE_VALUES:
        detail = f"the total number of attribute values must not exceed {_MAX_ATTRIBUTE_VALUES}"
        errors.append(invalid(path, values, detail))
    return errors


def _validate_attribute(attribute: Fields, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    for field, check in (("string", _validate_text), ("version", _validate_version)):
        if (value := attribute.get(field)) is not None:
            errors += check(value, path.child(field))
    for field, check in (("strings", _validate_text), ("versions", _validate_version)):
        errors += validate_list(attribute.get(field) or (), None, check, path.child(field))
    given = [field for field in (*_VALUES, *LISTS) if attribute.get(field) is not None]
    if len(given) != 1:
        value = shown("DeviceAttribute", attribute) if given else ""
        errors.append(invalid(path, value, "exactly one value must be specified"))
    return errors


def _validate_text(value: str, path: Path) -> list[FieldError]:
    return [too_long(path, _MAX_VALUE)] if name_formats.length(value) > _MAX_VALUE else []


def _validate_version(value: str, path: Path) -> list[FieldError]:
    detail = "must be a string compatible with semver.org spec 2.0.0"
    return ([] if _is_version(value) else [invalid(path, value, detail)]) + _validate_text(value, path)


def _validate_consumption(consumption: Fields, path: Path) -> list[FieldError]:
    errors = required_label(consumption.get("counterSet") or "", path.child("counterSet"))
    return errors + validate_counters(consumption, path)


def validate_counters(owner: Fields, path: Path) -> list[FieldError]:
    """Validate the names of counters that a device defines or consumes."""
    counters, below = owner.get("counters") or {}, path.child("counters")
    if not counters:
        return [required(below)]
    return validate_entries(counters, _MAX_COUNTERS, label, lambda _, __: [], below, name_formats.LABEL_LENGTH)


def _validate_place(device: Fields, path: Path, *, is_each_placed: bool) -> list[FieldError]:
    """Validate that a device specifies its nodes in exactly one way, if devices of the slice must specify their nodes.

    If the devices need not specify their nodes, the slice specifies the nodes of all devices.
    """
    if not is_each_placed:
        is_placed = any(device.get(field) is not None for field in _PLACES)
        return [invalid(path, None, _NO_PLACE)] if is_placed else []
    errors = node_name(device, path, "must not be empty")
    if (selector := device.get("nodeSelector")) is not None:
        errors += validate_node_selector(selector, path.child("nodeSelector"))
    errors += only_true(device, ("allNodes",), path)
    ways = ways_of(device, _PLACES)
    if not ways:
        return [*errors, required(path, _ONE_PLACE)]
    return errors if len(ways) == 1 else [*errors, invalid(path, as_set(ways), _ONE_PLACE)]


def node_name(owner: Fields, path: Path, detail: str) -> list[FieldError]:
    """Validate the name of a node if it is set; `detail` is the error message for an empty name."""
    name, below = owner.get("nodeName"), path.child("nodeName")
    if name is None:
        return []
    return each_problem(name_formats.subdomain_name, name, below) if name else [invalid(below, name, detail)]


def only_true(owner: Fields, fields: Iterable[str], path: Path) -> list[FieldError]:
    """Validate the fields of a device that must be either true or absent."""
    detail = "must be either unset or set to true"
    return [invalid(path.child(each), False, detail) for each in fields if owner.get(each) is False]


def ways_of(owner: Fields, fields: Iterable[str]) -> Sequence[str]:
    """Return the names of those fields in the given list that are set and specify nodes."""
    return [each for each in fields if owner.get(each) or (each == "nodeSelector" and owner.get(each) is not None)]


def as_set(fields: Iterable[str]) -> str:
    """Format the names of fields in the form that error messages show, for example {a, b}."""
    return f"{{{', '.join(f'`{each}`' for each in fields)}}}"


def _validate_mappings(mappings: Mapping[str, Fields], capacities: Fields, path: Path) -> list[FieldError]:
    """Validate the node resources that are allocated together with a device (KEP-5517)."""
    errors: list[FieldError] = []
    for resource, mapping in sorted(mappings.items()):
        at = path.key(resource)
        if not is_native(resource):
            errors.append(invalid(at, resource, "must be a node allocatable resource name"))
        errors += _validate_mapping(mapping, capacities, at)
    return errors


def _validate_mapping(mapping: Fields, capacities: Fields, path: Path) -> list[FieldError]:
    multiplier: Any = mapping.get("allocationMultiplier")
    capacity, below = mapping.get("capacityKey"), path.child("capacityKey")
    if multiplier is None and capacity is None:
        return [invalid(path, "", "at least one of allocationMultiplier or capacityKey must be set")]
    errors: list[FieldError] = []
    if multiplier is not None and quantity.parse(multiplier) <= 0:
        errors.append(invalid(path.child("allocationMultiplier"), multiplier, "must be positive"))
    if capacity == "":
        errors.append(invalid(below, "", "capacityKey must not be an empty string"))
    elif capacity is not None and capacity not in capacities:
        errors.append(not_found(below, capacity))
    return errors
