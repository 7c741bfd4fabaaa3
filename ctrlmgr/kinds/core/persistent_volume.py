"""The strategy of PersistentVolumes, which describe existing storage that a claim may use.

Source: Kubernetes `pkg/apis/core/v1/defaults.go`, `pkg/apis/core/validation/validation.go`,
`pkg/api/persistentvolume/util.go` and `pkg/registry/core/persistentvolume/strategy.go`.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Any

from ctrlmgr.api.field import FieldError, Path, forbidden, invalid, not_supported, required
from ctrlmgr.api.quantity import WHOLE, parse
from ctrlmgr.api.unstructured import Unstructured, metadata_of
from ctrlmgr.engine.strategy import Context, Strategy
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.engine.validation.object_meta import IMMUTABLE
from ctrlmgr.kinds.apps.templates import SPEC, fill
from ctrlmgr.kinds.common_rules import each_problem, immutable, sorted_map
from ctrlmgr.kinds.core.claim_spec import NOT_POSITIVE, validate_access_modes, validate_volume_mode
from ctrlmgr.kinds.core.persistent_volume_sources import PERSISTENT_SOURCES
from ctrlmgr.kinds.core.pod.scheduling import validate_node_selector
from ctrlmgr.kinds.core.pod.volumes.defaults import default_claim_spec, default_volume_source
from ctrlmgr.kinds.core.pod.warnings import VOLUMES, node_term_warnings
from ctrlmgr.kinds.core.volume_sources import ONLY_ONE
from ctrlmgr.kinds.spec_difference import difference, shown

STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"
"""The older annotation that contains the name of a volume's storage class; the field `spec.storageClassName` replaced
it.
"""

CLASS_WARNING = (
    f'metadata.annotations[{STORAGE_CLASS}]: deprecated since v1.8; use "storageClassName" attribute instead'
)
_MOUNT_OPTIONS = "volume.beta.kubernetes.io/mount-options"
_RECLAIM = ("Delete", "Recycle", "Retain")
_MOUNTABLE = frozenset(
    (
        "gcePersistentDisk",
        "awsElasticBlockStore",
        "glusterfs",
        "nfs",
        "rbd",
        "quobyte",
        "iscsi",
        "cinder",
        "cephfs",
        "azureFile",
        "vsphereVolume",
        "azureDisk",
        "photonPersistentDisk",
    )
)
"""The volume sources that support mount options."""
_LONGEST_PORTAL = 64
_INLINE = "in the context of inline volumes"
_NOT_INLINE = f"may not be specified {_INLINE}"
_STABLE_LABELS = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
}
"""The beta names of node labels, and the stable name that replaced each of them."""


class PersistentVolumeStrategy(Strategy):
    """The strategy of the kind v1 PersistentVolume."""

    returns_deleted = True
    revalidates = 2
    compares_metadata = False

    def default(self, obj: Unstructured) -> None:
        """Default the reclaim policy of a volume to Retain, and its volume mode to Filesystem."""
        spec = obj.setdefault("spec", {})
        fill(spec, {"persistentVolumeReclaimPolicy": "Retain"})
        default_claim_spec(spec)
        default_volume_source(spec)
        fill(obj.setdefault("status", {}), {"phase": "Pending"})

    def prepare_for_create(self, ctx: Context, obj: Unstructured) -> None:
        """Set the initial status of a PersistentVolume."""
        obj["status"] = {"phase": "Pending", "lastPhaseTransitionTime": ctx.now}

    def prepare_for_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> None:
        """Set the time of the last phase transition, unless the client sets it.

        If the phase is unchanged, keep the old time.
        """
        if ctx.subresource != "status":
            return
        status, before = new["status"], old.get("status") or {}
        noted = status.get("lastPhaseTransitionTime") not in (None, before.get("lastPhaseTransitionTime"))
        if status.get("phase") != before.get("phase") and not noted:
            status["lastPhaseTransitionTime"] = ctx.now
        elif not noted and before.get("lastPhaseTransitionTime") is not None:
            status["lastPhaseTransitionTime"] = before["lastPhaseTransitionTime"]

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate the spec, and validate that only volume sources which support mount options have mount options."""
        return [] if ctx.subresource else _validate_spec(obj) + _validate_mount_options(obj)

    def validate_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> list[FieldError]:
        """Validate that the volume source and the node affinity are unchanged; then validate the whole volume."""
        if ctx.subresource:
            return []
        spec, before = new.get("spec") or {}, old.get("spec") or {}
        errors = _validate_spec(new)
        sources = [_sources_of(each) for each in (before, spec)]
        _allow_expansion_secret(*sources)
        if sources[0] != sources[1]:
            changes = difference("PersistentVolumeSource", *sources)
            detail = f"spec.persistentvolumesource is immutable after creation\n{changes}"
            errors.append(forbidden("spec.persistentvolumesource", detail))
        errors += immutable(spec.get("volumeMode"), before.get("volumeMode"), Path("volumeMode"))
        errors += _validate_same_affinity(spec.get("nodeAffinity"), before.get("nodeAffinity"))
        field = "volumeAttributesClassName"
        if before.get(field) is not None and spec.get(field) is None:
            errors.append(forbidden(SPEC.child(field), "update from non-nil value to nil is forbidden"))
        return errors

    def warnings(self, ctx: Context, obj: Unstructured, old: Unstructured | None) -> list[str]:
        """Warn about removed annotations, labels, policies and kinds of storage."""
        if ctx.subresource:
            return []
        annotations, spec = metadata_of(obj).get("annotations") or {}, obj.get("spec") or {}
        found = [CLASS_WARNING] if STORAGE_CLASS in annotations else []
        if _MOUNT_OPTIONS in annotations:
            instead = 'deprecated since v1.31; use "mountOptions" attribute instead'
            found.append(f"metadata.annotations[{_MOUNT_OPTIONS}]: {instead}")
        terms = ((spec.get("nodeAffinity") or {}).get("required") or {}).get("nodeSelectorTerms") or ()
        for index, term in enumerate(terms):
            found += node_term_warnings(term, SPEC.child("nodeAffinity.required.nodeSelectorTerms").at(index))
        if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
            instead = "Instead, the recommended approach is to use dynamic provisioning."
            path = SPEC.child("persistentVolumeReclaimPolicy")
            found.append(f"{path}: The Recycle reclaim policy is deprecated. {instead}")
        gone = [named for field, named in VOLUMES.items() if spec.get(field) is not None]
        return found + [f"{SPEC.child(name)}: {message}" for name, message in gone]


