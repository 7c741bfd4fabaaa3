"""Validates the status of a ResourceClaim: the allocated devices, the users, and the drivers' reports about devices.

Source: Kubernetes `pkg/apis/resource/validation/validation.go` and `pkg/registry/resource/resourceclaim/strategy.go`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from ctrlmgr.api.field import FieldError, Path, forbidden, invalid, not_supported, required, too_long, too_many
from ctrlmgr.api.unstructured import Unstructured, metadata_of
from ctrlmgr.engine.features.gates import is_on
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.engine.validation.condition_validation import validate_conditions
from ctrlmgr.engine.validation.ip_validation import validate_interface_address
from ctrlmgr.engine.validation.object_meta import IMMUTABLE
from ctrlmgr.kinds.core.pod.scheduling import validate_node_selector
from ctrlmgr.kinds.core.volume_sources import driver_name
from ctrlmgr.kinds.resource.device_requests import Requests, request_name, requests_of, validate_request_configuration
from ctrlmgr.kinds.resource.shared_parts import (
    MAX_CONFIGURATIONS,
    Fields,
    label,
    pool_name,
    validate_binding,
    validate_data,
    validate_list,
    validate_set,
)
from ctrlmgr.kinds.spec_difference import shown

_STATUS = Path("status")
_RESERVED = _STATUS.child("reservedFor")
_MAX_CONSUMERS = 256
_MAX_RESULTS = 32
_MAX_CONDITIONS = 8
_MAX_IPS = 16
_LONGEST = {"interfaceName": 256, "hardwareAddress": 128}
_SOURCES = ("FromClaim", "FromClass")
_NOT_NORMAL = (
    "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal "
    "characters"
)
_HEX = "[0-9a-fA-F]"
_UUID = f"{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}"


class DeviceID(msgspec.Struct, frozen=True, rename="pascal"):
    """The identity of a device that is allocated to a claim, or of a part of a device, in the form that errors show."""

    driver: str
    pool: str
    device: str
    share_id: str = msgspec.field(name="ShareID")


def _id_of(fields: Fields) -> DeviceID:
    return DeviceID(*(fields.get(each) or "" for each in ("driver", "pool", "device", "shareID")))


def results_of(claim: Unstructured) -> Sequence[Fields]:
    """Return the devices that are allocated to a ResourceClaim."""
    allocation = (claim.get("status") or {}).get("allocation") or {}
    results: Sequence[Fields] = (allocation.get("devices") or {}).get("results") or ()
    return results


def drop_deallocated(new: Unstructured, old: Unstructured) -> None:
    """Drop the reports of drivers about devices that are no longer allocated to the claim.

    The status is changed in place.
    """
    status, was = new.get("status") or {}, (old.get("status") or {}).get("devices")
    if not status.get("devices") or not (is_on("DRAResourceClaimDeviceStatus") or was):
        return
    gone = {*map(_id_of, results_of(old))}.difference(map(_id_of, results_of(new)))
    status["devices"] = [each for each in status["devices"] if _id_of(each) not in gone]
    if not status["devices"]:
        del status["devices"]


def validate_claim_status(claim: Unstructured, before: Fields) -> list[FieldError]:
    """Validate the status of a ResourceClaim; `before` is the old status."""
    status = claim.get("status") or {}
    allocated = {*map(_id_of, results_of(claim))}
    errors = validate_set(
        status.get("reservedFor") or (), _MAX_CONSUMERS, _validate_consumer, _RESERVED, lambda each: each.get("uid")
    )
    errors += validate_set(
        status.get("devices") or (),
        None,
        lambda each, at: _validate_device(each, allocated, at),
        _STATUS.child("devices"),
        _id_of,
    )
    errors += _validate_reservation(claim, status, before)
    return errors + _validate_allocation(claim, status.get("allocation"), before.get("allocation"))


def _validate_consumer(consumer: Fields, path: Path) -> list[FieldError]:
    return [required(path.child(field)) for field in ("resource", "name", "uid") if not consumer.get(field)]


def _validate_reservation(claim: Unstructured, status: Fields, before: Fields) -> list[FieldError]:
    """Validate that only allocated ResourceClaims have users, and that claims in deletion get no new users."""
    consumers = status.get("reservedFor") or ()
    if consumers and status.get("allocation") is None:
        return [forbidden(_RESERVED, "may not be specified when `allocated` is not set")]
    if not metadata_of(claim).get("deletionTimestamp"):
        return []
    known = before.get("reservedFor") or ()
    if all(each in known for each in consumers):
        return []
    detail = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
    return [forbidden(_RESERVED, detail)]


def _validate_allocation(claim: Unstructured, allocation: Fields | None, before: Fields | None) -> list[FieldError]:
    """Validate the allocation of a ResourceClaim; it cannot be changed, but only be removed as a whole."""
    path = _STATUS.child("allocation")
    if allocation is None:
        return []
    if before is not None:
        same = allocation == before
        return [] if same else [invalid(path, shown("AllocationResult", allocation), IMMUTABLE)]
    devices, below, known = allocation.get("devices") or {}, path.child("devices"), requests_of(claim.get("spec") or {})
    errors = validate_list(
        devices.get("results") or (),
        _MAX_RESULTS,
        lambda each, at: _validate_result(each, known, at),
        below.child("results"),
    )
    errors += validate_list(
        devices.get("config") or (),
        2 * MAX_CONFIGURATIONS,
        lambda each, at: _validate_source(each, at) + validate_request_configuration(each, known, at),
        below.child("config"),
    )
    selector = allocation.get("nodeSelector")
    return errors + ([] if selector is None else validate_node_selector(selector, path.child("nodeSelector")))


def _validate_result(result: Fields, known: Requests, path: Path) -> list[FieldError]:
    errors = request_name(result.get("request") or "", known, path.child("request"))
    errors += _validate_names(result, path) + validate_binding(result, path)
    share = result.get("shareID")
    return errors + ([] if share is None else _validate_share(share, path.child("shareID")))


def _validate_names(fields: Fields, path: Path) -> list[FieldError]:
    errors = driver_name(fields.get("driver") or "", path.child("driver"))
    errors += pool_name(fields.get("pool") or "", path.child("pool"))
    return errors + label(fields.get("device") or "", path.child("device"))


def _validate_source(configuration: Fields, path: Path) -> list[FieldError]:
    source, below = configuration.get("source") or "", path.child("source")
    if not source:
        return [required(below)]
    return [] if source in _SOURCES else [not_supported(below, source, _SOURCES)]


def _validate_share(share: str, path: Path) -> list[FieldError]:
    """Validate an RFC 4122 UUID in its usual notation, which Go's `uuid` package must be able to parse."""
    if problem := _uuid_problem(share):
        return [invalid(path, share, f"error validating uid: {problem}")]
    return [] if re.fullmatch(_UUID, share) and share == share.lower() else [invalid(path, share, _NOT_NORMAL)]


