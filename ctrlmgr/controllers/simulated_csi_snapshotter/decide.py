"""Decides the states of VolumeSnapshots and VolumeSnapshotContents, with pure functions.

Guarantees, those of `external-snapshotter` (`pkg/common-controller`, `pkg/sidecar-controller`):
- A snapshot of a claim gets one VolumeSnapshotContent, because the snapshot's uid determines its name.
- A snapshot has a finalizer while its VolumeSnapshotContent exists, if the deletion policy is Delete.
- The deletion policy decides whether the VolumeSnapshotContent of a deleted snapshot is deleted or kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ctrlmgr.api.quantity import WHOLE, canonical, parse
from ctrlmgr.clock import format_time_seconds
from ctrlmgr.simulation.csi_objects import DRIVER, SNAPSHOTS

Fields = Mapping[str, Any]
DOMAIN: Final = "snapshot.storage.kubernetes.io"
CONTENT_FINALIZER: Final = f"{DOMAIN}/volumesnapshotcontent-bound-protection"
BOUND_FINALIZER: Final = f"{DOMAIN}/volumesnapshot-bound-protection"
SOURCE_FINALIZER: Final = f"{DOMAIN}/volumesnapshot-as-source-protection"
BEING_DELETED: Final = f"{DOMAIN}/volumesnapshot-being-deleted"


def content_name(snapshot: Fields) -> str:
    """Return the name of a snapshot's content: the given name, or a name from the snapshot's uid."""
    given: str | None = snapshot["spec"]["source"].get("volumeSnapshotContentName")
    return given or f"snapcontent-{snapshot['metadata']['uid']}"


def new_content(snapshot: Fields, snapshot_class: Fields, volume: Fields) -> dict[str, Any]:
    """Return the content of a new snapshot of a volume."""
    meta = snapshot["metadata"]
    spec: dict[str, Any] = {
        "deletionPolicy": snapshot_class["deletionPolicy"],
        "driver": DRIVER,
        "source": {"volumeHandle": volume["spec"]["csi"]["volumeHandle"]},
        "sourceVolumeMode": volume["spec"].get("volumeMode") or "Filesystem",
        "volumeSnapshotClassName": snapshot_class["metadata"]["name"],
        "volumeSnapshotRef": {
            "apiVersion": f"{SNAPSHOTS.group}/v1",
            "kind": "VolumeSnapshot",
            **{field: meta[field] for field in ("name", "namespace", "resourceVersion", "uid")},
        },
    }
    return {
        "apiVersion": f"{SNAPSHOTS.group}/v1",
        "kind": "VolumeSnapshotContent",
        "metadata": {"name": content_name(snapshot), "finalizers": [CONTENT_FINALIZER]},
        "spec": spec,
    }


def is_bound_to(content: Fields, snapshot: Fields) -> bool:
    """Return whether a content belongs to a snapshot."""
    reference, meta = content["spec"]["volumeSnapshotRef"], snapshot["metadata"]
    return all(reference.get(field) == meta[field] for field in ("name", "namespace", "uid"))


def can_bind(content: Fields, snapshot: Fields) -> bool:
    """Return whether a content that a user created is reserved for a snapshot."""
    reference, meta = content["spec"]["volumeSnapshotRef"], snapshot["metadata"]
    is_named = all(reference.get(field) == meta[field] for field in ("name", "namespace"))
    return is_named and reference.get("uid") in (None, "", meta["uid"])


def bound_content(content: Fields, snapshot: Fields) -> dict[str, Any]:
    """Return a content that a user created, bound to its snapshot."""
    reference = {**content["spec"]["volumeSnapshotRef"], "uid": snapshot["metadata"]["uid"]}
    return {**content, "spec": {**content["spec"], "volumeSnapshotRef": reference}}


def taken(content: Fields, volume: Fields | None, now: int) -> dict[str, Any]:
    """Return a content with the status that the driver writes after taking the snapshot at `now` (microseconds)."""
    handle = content["spec"]["source"].get("snapshotHandle") or f"snapshot-{content['metadata']['uid']}"
    status: dict[str, Any] = {"snapshotHandle": handle, "creationTime": now * 1000, "readyToUse": True}
    if volume is not None:
        status["restoreSize"] = -(-parse(volume["spec"]["capacity"]["storage"]) // WHOLE)
    return {**content, "status": status}


def snapshot_status(snapshot: Fields, content: Fields) -> dict[str, Any]:
    """Return the status of a snapshot with this content (`updateSnapshotStatus`)."""
    taken_status = content.get("status") or {}
    found = dict(snapshot.get("status") or {})
    found.setdefault("boundVolumeSnapshotContentName", content["metadata"]["name"])
    found["readyToUse"] = bool(taken_status.get("readyToUse"))
    if taken_status.get("creationTime"):
        found.setdefault("creationTime", format_time_seconds(taken_status["creationTime"] // 1000))
    if taken_status.get("restoreSize") is not None:
        found.setdefault("restoreSize", _binary(taken_status["restoreSize"]))
    found.pop("error", None)
    return found


def _binary(size: int) -> str:
    """Return a number of bytes as a quantity with the largest binary suffix that keeps the number exact."""
    return canonical(str(size) if size % 1024 else f"{size // 1024}Ki")


def with_error(snapshot: Fields, message: str, now: str) -> dict[str, Any]:
    """Return a snapshot with an error in its status."""
    status = {**(snapshot.get("status") or {}), "readyToUse": False, "error": {"message": message, "time": now}}
    return {**snapshot, "status": status}


def with_finalizers(obj: Fields, *, add: Sequence[str] = (), remove: Sequence[str] = ()) -> dict[str, Any]:
    """Return an object with more or fewer finalizers."""
    held = [each for each in obj["metadata"].get("finalizers") or () if each not in remove]
    desired = [*held, *(each for each in add if each not in held)]
    return {**obj, "metadata": {**obj["metadata"], "finalizers": desired}}


def marked_for_deletion(content: Fields) -> dict[str, Any]:
    """Return a content whose snapshot is being deleted."""
    annotations = {**(content["metadata"].get("annotations") or {}), BEING_DELETED: "yes"}
    return {**content, "metadata": {**content["metadata"], "annotations": annotations}}


def is_released(content: Fields) -> bool:
    """Return whether the driver may delete a terminating content: its snapshot is being deleted, or it has none."""
    is_reserved = bool(content["spec"]["volumeSnapshotRef"].get("uid"))
    return not is_reserved or BEING_DELETED in (content["metadata"].get("annotations") or {})