def _validate_spec(obj: Unstructured) -> list[FieldError]:
    spec = obj.get("spec") or {}
    errors = [] if spec.get("accessModes") else [required(SPEC.child("accessModes"))]
    errors += validate_access_modes(spec.get("accessModes") or (), SPEC.child("accessModes"))
    errors += _validate_capacity(spec.get("capacity") or {}, SPEC.child("capacity"))
    policy = spec.get("persistentVolumeReclaimPolicy")
    if policy not in _RECLAIM:
        errors.append(not_supported(SPEC.child("persistentVolumeReclaimPolicy"), policy, _RECLAIM))
    errors += _validate_affinity(spec.get("nodeAffinity"), SPEC.child("nodeAffinity"))
    errors += _validate_sources(spec, metadata_of(obj).get("name") or "", SPEC)
    return errors + _validate_classes(spec)


def _validate_mount_options(obj: Unstructured) -> list[FieldError]:
    """Validate the older annotation with mount options, which `spec.mountOptions` replaces.

    Source: Kubernetes `pkg/volume/validation/pv_validation.go`.
    """
    if _MOUNT_OPTIONS not in (metadata_of(obj).get("annotations") or {}) or _MOUNTABLE & (obj.get("spec") or {}).keys():
        return []
    path = Path("metadata.annotations").child(_MOUNT_OPTIONS)
    return [forbidden(path, "may not specify mount options for this volume type")]


