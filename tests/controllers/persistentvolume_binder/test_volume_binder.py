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


class Scene:
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

    def told(self) -> list[tuple[str, str]]:
        return [(reason, message) for _, reason, message in self.context.told.events]


@pytest.fixture
def scene() -> Scene:
    return Scene()


def phases(scene: Scene, volume: str, claim: str) -> tuple[str, str]:
    return scene.of(volume)["status"]["phase"], scene.asked(claim)["status"]["phase"]


def test_a_claim_is_bound_to_the_best_fitting_volume(scene: Scene) -> None:
    scene.volume("large", "9Gi")
    scene.volume("small", "2Gi")
    assert scene.of("small")["status"]["phase"] == "Available"
    scene.claim("one")
    assert phases(scene, "small", "one") == ("Bound", "Bound")
    volume, claim = scene.of("small"), scene.asked("one")
    reference = {each: claim["metadata"][each] for each in ("namespace", "name", "uid")}
    assert reference.items() <= volume["spec"]["claimRef"].items()
    assert volume["metadata"]["annotations"] == {BY_CONTROLLER: "yes"}
    assert claim["metadata"]["annotations"] == {BY_CONTROLLER: "yes", COMPLETED: "yes"}
    assert claim["spec"]["volumeName"] == "small"
    assert claim["status"] == {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "2Gi"}}


def test_two_claims_never_share_one_volume(scene: Scene) -> None:
    given = {"resources": {"requests": {"storage": "1Gi"}}, "accessModes": ["ReadWriteOnce"], "storageClassName": "c"}
    scene.volume("v")
    for name in ("one", "two", "three"):
        scene.stage.create("/api/v1/namespaces/a/persistentvolumeclaims", {"metadata": {"name": name}, "spec": given})
    scene.stage.work()
    assert sorted(scene.asked(each)["status"]["phase"] for each in ("one", "two", "three")) == [
        "Bound",
        "Pending",
        "Pending",
    ]
    scene.volume("w")
    scene.stage.pass_by(15)
    assert [scene.asked(each)["status"]["phase"] for each in ("one", "two", "three")].count("Bound") == 2


def test_a_claim_that_names_a_volume_gets_only_that_one(scene: Scene) -> None:
    scene.volume("v", "9Gi")
    scene.volume("small")
    scene.claim("one", volumeName="v")
    assert phases(scene, "v", "one") == ("Bound", "Bound")
    assert scene.asked("one")["metadata"]["annotations"] == {COMPLETED: "yes"}
    scene.claim("two", volumeName="v")
    assert scene.told()[-1] == ("FailedBinding", 'volume "v" already bound to a different claim.')
    scene.claim("three", "2Gi", volumeName="small")
    assert scene.told()[-1][1] == 'Cannot bind to requested volume "small": requested PV is too small'
    scene.claim("four", volumeName="later")
    assert scene.asked("four")["status"]["phase"] == "Pending"
    scene.volume("later")
    assert phases(scene, "later", "four") == ("Bound", "Bound")


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
    scene: Scene, source: Thing, policy: str, phase: str, message: str
) -> None:
    scene.volume("v", source=source, persistentVolumeReclaimPolicy=policy)
    scene.claim("one")
    scene.drop_claim("one")
    status = scene.of("v")["status"]
    assert (status["phase"], status.get("message", "")) == (phase, message)
    scene.claim("one")
    scene.stage.pass_by(15)
    assert scene.asked("one")["status"]["phase"] == "Pending"


def test_a_host_path_below_tmp_is_deleted_with_its_claim(scene: Scene) -> None:
    scene.volume("v", source={"hostPath": {"path": "/tmp/x"}}, persistentVolumeReclaimPolicy="Delete")
    scene.claim("one")
    scene.drop_claim("one")
    found = scene.stage.stored(VOLUMES, "v")
    assert found is None or found.is_terminating


def test_a_claim_loses_its_volume(scene: Scene) -> None:
    scene.volume("v")
    scene.claim("one")
    scene.patch("persistentvolumes/v", {"metadata": {"finalizers": None}})
    scene.delete("persistentvolumes/v")
    assert scene.asked("one")["status"] == {"phase": "Lost"}
    assert scene.told()[-1] == ("ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!")
    scene.volume("v")
    assert phases(scene, "v", "one") == ("Bound", "Bound")


def test_a_volume_whose_claim_has_another_is_free_again(scene: Scene) -> None:
    scene.volume("v")
    scene.claim("one")
    uid = scene.asked("one")["metadata"]["uid"]
    reference = {"namespace": "a", "name": "one", "uid": uid}
    scene.volume("w", claimRef=reference)
    assert scene.of("w")["spec"]["claimRef"] == {"namespace": "a", "name": "one"}
    assert scene.of("w")["status"]["phase"] == "Available"


def test_a_wait_for_first_consumer_class_waits_for_a_pod(scene: Scene) -> None:
    scene.storage_class("c", "kubernetes.io/no-provisioner", volumeBindingMode="WaitForFirstConsumer")
    scene.volume("v")
    scene.claim("one")
    assert phases(scene, "v", "one") == ("Available", "Pending")
    assert scene.told()[-1] == ("WaitForFirstConsumer", "waiting for first consumer to be created before binding")
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "one"}}
    pod = {"containers": [{"name": "c", "image": "i"}], "volumes": [volume]}
    scene.stage.create("/api/v1/namespaces/a/pods", {"metadata": {"name": "p"}, "spec": pod})
    scene.stage.pass_by(15)
    assert scene.told()[-1] == ("WaitForPodScheduled", "waiting for pod p to be scheduled")
    scene.patch("persistentvolumes/v", {"spec": {"claimRef": {"namespace": "a", "name": "one"}}})
    assert phases(scene, "v", "one") == ("Bound", "Bound")


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
    scene: Scene, provisioner: str, annotated: str | None, reason: str, message: str
) -> None:
    if provisioner:
        scene.storage_class("c", provisioner)
    scene.claim("one")
    annotations = scene.asked("one")["metadata"].get("annotations") or {}
    assert annotations.get("volume.kubernetes.io/storage-provisioner") == annotated
    assert scene.told()[-1][0] == reason
    assert message in scene.told()[-1][1]


def test_a_claim_without_a_class_gets_the_default_class(scene: Scene) -> None:
    scene.claim("one", storageClassName=None)
    scene.claim("none", storageClassName="")
    assert scene.told()[-1] == (
        "FailedBinding",
        "no persistent volumes available for this claim and no storage class is set",
    )
    scene.storage_class("d", "ext.example.com/p", default=True)
    scene.stage.pass_by(15)
    assert scene.asked("one")["spec"]["storageClassName"] == "d"
    assert scene.asked("none")["spec"]["storageClassName"] == ""


def test_without_dynamic_provisioning_no_provisioner_is_asked() -> None:
    scene = Scene(Options(enable_dynamic_provisioning=False))
    scene.storage_class("ext", "ext.example.com/p")
    scene.claim("one", storageClassName="ext")
    scene.claim("two", storageClassName="no-such-class")
    assert [scene.asked(each)["metadata"].get("annotations") for each in ("one", "two")] == [None, None]
    assert [scene.asked(each)["status"]["phase"] for each in ("one", "two")] == ["Pending", "Pending"]
    assert scene.told() == []
