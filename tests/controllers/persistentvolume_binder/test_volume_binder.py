from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.controllers.persistentvolume_binder import Options
from ctrlmgr.controllers.persistentvolume_binder.controller import CLAIMS, VOLUMES, build
from tests.controllers.stage_context import StageContext
from tests.controllers.worked_stage import WorkedStage

Thing = dict[str, Any]
COMPLETED = "pv.kubernetes.io/bind-completed"
BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
NFS = {"nfs": {"path": "/v", "server": "192.0.2.1"}}


class BinderCluster:
    """A cluster with the namespace `a` and the volume binder."""

    def __init__(self, options: Options | None = None) -> None:
        self._options = options or Options()
        self.stage = WorkedStage(self._build)
        self.stage.namespace("a")

    def _build(self, stage: WorkedStage) -> Any:
        self.context = StageContext(stage)
        return build(self.context, self._options)

    def volume(self, name: str, size: str = "1Gi", source: Thing = NFS, **spec: Any) -> None:
        given = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "storageClassName": "c"}
        meta = {"name": name, **spec.pop("metadata", {})}
        self.stage.create("/api/v1/persistentvolumes", {"metadata": meta, "spec": {**given, **source, **spec}})
        self.stage.work()

    def claim(self, name: str, size: str = "1Gi", **spec: Any) -> None:
        given = {"resources": {"requests": {"storage": size}}, "accessModes": ["ReadWriteOnce"]}
        body = {"metadata": {"name": name}, "spec": {**given, "storageClassName": "c", **spec}}
        if body["spec"]["storageClassName"] is None:
            del body["spec"]["storageClassName"]
        self.stage.create("/api/v1/namespaces/a/persistentvolumeclaims", body)
        self.stage.work()

    def storage_class(self, name: str, provisioner: str, *, default: bool = False, **fields: Any) -> None:
        meta = {"name": name, "annotations": {"storageclass.kubernetes.io/is-default-class": str(default).lower()}}
        body = {"metadata": meta, "provisioner": provisioner, **fields}
        self.stage.create("/apis/storage.k8s.io/v1/storageclasses", body)
        self.stage.work()

    def of(self, name: str) -> Thing:
        """A volume."""
        found = self.stage.stored(VOLUMES, name)
        assert found is not None
        return found.to_dict()

    def asked(self, name: str) -> Thing:
        """A claim."""
        found = self.stage.stored(CLAIMS, name, "a")
        assert found is not None
        return found.to_dict()

    def patch(self, path: str, body: Thing) -> None:
        self.stage.patch(f"/api/v1/{path}", body)
        self.stage.work()

    def delete(self, path: str) -> None:
        assert self.stage.send("DELETE", f"/api/v1/{path}").code == 200
        self.stage.work()

    def drop_claim(self, name: str) -> None:
        """Delete a PersistentVolumeClaim that no pod uses."""
        self.patch(f"namespaces/a/persistentvolumeclaims/{name}", {"metadata": {"finalizers": None}})
        self.delete(f"namespaces/a/persistentvolumeclaims/{name}")

    def events(self) -> list[tuple[str, str]]:
        return [(reason, message) for _, reason, message in self.context.recorded.events]


@pytest.fixture
def cluster() -> BinderCluster:
    return BinderCluster()


def phases(cluster: BinderCluster, volume: str, claim: str) -> tuple[str, str]:
    return cluster.of(volume)["status"]["phase"], cluster.asked(claim)["status"]["phase"]


def test_a_claim_is_bound_to_the_best_fitting_volume(cluster: BinderCluster) -> None:
    cluster.volume("large", "9Gi")
    cluster.volume("small", "2Gi")
    assert cluster.of("small")["status"]["phase"] == "Available"
    cluster.claim("one")
    assert phases(cluster, "small", "one") == ("Bound", "Bound")
    volume, claim = cluster.of("small"), cluster.asked("one")
    reference = {each: claim["metadata"][each] for each in ("namespace", "name", "uid")}
    assert reference.items() <= volume["spec"]["claimRef"].items()
    assert volume["metadata"]["annotations"] == {BY_CONTROLLER: "yes"}
    assert claim["metadata"]["annotations"] == {BY_CONTROLLER: "yes", COMPLETED: "yes"}
    assert claim["spec"]["volumeName"] == "small"
    assert claim["status"] == {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "2Gi"}}