def _validate_capacity(capacity: Mapping[str, str], path: Path) -> list[FieldError]:
    errors = [] if capacity else [required(path)]
    if capacity.keys() != {"storage"}:
        errors.append(not_supported(path, sorted_map(capacity), ("storage",)))
    for resource, amount in capacity.items():
        billionths = parse(amount)
        if billionths < 0:
            rounded = -(-billionths // WHOLE)
            errors.append(invalid(path.key(resource), rounded, "must be a valid resource quantity"))
        if billionths <= 0:
            errors.append(invalid(path.key(resource), amount, NOT_POSITIVE))
    return errors


def _validate_affinity(affinity: Mapping[str, Any] | None, path: Path) -> list[FieldError]:
    if affinity is None:
        return []
    below = path.child("required")
    if affinity.get("required") is None:
        return [required(below, "must specify required node constraints")]
    return validate_node_selector(affinity["required"], below)


def _validate_same_affinity(new: Mapping[str, Any] | None, old: Mapping[str, Any] | None) -> list[FieldError]:
    """Validate that the node affinity is unchanged, except that stable names may replace beta labels."""
    if old is None or (new is not None and _requirements(new, old) == old):
        return []
    value = None if new is None else shown("VolumeNodeAffinity", new)
    return [invalid(Path("nodeAffinity"), value, f"{IMMUTABLE}, except for updating from beta label to GA")]


def _requirements(new: Any, old: Any) -> Any:
    """Return `new`, in which a stable label name is replaced by the beta label if `old` has the beta label there."""
    if isinstance(new, dict) and isinstance(old, dict):
        renamed = {"key": old["key"]} if _STABLE_LABELS.get(old.get("key", "")) == new.get("key", "") else {}
        return {name: _requirements(value, old.get(name)) for name, value in new.items()} | renamed
    if isinstance(new, list) and isinstance(old, list) and len(new) == len(old):
        return [_requirements(*each) for each in zip(new, old, strict=True)]
    return new


def validate_inline_spec(spec: Mapping[str, Any], path: Path) -> list[FieldError]:
    """Validate the spec of a volume that is part of a VolumeAttachment (an inline volume)."""
    errors = [forbidden(path.child(each), _NOT_INLINE) for each in ("claimRef", "capacity") if _is_said(spec, each)]
    errors += [] if _is_said(spec, "csi") else [required(path.child("csi"), f"has to be specified {_INLINE}")]
    errors += [] if spec.get("accessModes") else [required(path.child("accessModes"))]
    errors += validate_access_modes(spec.get("accessModes") or (), path.child("accessModes"))
    (policy, kept), (mode, usual) = ("persistentVolumeReclaimPolicy", "Retain"), ("volumeMode", "Filesystem")
    if spec.get(policy) not in (None, "", kept):
        errors.append(forbidden(path.child(policy), f"may only be {kept} {_INLINE}"))
    errors += [forbidden(path.child("nodeAffinity"), _NOT_INLINE)] if _is_said(spec, "nodeAffinity") else []
    errors += _validate_sources({**spec, "nodeAffinity": None}, "", path)
    errors += [forbidden(path.child("storageClassName"), _NOT_INLINE)] if spec.get("storageClassName") else []
    if spec.get(mode) not in (None, usual):
        errors.append(forbidden(path.child(mode), f"may not specify volumeMode other than {usual} {_INLINE}"))
    return errors


def _is_said(spec: Mapping[str, Any], field: str) -> bool:
    return spec.get(field) is not None


def _validate_sources(spec: Mapping[str, Any], name: str, path: Path) -> list[FieldError]:
    given = [field for field in PERSISTENT_SOURCES if spec.get(field) is not None]
    errors: list[FieldError] = []
    for index, field in enumerate(given):
        several, own, check = PERSISTENT_SOURCES[field]
        if index and field != "flexVolume":  # Kubernetes does not count this source with the other ones
            errors.append(forbidden(path.child(several), ONLY_ONE))
            continue
        if field == "iscsi":
            errors += _validate_portal(spec[field], name, path)
        errors += check(spec[field], path.child(own))
        if field == "local" and spec.get("nodeAffinity") is None:
            errors.append(required(path.child("nodeAffinity"), "Local volume requires node affinity"))
    if not given:
        errors.append(required(path, "must specify a volume type"))
    root = posixpath.normpath((spec.get("hostPath") or {}).get("path") or ".").lstrip("/") == ""
    if root and spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        detail = "may not be 'recycle' for a hostPath mount of '/'"
        errors.append(forbidden(path.child("persistentVolumeReclaimPolicy"), detail))
    return errors


def _validate_portal(source: Mapping[str, Any], name: str, path: Path) -> list[FieldError]:
    portal = source.get("targetPortal") or ""
    if source.get("initiatorName") is None or name_formats.length(f"{name}:{portal}") <= _LONGEST_PORTAL:
        return []
    limit = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters"
    detail = f"{limit} if iscsi.initiatorName is specified."
    return [invalid(path.child("iscsi", "targetportal"), portal, detail)]


def _validate_classes(spec: Mapping[str, Any]) -> list[FieldError]:
    errors: list[FieldError] = []
    if class_name := spec.get("storageClassName"):
        errors += each_problem(name_formats.dns1123_subdomain, class_name, SPEC.child("storageClassName"))
    errors += validate_volume_mode(spec, SPEC)
    attributes, path = spec.get("volumeAttributesClassName"), SPEC.child("volumeAttributesClassName")
    if attributes is None:
        return errors
    if attributes:
        errors += each_problem(name_formats.dns1123_subdomain, attributes, path)
    else:
        errors.append(required(path, "an empty string is disallowed"))
    if spec.get("csi") is None:
        detail = "has to be specified when using volumeAttributesClassName"
        errors.append(required(SPEC.child("csi"), detail))
    return errors


def _sources_of(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {field: spec[field] for field in PERSISTENT_SOURCES if field in spec}


def _allow_expansion_secret(before: dict[str, Any], after: dict[str, Any]) -> None:
    """Remove the secret for expansions from `after` before the comparison, because an update may add this secret."""
    field = "controllerExpandSecretRef"
    mine, theirs = before.get("csi"), after.get("csi")
    if mine is not None and theirs is not None and field not in mine:
        after["csi"] = {key: value for key, value in theirs.items() if key != field}
