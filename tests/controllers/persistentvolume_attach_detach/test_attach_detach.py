from __future__ import annotations

import gc
from typing import Any

import pytest

from ctrlmgr.controllers.persistentvolume_attach_detach import Options
from ctrlmgr.controllers.persistentvolume_attach_detach.attachable import ATTACHMENTS
from ctrlmgr.controllers.persistentvolume_attach_detach.controller import build
from ctrlmgr.controllers.persistentvolume_attach_detach.decide import CsiVolume, volume_of
from ctrlmgr.controllers.persistentvolume_attach_detach.volume_metrics import (
    FORCED_DETACHES,
    TOTAL_VOLUMES,
    VOLUMES_IN_USE,
)
from tests.controllers.stage_context import StageContext
from tests.controllers.worked_stage import WorkedStage

NODES, VOLUMES = "/api/v1/nodes", "/api/v1/persistentvolumes"
CLAIMS, PODS = "/api/v1/namespaces/a/persistentvolumeclaims", "/api/v1/namespaces/a/pods"
STORAGE = "/apis/storage.k8s.io/v1"
MANAGED = {"volumes.kubernetes.io/controller-managed-attach-detach": "true"}
READY = [{"type": "Ready", "status": "True"}]


def unique(name: str) -> str:
    return f"kubernetes.io/csi/disks.example.com^h-{name}"


def attachment(volume: str, node: str) -> str:
    return CsiVolume("disks.example.com", f"h-{volume}").attachment(node)


class AttachDetachCluster:
    """A cluster with two nodes, and with volumes of a CSI driver that the test simulates."""

    def __init__(self, **options: Any) -> None:
        self.options = Options(**options)
        self.stage = WorkedStage(self._build)
        self.stage.namespace("a")
        self.stage.namespace("b")
        for name in ("n1", "n2"):
            self.node(name, annotations=MANAGED)

    def _build(self, stage: WorkedStage) -> Any:
        self.context = StageContext(stage)
        return build(self.context, self.options)

    def node(self, name: str, **metadata: Any) -> None:
        self.stage.create(NODES, {"metadata": {"name": name, **metadata}})
        self.stage.patch(f"{NODES}/{name}/status", {"status": {"conditions": READY}})

    def volume(self, name: str, mode: str = "ReadWriteOnce", driver: str = "disks.example.com") -> None:
        """Return a PersistentVolume that is bound to a claim with the same name."""
        spec = {"accessModes": [mode], "resources": {"requests": {"storage": "1Gi"}}, "volumeName": name}
        claim = self.stage.create(CLAIMS, {"metadata": {"name": name}, "spec": spec})
        reference = {"namespace": "a", "name": name, "uid": claim["metadata"]["uid"]}
        source = {"csi": {"driver": driver, "volumeHandle": f"h-{name}"}, "claimRef": reference}
        body = {"capacity": {"storage": "1Gi"}, "accessModes": [mode], **source}
        self.stage.create(VOLUMES, {"metadata": {"name": name}, "spec": body})
        self.stage.patch(f"{CLAIMS}/{name}/status", {"status": {"phase": "Bound"}})

    def pod(self, name: str, node: str, *claims: str) -> None:
        volumes = [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in claims]
        spec = {"nodeName": node, "containers": [{"name": "c", "image": "i"}], "volumes": volumes}
        self.stage.create(PODS, {"metadata": {"name": name}, "spec": spec})
        self.stage.work()

    def gone(self, pod: str) -> None:
        self.stage.delete(f"{PODS}/{pod}", gracePeriodSeconds=0)
        self.stage.work()

    def drives(self, volume: str, node: str, **status: Any) -> None:
        """Write a VolumeAttachment's status as the driver does; by default, the volume is attached."""
        where = f"{STORAGE}/volumeattachments/{attachment(volume, node)}/status"
        self.stage.patch(where, {"status": status or {"attached": True}})
        self.stage.work()

    def reports(self, node: str, **status: Any) -> None:
        self.stage.patch(f"{NODES}/{node}/status", {"status": status})
        self.stage.work()

    def attached(self, node: str) -> list[str]:
        status = self.stage.send("GET", f"{NODES}/{node}").body["status"]
        return [each["name"] for each in status.get("volumesAttached") or ()]

    def attachments(self) -> list[str]:
        return self.stage.names(ATTACHMENTS)

    def messages(self) -> list[tuple[str, str]]:
        return [(reason, message) for _, reason, message in self.context.recorded.events]


@pytest.fixture
def cluster() -> AttachDetachCluster:
    return AttachDetachCluster()


def test_a_volume_of_a_pod_is_attached_and_reported_when_the_driver_has_done_it(cluster: AttachDetachCluster) -> None:
    cluster.volume("v")
    cluster.pod("p", "n1", "v")
    found = cluster.stage.stored(ATTACHMENTS, attachment("v", "n1"))
    assert found is not None
    spec = {"attacher": "disks.example.com", "nodeName": "n1", "source": {"persistentVolumeName": "v"}}
    assert found.to_dict()["spec"] == spec
    assert cluster.attached("n1") == []
    cluster.drives("v", "n1")
    assert cluster.attached("n1") == [unique("v")]
    assert cluster.messages() == [("SuccessfulAttachVolume", 'AttachVolume.Attach succeeded for volume "v" ')]