def test_two_claims_never_share_one_volume(cluster: BinderCluster) -> None:
    given = {"resources": {"requests": {"storage": "1Gi"}}, "accessModes": ["ReadWriteOnce"], "storageClassName": "c"}
    cluster.volume("v")
    for name in ("one", "two", "three"):
        cluster.stage.create("/api/v1/namespaces/a/persistentvolumeclaims", {"metadata": {"name": name}, "spec": given})
    cluster.stage.work()
    assert sorted(cluster.asked(each)["status"]["phase"] for each in ("one", "two", "three")) == [
        "Bound",
        "Pending",
        "Pending",
    ]
    cluster.volume("w")
    cluster.stage.pass_by(15)
    assert [cluster.asked(each)["status"]["phase"] for each in ("one", "two", "three")].count("Bound") == 2


def test_a_claim_that_names_a_volume_gets_only_that_one(cluster: BinderCluster) -> None:
    cluster.volume("v", "9Gi")
    cluster.volume("small")
    cluster.claim("one", volumeName="v")
    assert phases(cluster, "v", "one") == ("Bound", "Bound")
    assert cluster.asked("one")["metadata"]["annotations"] == {COMPLETED: "yes"}
    cluster.claim("two", volumeName="v")
    assert cluster.events()[-1] == ("FailedBinding", 'volume "v" already bound to a different claim.')
    cluster.claim("three", "2Gi", volumeName="small")
    assert cluster.events()[-1][1] == 'Cannot bind to requested volume "small": requested PV is too small'
    cluster.claim("four", volumeName="later")
    assert cluster.asked("four")["status"]["phase"] == "Pending"
    cluster.volume("later")
    assert phases(cluster, "later", "four") == ("Bound", "Bound")


@pytest.mark.parametrize(
    ("source", "policy", "phase", "message"),
    [
        (NFS, "Retain", "Released", ""),
        (
            NFS,
            "Delete",
            "Failed",
            'error getting deleter volume plugin for volume "v": no deletable volume plugin matched',
        ),
        (
            {"hostPath": {"path": "/data"}},
            "Delete",
            "Failed",
            "host_path deleter only supports /tmp/.+ but received provided /data",
        ),
        ({"csi": {"driver": "d.example.com", "volumeHandle": "h"}}, "Delete", "Released", ""),
        (
            {"iscsi": {"targetPortal": "192.0.2.1", "iqn": "iqn.2003-01.org.example:v", "lun": 0}},
            "Recycle",
            "Failed",
            "No recycler plugin found for the volume!",
        ),
    ],
)
def test_volume_of_a_deleted_claim_is_reclaimed_by_policy(
    cluster: BinderCluster, source: Thing, policy: str, phase: str, message: str
) -> None:
    cluster.volume("v", source=source, persistentVolumeReclaimPolicy=policy)
    cluster.claim("one")
    cluster.drop_claim("one")
    status = cluster.of("v")["status"]
    assert (status["phase"], status.get("message", "")) == (phase, message)
    cluster.claim("one")
    cluster.stage.pass_by(15)
    assert cluster.asked("one")["status"]["phase"] == "Pending"


def test_a_host_path_below_tmp_is_deleted_with_its_claim(cluster: BinderCluster) -> None:
    cluster.volume("v", source={"hostPath": {"path": "/tmp/x"}}, persistentVolumeReclaimPolicy="Delete")
    cluster.claim("one")
    cluster.drop_claim("one")
    found = cluster.stage.stored(VOLUMES, "v")
    assert found is None or found.is_terminating


def test_a_claim_loses_its_volume(cluster: BinderCluster) -> None:
    cluster.volume("v")
    cluster.claim("one")
    cluster.patch("persistentvolumes/v", {"metadata": {"finalizers": None}})
    cluster.delete("persistentvolumes/v")
    assert cluster.asked("one")["status"] == {"phase": "Lost"}
    assert cluster.events()[-1] == (
        "ClaimLost",
        "Bound claim has lost its PersistentVolume. Data on the volume is lost!",
    )
    cluster.volume("v")
    assert phases(cluster, "v", "one") == ("Bound", "Bound")