def _uuid_problem(text: str) -> str:
    """Return the error that Go's `uuid.Validate` would return for the string."""
    size = name_formats.length(text)
    if size == 45:
        if text[:9].lower() != "urn:uuid:":
            return f'invalid urn prefix: "{text[:9]}"'
        text = text[9:]
    elif size == 38:
        if text[0] != "{" or text[-1] != "}":
            return "invalid bracketed UUID format"
        text = text[1:-1]
    elif size == 32:
        return "" if re.fullmatch(f"{_HEX}{{32}}", text) else "invalid UUID format"
    elif size != 36:
        return f"invalid UUID length: {size}"
    return "" if re.fullmatch(_UUID, text) else "invalid UUID format"


def _validate_device(device: Fields, allocated: set[DeviceID], path: Path) -> list[FieldError]:
    errors = _validate_names(device, path)
    share, known = device.get("shareID"), _id_of(device)
    errors += [] if share is None else _validate_share(share, path.child("shareID"))
    if known not in allocated:
        errors.append(invalid(path, known, "must be an allocated device in the claim"))
    conditions, below = device.get("conditions") or (), path.child("conditions")
    if len(conditions) > _MAX_CONDITIONS:
        errors.append(too_many(below, len(conditions), _MAX_CONDITIONS))
    errors += validate_conditions(conditions, below)
    data, network = device.get("data"), device.get("networkData")
    errors += [] if data is None else validate_data(data, path.child("data"))
    return errors + ([] if network is None else _validate_network(network, path.child("networkData")))


def _validate_network(network: Fields, path: Path) -> list[FieldError]:
    errors = [
        too_long(path.child(field), most)
        for field, most in _LONGEST.items()
        if name_formats.length(network.get(field) or "") > most
    ]
    return errors + validate_set(
        network.get("ips") or (),
        _MAX_IPS,
        lambda address, at: validate_interface_address(at, address),
        path.child("ips"),
    )