def test_an_attachment_has_kubernetes_name() -> None:
    volume = CsiVolume("vo2.attach.example.com", "h-a")
    assert volume.attachment("vo2-n1") == "csi-fa1b10a3003e494844cd9f1e4449f489fb59ebd00b6db7681784397a7a63276b"


def test_unique_names_of_other_plugins_are_no_csi_volumes() -> None:
    assert volume_of(unique("v")) == CsiVolume("disks.example.com", "h-v")
    assert volume_of("kubernetes.io/iscsi/1.2.3.4:iqn:0") is None


def test_nodes_that_attach_themselves_and_drivers_without_attaching_are_ignored(cluster: AttachDetachCluster) -> None:
    spec = {"attachRequired": False}
    cluster.stage.create(f"{STORAGE}/csidrivers", {"metadata": {"name": "plain.example.com"}, "spec": spec})
    cluster.node("n3")
    cluster.volume("v")
    cluster.volume("plain", driver="plain.example.com")
    cluster.pod("p", "n3", "v")
    cluster.pod("q", "n1", "plain")
    assert cluster.attachments() == []


def test_a_volume_in_use_is_detached_when_the_node_has_unmounted_it(cluster: AttachDetachCluster) -> None:
    cluster.volume("v")
    cluster.pod("p", "n1", "v")
    cluster.drives("v", "n1")
    cluster.reports("n1", volumesInUse=[unique("v")])
    cluster.gone("p")
    assert cluster.attached("n1") == [unique("v")]
    cluster.reports("n1", volumesInUse=None)
    assert cluster.attached("n1") == []
    assert cluster.attachments() == []


def test_the_volume_of_a_pod_that_has_ended_is_detached(cluster: AttachDetachCluster) -> None:
    cluster.volume("v")
    cluster.pod("p", "n1", "v")
    cluster.stage.patch(f"{PODS}/p/status", {"status": {"phase": "Succeeded"}})
    cluster.stage.work()
    assert cluster.attachments() == []


@pytest.mark.parametrize(
    ("status", "disabled", "is_forced"),
    [("True", False, False), ("Unknown", False, True), ("Unknown", True, False)],
    ids=["ready", "not ready", "not ready, but never forced"],
)
def test_an_unready_node_keeps_a_volume_in_use_for_six_minutes(status: str, disabled: bool, is_forced: bool) -> None:
    cluster = AttachDetachCluster(disable_force_detach_on_timeout=disabled)
    cluster.volume("v")
    cluster.pod("p", "n1", "v")
    cluster.drives("v", "n1")
    cluster.reports("n1", volumesInUse=[unique("v")], conditions=[{"type": "Ready", "status": status}])
    cluster.gone("p")
    cluster.stage.pass_by(359)
    assert len(cluster.attachments()) == 1
    cluster.stage.pass_by(2)
    assert len(cluster.attachments()) == (0 if is_forced else 1)


def test_a_node_out_of_service_loses_volumes_in_use_at_once(cluster: AttachDetachCluster) -> None:
    cluster.volume("v")
    cluster.pod("p", "n1", "v")
    cluster.reports("n1", volumesInUse=[unique("v")])
    cluster.gone("p")
    assert len(cluster.attachments()) == 1
    taint = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}
    cluster.stage.patch(f"{NODES}/n1", {"spec": {"taints": [taint]}})
    cluster.stage.work()
    assert cluster.attachments() == []


def test_a_single_node_volume_waits_for_the_other_node_and_its_pods_get_an_event(cluster: AttachDetachCluster) -> None:
    cluster.volume("v")
    cluster.pod("p", "n1", "v")
    cluster.drives("v", "n1")
    cluster.pod("q", "n2", "v")
    assert cluster.attachments() == [attachment("v", "n1")]
    recorded = 'Multi-Attach error for volume "v" Volume is already used by pod(s) p'
    assert cluster.messages()[1:] == [("FailedAttachVolume", recorded)]
    cluster.gone("p")
    assert cluster.attachments() == [attachment("v", "n2")]


def test_a_volume_no_longer_needed_elsewhere_is_reported_as_attached_exclusively(cluster: AttachDetachCluster) -> None:
    cluster.volume("v")
    cluster.pod("p", "n1", "v")
    cluster.drives("v", "n1")
    cluster.reports("n1", volumesInUse=[unique("v")])
    cluster.gone("p")
    cluster.pod("q", "n2", "v")
    why = "Volume is already exclusively attached to one node and can't be attached to another"
    assert cluster.messages()[1:] == [("FailedAttachVolume", f'Multi-Attach error for volume "v" {why}')]


def test_a_shared_volume_is_attached_to_every_node(cluster: AttachDetachCluster) -> None:
    cluster.volume("v", "ReadWriteMany")
    cluster.pod("p", "n1", "v")
    cluster.pod("q", "n2", "v")
    assert cluster.attachments() == sorted([attachment("v", "n1"), attachment("v", "n2")])