def test_a_volume_whose_claim_has_another_is_free_again(cluster: BinderCluster) -> None:
    cluster.volume("v")
    cluster.claim("one")
    uid = cluster.asked("one")["metadata"]["uid"]
    reference = {"namespace": "a", "name": "one", "uid": uid}
    cluster.volume("w", claimRef=reference)
    assert cluster.of("w")["spec"]["claimRef"] == {"namespace": "a", "name": "one"}
    assert cluster.of("w")["status"]["phase"] == "Available"


def test_a_wait_for_first_consumer_class_waits_for_a_pod(cluster: BinderCluster) -> None:
    cluster.storage_class("c", "kubernetes.io/no-provisioner", volumeBindingMode="WaitForFirstConsumer")
    cluster.volume("v")
    cluster.claim("one")
    assert phases(cluster, "v", "one") == ("Available", "Pending")
    assert cluster.events()[-1] == ("WaitForFirstConsumer", "waiting for first consumer to be created before binding")
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "one"}}
    pod = {"containers": [{"name": "c", "image": "i"}], "volumes": [volume]}
    cluster.stage.create("/api/v1/namespaces/a/pods", {"metadata": {"name": "p"}, "spec": pod})
    cluster.stage.pass_by(15)
    assert cluster.events()[-1] == ("WaitForPodScheduled", "waiting for pod p to be scheduled")
    cluster.patch("persistentvolumes/v", {"spec": {"claimRef": {"namespace": "a", "name": "one"}}})
    assert phases(cluster, "v", "one") == ("Bound", "Bound")


@pytest.mark.parametrize(
    ("provisioner", "annotated", "reason", "message"),
    [
        ("ext.example.com/p", "ext.example.com/p", "ExternalProvisioning", "external provisioner 'ext.example.com/p'"),
        ("kubernetes.io/aws-ebs", "ebs.csi.aws.com", "ExternalProvisioning", "external provisioner 'ebs.csi.aws.com'"),
        (
            "kubernetes.io/no-provisioner",
            None,
            "ProvisioningFailed",
            "no volume plugin matched name: kubernetes.io/no-provisioner",
        ),
        ("", None, "ProvisioningFailed", 'storageclass.storage.k8s.io "c" not found'),
    ],
)
def test_provisioner_of_a_volume(
    cluster: BinderCluster, provisioner: str, annotated: str | None, reason: str, message: str
) -> None:
    if provisioner:
        cluster.storage_class("c", provisioner)
    cluster.claim("one")
    annotations = cluster.asked("one")["metadata"].get("annotations") or {}
    assert annotations.get("volume.kubernetes.io/storage-provisioner") == annotated
    assert cluster.events()[-1][0] == reason
    assert message in cluster.events()[-1][1]


def test_a_claim_without_a_class_gets_the_default_class(cluster: BinderCluster) -> None:
    cluster.claim("one", storageClassName=None)
    cluster.claim("none", storageClassName="")
    assert cluster.events()[-1] == (
        "FailedBinding",
        "no persistent volumes available for this claim and no storage class is set",
    )
    cluster.storage_class("d", "ext.example.com/p", default=True)
    cluster.stage.pass_by(15)
    assert cluster.asked("one")["spec"]["storageClassName"] == "d"
    assert cluster.asked("none")["spec"]["storageClassName"] == ""


def test_without_dynamic_provisioning_no_provisioner_is_asked() -> None:
    cluster = BinderCluster(Options(enable_dynamic_provisioning=False))
    cluster.storage_class("ext", "ext.example.com/p")
    cluster.claim("one", storageClassName="ext")
    cluster.claim("two", storageClassName="no-such-class")
    assert [cluster.asked(each)["metadata"].get("annotations") for each in ("one", "two")] == [None, None]
    assert [cluster.asked(each)["status"]["phase"] for each in ("one", "two")] == ["Pending", "Pending"]
    assert cluster.events() == []
