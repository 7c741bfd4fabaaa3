"""Decides how the status of a claim changes while its volume is expanded or modified, with pure functions.

Guarantees, those of `external-resizer` and of the kubelet's expansion (`pkg/volume/util/resize_util.go`): first, the
requested size or class is written to the status. In the second step, the controller changes the volume. Third, the
remaining work is written to the status. A claim's capacity grows only after a node has expanded the file system.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ctrlmgr.api.quantity import parse
from ctrlmgr.simulation.csi_objects import DRIVER

Fields = Mapping[str, Any]
RESIZING: Final = "Resizing"
FILE_SYSTEM_PENDING: Final = "FileSystemResizePending"
MODIFYING: Final = "ModifyingVolume"
CONTROLLER_IN_PROGRESS: Final = "ControllerResizeInProgress"
NODE_PENDING: Final = "NodeResizePending"
_RESTART: Final = "Waiting for user to (re-)start a pod to finish file system resize of volume on node."


def is_of_driver(claim: Fields, volume: Fields | None) -> bool:
    """Return whether a claim is bound to a volume of the simulated driver."""
    if volume is None or (claim.get("status") or {}).get("phase") != "Bound":
        return False
    is_bound = (volume["spec"].get("claimRef") or {}).get("uid") == claim["metadata"]["uid"]
    return is_bound and (volume["spec"].get("csi") or {}).get("driver") == DRIVER


def needs_expansion(claim: Fields) -> bool:
    """Return whether the volume of a bound claim must still be expanded.

    If only a node must still expand the file system, the result is False.
    """
    status = claim["status"]
    size, held = requested(claim), (status.get("capacity") or {}).get("storage") or "0"
    pending = (status.get("allocatedResources") or {}).get("storage") if is_node_pending(claim) else None
    return parse(size) > parse(held) and pending != size


def requested(claim: Fields) -> str:
    """Return the storage that a claim requests."""
    found: str = claim["spec"]["resources"]["requests"]["storage"]
    return found


def is_node_pending(claim: Fields) -> bool:
    """Return whether a claim waits until a node expands its file system."""
    states = (claim.get("status") or {}).get("allocatedResourceStatuses") or {}
    return states.get("storage") == NODE_PENDING


def with_expansion(claim: Fields, state: str, now: str) -> dict[str, Any]:
    """Return a claim whose status reports the progress of the expansion to its requested storage.

    The argument `state` is `CONTROLLER_IN_PROGRESS` or `NODE_PENDING`. The argument `now` is a timestamp.
    """
    status = dict(claim["status"])
    status["allocatedResources"] = {**(status.get("allocatedResources") or {}), "storage": requested(claim)}
    status["allocatedResourceStatuses"] = {**(status.get("allocatedResourceStatuses") or {}), "storage": state}
    condition = (RESIZING, "") if state == CONTROLLER_IN_PROGRESS else (FILE_SYSTEM_PENDING, _RESTART)
    others = _conditions_without(status, RESIZING, FILE_SYSTEM_PENDING)
    return {**claim, "status": {**status, "conditions": [*others, _condition(*condition, now)]}}


def with_expanded_file_system(claim: Fields, volume: Fields) -> dict[str, Any]:
    """Return a claim after a node has expanded its file system to the size of the volume."""
    status = {key: each for key, each in claim["status"].items() if key != "allocatedResourceStatuses"}
    states = {key: each for key, each in claim["status"]["allocatedResourceStatuses"].items() if key != "storage"}
    status |= {"allocatedResourceStatuses": states} if states else {}
    status["capacity"] = {**(status.get("capacity") or {}), "storage": volume["spec"]["capacity"]["storage"]}
    status["conditions"] = _conditions_without(status, RESIZING, FILE_SYSTEM_PENDING)
    return {**claim, "status": status}


def desired_class(claim: Fields) -> str:
    """Return the VolumeAttributesClass that must be applied to a claim's volume; empty if no class must be applied."""
    desired = claim["spec"].get("volumeAttributesClassName") or ""
    return "" if desired == claim["status"].get("currentVolumeAttributesClassName") else desired


def with_modification(claim: Fields, name: str, state: str, now: str) -> dict[str, Any]:
    """Return a claim whose status reports that a class is being applied (`InProgress`) or is missing (`Pending`)."""
    target = {"targetVolumeAttributesClassName": name, "status": state}
    status = {**claim["status"], "modifyVolumeStatus": target}
    if state == "InProgress":
        status["conditions"] = [*_conditions_without(status, MODIFYING), _condition(MODIFYING, "", now)]
    return {**claim, "status": status}


def with_applied_class(claim: Fields, name: str) -> dict[str, Any]:
    """Return a claim after its class was applied to its volume."""
    status = {key: each for key, each in claim["status"].items() if key != "modifyVolumeStatus"}
    status["currentVolumeAttributesClassName"] = name
    return {**claim, "status": {**status, "conditions": _conditions_without(status, MODIFYING)}}


def _conditions_without(status: Fields, *types: str) -> list[Any]:
    return [each for each in status.get("conditions") or () if each["type"] not in types]


def _condition(type_: str, message: str, now: str) -> dict[str, Any]:
    detail = {"message": message} if message else {}
    return {"type": type_, "status": "True", "lastProbeTime": None, "lastTransitionTime": now, **detail}