def test_a_drivers_error_is_reported_until_it_succeeds(cluster: AttachDetachCluster) -> None:
    cluster.volume("v")
    cluster.pod("p", "n1", "v")
    cluster.drives("v", "n1", attachError={"message": "no space"})
    failed = ("FailedAttachVolume", 'AttachVolume.Attach failed for volume "v" : no space')
    assert cluster.messages() == [failed]
    cluster.stage.pass_by(0.5)
    assert cluster.messages() == [failed, failed]
    cluster.drives("v", "n1", attached=True, attachError=None)
    assert cluster.attached("n1") == [unique("v")]


def test_a_driver_that_does_not_answer_is_reported_after_two_minutes(cluster: AttachDetachCluster) -> None:
    cluster.volume("v")
    cluster.pod("p", "n1", "v")
    cluster.stage.pass_by(119)
    assert cluster.messages() == []
    cluster.stage.pass_by(2)
    late = "timed out waiting for external-attacher of disks.example.com CSI driver to attach volume h-v"
    assert cluster.messages() == [("FailedAttachVolume", f'AttachVolume.Attach failed for volume "v" : {late}')]


@pytest.mark.parametrize(("disabled", "is_attached_again"), [(False, True), (True, False)])
def test_a_deleted_attachment_is_created_again_after_the_period(disabled: bool, is_attached_again: bool) -> None:
    cluster = AttachDetachCluster(disable_attach_detach_reconcile_sync=disabled)
    cluster.volume("v")
    cluster.pod("p", "n1", "v")
    cluster.drives("v", "n1")
    cluster.stage.delete(f"{STORAGE}/volumeattachments/{attachment('v', 'n1')}")
    cluster.stage.work()
    cluster.stage.pass_by(58)
    assert cluster.attachments() == []
    cluster.stage.pass_by(3)
    assert bool(cluster.attachments()) is is_attached_again


def test_volumes_of_a_deleted_node_are_detached(cluster: AttachDetachCluster) -> None:
    cluster.volume("v")
    cluster.pod("p", "n1", "v")
    cluster.stage.delete(f"{NODES}/n1")
    cluster.stage.work()
    assert cluster.attachments() == []


def test_a_restarted_controller_detaches_unneeded_volumes(cluster: AttachDetachCluster) -> None:
    cluster.volume("v")
    cluster.pod("p", "n1", "v")
    cluster.drives("v", "n1")
    cluster.stage.delete(f"{PODS}/p", gracePeriodSeconds=0)
    cluster.stage.start()
    cluster.stage.work()
    assert cluster.attachments() == []
    assert cluster.attached("n1") == []


def test_an_attachment_with_another_name_is_unchanged(cluster: AttachDetachCluster) -> None:
    cluster.volume("v")
    spec = {"attacher": "disks.example.com", "nodeName": "n1", "source": {"persistentVolumeName": "v"}}
    cluster.stage.create(f"{STORAGE}/volumeattachments", {"metadata": {"name": "own"}, "spec": spec})
    cluster.stage.work()
    assert cluster.attachments() == ["own"]


def forced(reason: str) -> float:
    value: float = FORCED_DETACHES.labels(reason)._value.get()
    return value


def test_metrics_count_volumes_by_driver_and_forced_detaches_by_reason() -> None:
    gc.collect()  # The controllers of other tests have no series.
    cluster = AttachDetachCluster()
    disks, other = "kubernetes.io/csi:disks.example.com", "kubernetes.io/csi:other.example.com"
    cluster.volume("v")
    cluster.volume("w", driver="other.example.com")
    cluster.pod("p", "n1", "v", "w")
    cluster.drives("v", "n1")
    assert VOLUMES_IN_USE.read() == {("n1", disks): 1, ("n1", other): 1}
    assert TOTAL_VOLUMES.read() == {
        (each, state): 1 for each in (disks, other) for state in ("desired_state_of_world", "actual_state_of_world")
    }
    before = forced("out-of-service"), forced("timeout")
    cluster.reports("n1", volumesInUse=[unique("v")])
    cluster.gone("p")
    taint = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}
    cluster.stage.patch(f"{NODES}/n1", {"spec": {"taints": [taint]}})
    cluster.stage.work()
    assert (forced("out-of-service"), forced("timeout")) == (before[0] + 1, before[1])
    assert VOLUMES_IN_USE.read() == TOTAL_VOLUMES.read() == {}


def test_a_detach_that_the_time_limit_forces_is_counted(cluster: AttachDetachCluster) -> None:
    cluster.volume("v")
    cluster.pod("p", "n1", "v")
    cluster.drives("v", "n1")
    cluster.reports("n1", volumesInUse=[unique("v")], conditions=[{"type": "Ready", "status": "False"}])
    before = forced("timeout")
    cluster.gone("p")
    cluster.stage.pass_by(359)
    assert forced("timeout") == before
    cluster.stage.pass_by(2)
    assert forced("timeout") == before + 1
