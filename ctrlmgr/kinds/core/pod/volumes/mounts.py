"""Validates the volume mounts and volume devices of containers.

Source: Kubernetes `pkg/apis/core/validation/validation.go`, `ValidateVolumeMounts` and `ValidateVolumeDevices`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ctrlmgr.api.field import FieldError, Path, forbidden, invalid, not_found, not_supported, required
from ctrlmgr.kinds.core.volume_sources import descending_path

_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_RECURSIONS = ("Disabled", "Enabled", "IfPossible")

Volumes = Mapping[str, Mapping[str, Any]]


def validate_mounts(container: Mapping[str, Any], volumes: Volumes, path: Path) -> list[FieldError]:
    """Validate a container's `volumeMounts` and `volumeDevices`; `volumes` maps names to the pod's valid volumes."""
    mounts: Sequence[Mapping[str, Any]] = container.get("volumeMounts") or ()
    devices: Sequence[Mapping[str, Any]] = container.get("volumeDevices") or ()
    security = container.get("securityContext") or {}
    errors: list[FieldError] = []
    taken: set[str] = set()
    for index, mount in enumerate(mounts):
        at = path.child("volumeMounts").at(index)
        errors += _validate_place(mount, "mountPath", volumes, taken, at)
        errors += _overlaps(mount, "mountPath", devices, "devicePath", "volumeDevices", at)
        errors += _validate_subpaths(mount, at, path.child("volumeMounts"))
        errors += _validate_propagation(mount, bool(security.get("privileged")), path.child("volumeMounts"))
    return errors + _validate_devices(devices, mounts, volumes, path.child("volumeDevices"))


def _validate_place(
    mount: Mapping[str, Any], field: str, volumes: Volumes, taken: set[str], path: Path
) -> list[FieldError]:
    name, place = mount.get("name") or "", mount.get(field) or ""
    errors = [] if name else [required(path.child("name"))]
    if name not in volumes:
        errors.append(not_found(path.child("name"), name))
    if not place:
        errors.append(required(path.child(field)))
    if place in taken:
        errors.append(invalid(path.child(field), place, "must be unique"))
    taken.add(place)
    return errors


def _overlaps(
    mount: Mapping[str, Any],
    field: str,
    others: Sequence[Mapping[str, Any]],
    other_field: str,
    what: str,
    path: Path,
) -> list[FieldError]:
    name, place = mount.get("name") or "", mount.get(field) or ""
    errors: list[FieldError] = []
    if any(name == (other.get("name") or "") for other in others):
        errors.append(invalid(path.child("name"), name, f"must not already exist in {what}"))
    if any(place == (other.get(other_field) or "") for other in others):
        errors.append(invalid(path.child(field), place, f"must not already exist as a path in {what}"))
    return errors


def _validate_subpaths(mount: Mapping[str, Any], at: Path, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    for field in ("subPath", "subPathExpr"):
        if not (value := mount.get(field)):
            continue
        if field == "subPathExpr" and mount.get("subPath"):
            errors.append(invalid(at.child(field), value, "subPathExpr and subPath are mutually exclusive"))
        errors += descending_path(value, path.child(field))
    return errors


def _validate_propagation(mount: Mapping[str, Any], privileged: bool, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    propagation, recursion = mount.get("mountPropagation"), mount.get("recursiveReadOnly")
    below = path.child("mountPropagation")
    if propagation is not None and propagation not in _PROPAGATIONS:
        errors.append(not_supported(below, propagation, _PROPAGATIONS))
    if propagation == "Bidirectional" and not privileged:
        detail = "Bidirectional mount propagation is available only to privileged containers"
        errors.append(forbidden(below, detail))
    below = path.child("recursiveReadOnly")
    if recursion in ("Enabled", "IfPossible"):
        if not mount.get("readOnly"):
            errors.append(forbidden(below, "may only be specified when readOnly is true"))
        if propagation not in (None, "None"):
            detail = "may only be specified when mountPropagation is None or not specified"
            errors.append(forbidden(below, detail))
    elif recursion not in (None, "Disabled"):
        errors.append(not_supported(below, recursion, _RECURSIONS))
    return errors


def _validate_devices(
    devices: Sequence[Mapping[str, Any]], mounts: Sequence[Mapping[str, Any]], volumes: Volumes, path: Path
) -> list[FieldError]:
    errors: list[FieldError] = []
    taken: set[str] = set()
    used: set[str] = set()
    for index, device in enumerate(devices):
        at = path.at(index)
        name, place = device.get("name") or "", device.get("devicePath") or ""
        if name and name in used:
            errors.append(invalid(at.child("name"), name, "must be unique"))
        used.add(name)
        volume = volumes.get(name)
        if volume is not None and volume.get("persistentVolumeClaim") is None and volume.get("ephemeral") is None:
            detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            errors.append(invalid(at.child("name"), name, detail))
        errors += _validate_place(device, "devicePath", volumes, taken, at)
        if ".." in place.split("/"):
            errors.append(invalid(at.child("devicePath"), place, "can not contain backsteps ('..')"))
        errors += _overlaps(device, "devicePath", mounts, "mountPath", "volumeMounts", at)
    return errors
