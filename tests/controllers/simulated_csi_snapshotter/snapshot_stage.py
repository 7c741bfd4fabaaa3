"""A cluster with the CustomResourceDefinitions of snapshots, a claim of the simulated driver, and the snapshotter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ctrlmgr.api.object import Object
from ctrlmgr.controllers.descriptor import NoOptions
from ctrlmgr.controllers.simulated_csi_snapshotter.controller import build
from ctrlmgr.manager import Controller
from ctrlmgr.simulation.csi_objects import DRIVER, SNAPSHOT_CLASSES, SNAPSHOT_CONTENTS, SNAPSHOTS
from tests.controllers.customresourcedefinitions.defined import EverythingStage
from tests.controllers.stage_context import StageContext

PATHS = "/apis/snapshot.storage.k8s.io/v1/namespaces/shop/volumesnapshots"
CONTENTS = "/apis/snapshot.storage.k8s.io/v1/volumesnapshotcontents"
CLASSES = "/apis/snapshot.storage.k8s.io/v1/volumesnapshotclasses"
CLAIMS = "/api/v1/namespaces/shop/persistentvolumeclaims"
_FREE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_KINDS = (
    (SNAPSHOTS, "VolumeSnapshot", "Namespaced"),
    (SNAPSHOT_CONTENTS, "VolumeSnapshotContent", "Cluster"),
    (SNAPSHOT_CLASSES, "VolumeSnapshotClass", "Cluster"),
)


def definitions() -> list[dict[str, Any]]:
    """Return definitions that accept every field."""
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": _FREE}}
    return [
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {
                "name": f"{resource.plural}.{resource.group}",
                "annotations": {"api-approved.kubernetes.io": "https://example.com"},
            },
            "spec": {
                "group": resource.group,
                "scope": scope,
                "names": {"plural": resource.plural, "kind": kind},
                "versions": [{**version, "subresources": {} if "Class" in kind else {"status": {}}}],
            },
        }
        for resource, kind, scope in _KINDS
    ]


class SnapshotStage(EverythingStage):
    """The stage; `made` builds the controller that the stage runs with the controller of definitions."""

    context: StageContext

    def made(self) -> Controller:
        self.context = StageContext(self)
        return build(self.context, NoOptions())

    def define_snapshots(self) -> None:
        for each in definitions():
            self.define(each)

    def volume(self, name: str = "data", size: str = "2Gi") -> None:
        """Create a claim that is bound to a volume of the simulated driver."""
        request = {"accessModes": ["ReadWriteOnce"], "storageClassName": "simulated", "volumeName": f"pv-{name}"}
        spec = {**request, "resources": {"requests": {"storage": size}}}
        claim = self.create(CLAIMS, {"metadata": {"name": name}, "spec": spec})
        source = {"driver": DRIVER, "volumeHandle": f"handle-{name}"}
        reference = {"namespace": "shop", "name": name, "uid": claim["metadata"]["uid"]}
        volume = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": size}, "csi": source, "claimRef": reference}
        self.create("/api/v1/persistentvolumes", {"metadata": {"name": f"pv-{name}"}, "spec": volume})
        for path in (f"{CLAIMS}/{name}/status", f"/api/v1/persistentvolumes/pv-{name}/status"):
            self.patch(path, {"status": {"phase": "Bound"}})
        self.work()

    def snapshot(self, name: str = "snap", **source: str) -> dict[str, Any]:
        """Create a snapshot; by default, of the claim `data`."""
        spec = {"source": source or {"persistentVolumeClaimName": "data"}}
        self.create(PATHS, _of("VolumeSnapshot", {"metadata": {"name": name}, "spec": spec}))
        self.work()
        return self.read(f"{PATHS}/{name}")

    def read(self, path: str) -> dict[str, Any]:
        answer = self.send("GET", path)
        assert answer.code == 200, answer.body
        found: dict[str, Any] = answer.body
        return found

    def recorded(self) -> Sequence[tuple[str, str, str]]:
        found: Sequence[tuple[str, str, str]] = self.context.recorded.events
        return found


def content(name: str, **spec: Any) -> dict[str, Any]:
    """Return a content that a user creates for the snapshot `shop/snap`."""
    fields = {
        "driver": DRIVER,
        "deletionPolicy": "Retain",
        "source": {"snapshotHandle": "old"},
        "volumeSnapshotRef": {"namespace": "shop", "name": "snap"},
        **spec,
    }
    return _of("VolumeSnapshotContent", {"metadata": {"name": name}, "spec": fields})


def _of(kind: str, fields: dict[str, Any]) -> dict[str, Any]:
    return Object.from_dict({"apiVersion": "snapshot.storage.k8s.io/v1", "kind": kind, **fields}).to_dict()
