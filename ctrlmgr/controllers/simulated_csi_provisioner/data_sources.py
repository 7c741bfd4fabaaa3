"""Checks the source of a claim's data: a VolumeSnapshot, or another claim that is cloned.

Source: `external-provisioner` (`pkg/controller/controller.go`, `getSnapshotSource` and `getPVCSource`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ctrlmgr.api.quantity import WHOLE, parse
from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.controllers.persistentvolume_attach_detach.attachable import CLAIMS, VOLUMES
from ctrlmgr.simulation.csi_objects import DRIVER, SNAPSHOT_CONTENTS, SNAPSHOTS

Fields = Mapping[str, Any]
Lookup = Callable[[Resource, Key], Fields | None]
"""A function that returns an object; None if the object does not exist."""

_MODE_CHANGE: Final = "snapshot.storage.kubernetes.io/allow-volume-mode-change"


def is_populated(claim: Fields) -> bool:
    """Return whether another program creates the volume of a claim, because no driver knows the kind of its source."""
    return (_source(claim).get("kind") or "") not in ("", "VolumeSnapshot", "PersistentVolumeClaim")


def source_problem(claim: Fields, class_name: str, find: Lookup) -> str | None:
    """Return the reason why no volume can be created from a claim's source; None if there is none."""
    source = _source(claim)
    if not source:
        return None
    kind, name = source["kind"], source["name"]
    if kind == "VolumeSnapshot" and source.get("apiGroup") != SNAPSHOTS.group:
        got = source.get("apiGroup") or ""
        return f"the PVC source does not belong to the right APIGroup. Expected {SNAPSHOTS.group}, Got {got}"
    problem = (
        _snapshot_problem(claim, name, class_name, find)
        if kind == "VolumeSnapshot"
        else _claim_problem(claim, name, find)
    )
    return problem and f"error getting handle for DataSource Type {kind} by Name {name}: {problem}"


def _source(claim: Fields) -> Fields:
    """Return the source of a claim; a source in another namespace needs a gate of the provisioner that is off."""
    found: Fields = claim["spec"].get("dataSource") or claim["spec"].get("dataSourceRef") or {}
    return found


def _snapshot_problem(claim: Fields, name: str, class_name: str, find: Lookup) -> str | None:
    snapshot = find(SNAPSHOTS, Key(claim["metadata"]["namespace"], name))
    if snapshot is None:
        return f'error getting snapshot {name} from api server: {SNAPSHOTS} "{name}" not found'
    if snapshot["metadata"].get("deletionTimestamp"):
        return f"snapshot {name} is being deleted"
    status = snapshot.get("status") or {}
    bound = status.get("boundVolumeSnapshotContentName")
    if not bound:
        return f"snapshot {name} not bound"
    content = find(SNAPSHOT_CONTENTS, Key("", bound))
    if content is None:
        return f"error getting snapshotcontent {bound} for snapshot {name}"
    reference, meta = content["spec"]["volumeSnapshotRef"], snapshot["metadata"]
    if any(reference.get(field) != meta[field] for field in ("uid", "namespace", "name")):
        return f"snapshotcontent {bound} for snapshot {name} is bound to a different snapshot"
    if content["spec"].get("driver") != DRIVER:
        return f"snapshotcontent {bound} for snapshot {name} is not handled by CSI driver of StorageClass {class_name}"
    if not status.get("readyToUse"):
        return f"snapshot {name} is not Ready"
    return _restoring_problem(claim, name, status, content)


def _restoring_problem(claim: Fields, name: str, status: Fields, content: Fields) -> str | None:
    requested, size = _size(claim), parse(str(status.get("restoreSize") or "0")) // WHOLE
    if requested < size:
        return f"requested volume size {requested} is less than the size {size} for the source snapshot {name}"
    mode = content["spec"].get("sourceVolumeMode")
    allowed = (content["metadata"].get("annotations") or {}).get(_MODE_CHANGE)
    if mode in (None, _mode(claim)) or allowed == "true":
        return None
    meta, bound = claim["metadata"], content["metadata"]["name"]
    reason = f"{_MODE_CHANGE} annotation is not present on snapshotcontent {bound}"
    if allowed is not None:
        reason = f"{_MODE_CHANGE} is set to false on snapshotcontent {bound}"
    whose = f"requested volume {meta['namespace']}/{meta['name']} modifies the mode of the source volume"
    return f"{whose} but does not have permission to do so. {reason}"


def _claim_problem(claim: Fields, name: str, find: Lookup) -> str | None:
    namespace = claim["metadata"]["namespace"]
    source = find(CLAIMS, Key(namespace, name))
    if source is None:
        missing = f'persistentvolumeclaim "{name}" not found'
        return f'error getting PVC {name} (namespace "{namespace}") from api server: {missing}'
    phase = (source.get("status") or {}).get("phase", "")
    if phase != "Bound":
        return f"the PVC DataSource {name} must have a status of Bound.  Got {phase}"
    if source["metadata"].get("deletionTimestamp"):
        return f"the PVC DataSource {name} is currently being deleted"
    requested, size = _size(claim), _size(source)
    if requested < size:
        return (
            "error, new PVC request must be greater than or equal in size to the specified PVC data source, "
            f"requested {requested} but source is {size}"
        )
    volume = find(VOLUMES, Key("", source["spec"].get("volumeName") or ""))
    if volume is None or not _is_of(volume, source):
        return "claim in dataSource not bound or invalid"
    modes = _mode(volume), _mode(claim)
    if modes[0] != modes[1]:
        words = "the source PVC and destination PVCs must have the same volume mode for cloning."
        return f"{words}  Source is {modes[0]}, but new PVC requested {modes[1]}"
    return None


def _is_of(volume: Fields, claim: Fields) -> bool:
    """Return whether a volume of this driver is bound to a claim."""
    bound = (volume["spec"].get("claimRef") or {}).get("uid") == claim["metadata"]["uid"]
    is_ours = (volume["spec"].get("csi") or {}).get("driver") == DRIVER
    return bound and is_ours and (volume.get("status") or {}).get("phase") == "Bound"


def _size(claim: Fields) -> int:
    return parse(claim["spec"]["resources"]["requests"]["storage"]) // WHOLE


def _mode(obj: Fields) -> str:
    return str(obj["spec"].get("volumeMode") or "Filesystem")
