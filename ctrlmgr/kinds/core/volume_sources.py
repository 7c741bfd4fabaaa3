"""Validates the sources of volumes; most types of sources are valid in both pods and PersistentVolumes.

Guarantees: a table contains one function for each type of volume source, in the order of Kubernetes' checks.

Source: Kubernetes `pkg/apis/core/validation/validation.go`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from ctrlmgr.api.field import FieldError, Path, forbidden, invalid, not_supported, required, too_long
from ctrlmgr.api.quantity import parse
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.kinds.common_rules import each_problem

Source: TypeAlias = Mapping[str, Any]
Check: TypeAlias = Callable[[Source, Path], list[FieldError]]

ONLY_ONE = "may not specify more than 1 volume type"
FILE_MODE = "must be a number between 0 and 0777 (octal), both inclusive"
_HOST_PATH_TYPES = ("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket")
_MANAGED_DISK = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
_BLOB_DISK = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"
_ISCSI_NAMES = {
    "iqn": re.compile(r"iqn\.\d{4}-\d{2}\.([A-Za-z0-9\-.]+)(:[^,;*&$|\s]+)\Z", re.ASCII),
    "eui": re.compile(r"\Aeui.[A-Za-z0-9]{16}\Z"),
    "naa": re.compile(r"\Anaa.[A-Za-z0-9]{32}\Z"),
}


def validate_mode(source: Source, field: str, path: Path) -> list[FieldError]:
    """Validate the permission bits of the files in a volume."""
    mode = source.get(field)
    return [invalid(path.child(field), mode, FILE_MODE)] if mode is not None and not 0 <= mode <= 0o777 else []


def no_backsteps(target: str, path: Path) -> list[FieldError]:
    """Validate that no element of a path is `..`."""
    return [invalid(path, target, "must not contain '..'")] if ".." in target.split("/") else []


def descending_path(target: str, path: Path) -> list[FieldError]:
    """Validate that a path is relative and does not contain `..`."""
    errors = [invalid(path, target, "must be a relative path")] if target.startswith("/") else []
    return errors + no_backsteps(target, path)


def unreserved_path(target: str, path: Path) -> list[FieldError]:
    """Validate that a path is relative and does not look like a symbolic link that the kubelet creates."""
    errors = descending_path(target, path)
    if target.startswith("..") and not target.startswith("../"):
        errors.append(invalid(path, target, "must not start with '..'"))
    return errors


def validate_items(source: Source, path: Path) -> list[FieldError]:
    """Validate the keys of a ConfigMap or Secret and the paths of their files."""
    errors: list[FieldError] = []
    for index, item in enumerate(source.get("items") or ()):
        at = path.child("items").at(index)
        errors += [required(at.child(field)) for field in ("key", "path") if not item.get(field)]
        errors += unreserved_path(item.get("path") or "", at.child("path"))
        errors += validate_mode(item, "mode", at)
    return errors


def needs(*fields: str) -> Check:
    """Return a function that validates that the given fields of a volume source are set."""

    def check(source: Source, path: Path) -> list[FieldError]:
        return [required(path.child(field)) for field in fields if not source.get(field)]

    return check


def _disk(field: str) -> Check:
    """Return the validation function for the source of a cloud disk, of which one partition is mounted."""
    identified = needs(field)

    def check(source: Source, path: Path) -> list[FieldError]:
        partition = source.get("partition") or 0
        problems = name_formats.in_range(partition, 1, 255) if partition else []
        return identified(source, path) + [invalid(path.child("partition"), partition, each) for each in problems]

    return check


def _empty_dir(source: Source, path: Path) -> list[FieldError]:
    if parse(source.get("sizeLimit") or "0") >= 0:
        return []
    return [forbidden(path.child("sizeLimit"), "SizeLimit field must be a valid resource quantity")]


def _host_path(source: Source, path: Path) -> list[FieldError]:
    if not source.get("path"):
        return [required(path.child("path"))]
    errors = no_backsteps(source["path"], path.child("path"))
    type_ = source.get("type") or ""
    if type_ not in _HOST_PATH_TYPES:
        errors.append(not_supported(path.child("type"), type_, _HOST_PATH_TYPES))
    return errors


def _git_repo(source: Source, path: Path) -> list[FieldError]:
    errors = needs("repository")(source, path)
    return errors + descending_path(source.get("directory") or "", path.child("directory"))


def _secret(source: Source, path: Path) -> list[FieldError]:
    errors = needs("secretName")(source, path)
    return errors + validate_mode(source, "defaultMode", path) + validate_items(source, path)


def _config_map(source: Source, path: Path) -> list[FieldError]:
    return needs("name")(source, path) + validate_mode(source, "defaultMode", path) + validate_items(source, path)


def _nfs(source: Source, path: Path) -> list[FieldError]:
    errors = needs("server", "path")(source, path)
    if not (source.get("path") or "").startswith("/"):
        errors.append(invalid(path.child("path"), source.get("path") or "", "must be an absolute path"))
    return errors


def _iscsi(source: Source, path: Path) -> list[FieldError]:
    errors = needs("targetPortal", "iqn")(source, path)
    if source.get("iqn"):
        errors += _iscsi_name(source["iqn"], path.child("iqn"))
    lun = source.get("lun") or 0
    errors += [invalid(path.child("lun"), lun, each) for each in name_formats.in_range(lun, 0, 255)]
    if (source.get("chapAuthDiscovery") or source.get("chapAuthSession")) and source.get("secretRef") is None:
        errors.append(required(path.child("secretRef")))
    if (initiator := source.get("initiatorName")) is not None:
        errors += _iscsi_name(initiator, path.child("initiatorname"))
    return errors


def _iscsi_name(name: str, path: Path) -> list[FieldError]:
    pattern = _ISCSI_NAMES.get(name[:3])
    if pattern is None:
        return [invalid(path, name, "must be valid format starting with iqn, eui, or naa")]
    return [] if pattern.search(name) else [invalid(path, name, "must be valid format")]


def _flocker(source: Source, path: Path) -> list[FieldError]:
    name, uuid = source.get("datasetName") or "", source.get("datasetUUID") or ""
    errors: list[FieldError] = []
    if not name and not uuid:
        errors.append(required(path, "one of datasetName and datasetUUID is required"))
    if name and uuid:
        errors.append(invalid(path, "resource", "datasetName and datasetUUID can not be specified simultaneously"))
    if "/" in name:
        errors.append(invalid(path.child("datasetName"), name, "must not contain '/'"))
    return errors


def _quobyte(source: Source, path: Path) -> list[FieldError]:
    registry = source.get("registry") or ""
    detail = "must be a host:port pair or multiple pairs separated by commas"
    errors: list[FieldError] = []
    if not registry:
        errors.append(required(path.child("registry"), detail))
    elif name_formats.length(source.get("tenant") or "") >= 65:
        tenant = "must be a UUID and may not exceed a length of 64 characters"
        errors.append(required(path.child("tenant"), tenant))
    else:
        bad = [pair for pair in registry.split(",") if not re.fullmatch(r"(\[[^\]]*\]|[^:]*):[^:]*", pair)]
        errors += [invalid(path.child("registry"), registry, detail) for _ in bad]
    return errors + needs("volume")(source, path)


def _fc(source: Source, path: Path) -> list[FieldError]:
    targets, ids, lun = source.get("targetWWNs"), source.get("wwids"), source.get("lun")
    errors: list[FieldError] = []
    if not targets and not ids:
        errors.append(required(path.child("targetWWNs"), "must specify either targetWWNs or wwids, but not both"))
    if targets and ids:
        detail = "targetWWNs and wwids can not be specified simultaneously"
        errors.append(invalid(path.child("targetWWNs"), targets, detail))
    if targets and lun is None:
        errors.append(required(path.child("lun"), "lun is required if targetWWNs is specified"))
    elif targets:
        errors += [invalid(path.child("lun"), lun, each) for each in name_formats.in_range(lun or 0, 0, 255)]
    return errors


def _flex_volume(source: Source, path: Path) -> list[FieldError]:
    errors = needs("driver")(source, path)
    for key in sorted(source.get("options") or {}):
        domain = f".{key.partition('/')[0].lower()}"
        if domain.endswith((".kubernetes.io", ".k8s.io")):
            detail = "kubernetes.io and k8s.io namespaces are reserved"
            errors.append(invalid(path.child("options").key(key), key, detail))
    return errors


def _azure_disk(source: Source, path: Path) -> list[FieldError]:
    errors = needs("diskName", "diskURI")(source, path)
    kind, uri = source.get("kind"), source.get("diskURI") or ""
    for field, allowed in (
        ("cachingMode", ("None", "ReadOnly", "ReadWrite")),
        ("kind", ("Dedicated", "Managed", "Shared")),
    ):
        value = source.get(field)
        if value is not None and value not in allowed:
            errors.append(not_supported(path.child(field), value, allowed))
    if kind == "Managed" and not uri.startswith("/subscriptions/"):
        errors.append(not_supported(path.child("diskURI"), uri, (_MANAGED_DISK,)))
    if kind not in (None, "Managed") and not uri.startswith("https://"):
        errors.append(not_supported(path.child("diskURI"), uri, (_BLOB_DISK,)))
    return errors


def _storage_os(source: Source, path: Path) -> list[FieldError]:
    errors = needs("volumeName")(source, path)
    for field in ("volumeName", "volumeNamespace"):
        if value := source.get(field):
            errors += each_problem(name_formats.dns1123_label, value, path.child(field))
    return errors + validate_reference(source, "secretRef", path)


def _cinder(source: Source, path: Path) -> list[FieldError]:
    return needs("volumeID")(source, path) + validate_reference(source, "secretRef", path)


def validate_reference(source: Source, field: str, path: Path) -> list[FieldError]:
    """Validate that a reference to a Secret, if it exists, has a name."""
    reference = source.get(field)
    return [required(path.child(field, "name"))] if reference is not None and not reference.get("name") else []


def driver_name(name: str, path: Path) -> list[FieldError]:
    """Validate the name of a CSI driver."""
    if not name:
        return [required(path)]
    errors = [too_long(path, 63)] if name_formats.length(name) > 63 else []
    return errors + [invalid(path, name, each) for each in name_formats.dns1123_subdomain(name.lower())]


def _csi(source: Source, path: Path) -> list[FieldError]:
    errors = driver_name(source.get("driver") or "", path.child("driver"))
    errors += validate_reference(source, "nodePublishSecretRef", path)
    if name := (source.get("nodePublishSecretRef") or {}).get("name"):
        errors += each_problem(name_formats.dns1123_subdomain, name, path.child("name"))
    return errors


SOURCES: dict[str, tuple[str, str, Check]] = {
    "emptyDir": ("emptyDir", "emptyDir", _empty_dir),
    "hostPath": ("hostPath", "hostPath", _host_path),
    "gitRepo": ("gitRepo", "gitRepo", _git_repo),
    "gcePersistentDisk": ("gcePersistentDisk", "persistentDisk", _disk("pdName")),
    "awsElasticBlockStore": ("awsElasticBlockStore", "awsElasticBlockStore", _disk("volumeID")),
    "secret": ("secret", "secret", _secret),
    "nfs": ("nfs", "nfs", _nfs),
    "iscsi": ("iscsi", "iscsi", _iscsi),
    "glusterfs": ("glusterfs", "glusterfs", needs("endpoints", "path")),
    "flocker": ("flocker", "flocker", _flocker),
    "persistentVolumeClaim": ("persistentVolumeClaim", "persistentVolumeClaim", needs("claimName")),
    "rbd": ("rbd", "rbd", needs("monitors", "image")),
    "cinder": ("cinder", "cinder", _cinder),
    "cephfs": ("cephFS", "cephfs", needs("monitors")),
    "quobyte": ("quobyte", "quobyte", _quobyte),
    "fc": ("fc", "fc", _fc),
    "flexVolume": ("flexVolume", "flexVolume", _flex_volume),
    "configMap": ("configMap", "configMap", _config_map),
    "azureFile": ("azureFile", "azureFile", needs("secretName", "shareName")),
    "vsphereVolume": ("vsphereVolume", "vsphereVolume", needs("volumePath")),
    "photonPersistentDisk": ("photonPersistentDisk", "photonPersistentDisk", needs("pdID")),
    "portworxVolume": ("portworxVolume", "portworxVolume", needs("volumeID")),
    "azureDisk": ("azureDisk", "azureDisk", _azure_disk),
    "storageos": ("storageos", "storageos", _storage_os),
    "scaleIO": ("scaleIO", "scaleIO", needs("gateway", "system", "volumeName")),
    "csi": ("csi", "csi", _csi),
}
"""The validation functions of volume sources by field. Each entry contains the field's name in "more than one" errors,
its name in other errors, and the function.
"""
