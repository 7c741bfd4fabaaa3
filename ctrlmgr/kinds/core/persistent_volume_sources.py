"""Validates the sources of PersistentVolumes, in part with the validation functions for the volumes of pods.

In contrast to the sources of pods' volumes, the sources of PersistentVolumes may refer to other namespaces.

Guarantees: a table contains one function for each type of volume source, in the order of Kubernetes' checks.

Source: Kubernetes `pkg/apis/core/validation/validation.go`, `ValidatePersistentVolumeSpec`.
"""

from __future__ import annotations

from ctrlmgr.api.field import FieldError, Path, invalid, required
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.kinds.common_rules import each_problem
from ctrlmgr.kinds.core.volume_sources import (
    SOURCES,
    Check,
    Source,
    driver_name,
    needs,
    no_backsteps,
    validate_reference,
)

_SECRETS = ("controllerPublishSecretRef", "controllerExpandSecretRef", "nodePublishSecretRef", "nodeExpandSecretRef")


def _glusterfs(source: Source, path: Path) -> list[FieldError]:
    errors, namespace = needs("endpoints", "path")(source, path), source.get("endpointsNamespace")
    below = path.child("endpointsNamespace")
    if namespace == "":
        detail = "if the endpointnamespace is set, it must be a valid namespace name"
        errors.append(invalid(below, namespace, detail))
    elif namespace is not None:
        errors += each_problem(name_formats.dns1123_label, namespace, below)
    return errors


def _azure_file(source: Source, path: Path) -> list[FieldError]:
    errors = needs("secretName", "shareName")(source, path)
    return [*errors, required(path.child("secretNamespace"))] if source.get("secretNamespace") == "" else errors


def _cinder(source: Source, path: Path) -> list[FieldError]:
    return needs("volumeID")(source, path) + _validate_secret(source, path)


def _storage_os(source: Source, path: Path) -> list[FieldError]:
    errors = needs("volumeName")(source, path)
    for field in ("volumeName", "volumeNamespace"):
        if value := source.get(field):
            errors += each_problem(name_formats.dns1123_label, value, path.child(field))
    return errors + _validate_secret(source, path)


def _validate_secret(source: Source, path: Path) -> list[FieldError]:
    errors = validate_reference(source, "secretRef", path)
    secret = source.get("secretRef")
    if secret is not None and not secret.get("namespace"):
        errors.append(required(path.child("secretRef", "namespace")))
    return errors


def _local(source: Source, path: Path) -> list[FieldError]:
    where = source.get("path") or ""
    return no_backsteps(where, path.child("path")) if where else [required(path.child("path"))]


def _csi(source: Source, path: Path) -> list[FieldError]:
    errors = driver_name(source.get("driver") or "", path.child("driver"))
    errors += needs("volumeHandle")(source, path)
    for field in _SECRETS:
        if (secret := source.get(field)) is not None:
            errors += _validate_full_reference(secret, path.child(field))
    return errors


def _validate_full_reference(secret: Source, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    for field, check in (("name", name_formats.dns1123_subdomain), ("namespace", name_formats.dns1123_label)):
        value, below = secret.get(field) or "", path.child(field)
        errors += each_problem(check, value, below) if value else [required(below)]
    return errors


def _iscsi(source: Source, path: Path) -> list[FieldError]:
    """Validate an iSCSI source like the source of a pod's volume, with two differences.

    A reference to a secret must have a name. The error about the initiator's name does not contain the
    allowed prefixes.
    """
    unnamed = validate_reference(source, "secretRef", path)
    checked = SOURCES["iscsi"][2](source, path)
    initiators = [error for error in checked if error.field.endswith("initiatorname")]
    errors = [*checked[: len(checked) - len(initiators)], *unnamed, *initiators]
    return [error._replace(body=error.body.removesuffix(" starting with iqn, eui, or naa")) for error in errors]


_OWN: dict[str, Check] = {
    "iscsi": _iscsi,
    "glusterfs": _glusterfs,
    "cinder": _cinder,
    "azureFile": _azure_file,
    "local": _local,
    "storageos": _storage_os,
    "csi": _csi,
}
_ORDER = (
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
)


def _entry(field: str) -> tuple[str, str, Check]:
    several, own, check = SOURCES.get(field) or (field, field, _local)
    return several, own, _OWN.get(field, check)


PERSISTENT_SOURCES: dict[str, tuple[str, str, Check]] = {field: _entry(field) for field in _ORDER}
"""The validation functions of volume sources by field, as in `SOURCES`. Each entry contains a function, the field's
name in "more than one" errors, and its name in other errors.
"""
