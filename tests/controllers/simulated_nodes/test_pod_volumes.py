from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.controllers.simulated_nodes.csi_nodes import CSI_NODES
from ctrlmgr.controllers.simulated_nodes.pod_volumes import MOUNT_TIME
from ctrlmgr.simulation.csi_objects import DRIVER
from tests.controllers.simulated_nodes.scene import Scene

CLAIMS, NODE = "/api/v1/namespaces/a/persistentvolumeclaims", "/api/v1/nodes/node-1"
RWO = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
NAME = f"kubernetes.io/csi/{DRIVER}^v"


@pytest.fixture
def scene() -> Scene:
    """Two nodes, and a pod on the first node whose claim is not bound."""
    found = Scene()
    found.stage.create(CLAIMS, {"metadata": {"name": "c"}, "spec": {"storageClassName": "", "volumeName": "v", **RWO}})
    found.pod("p", volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}])
    return found


def bind(scene: Scene) -> None:
    uid = scene.stage.send("GET", f"{CLAIMS}/c").body["metadata"]["uid"]
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "csi": {"driver": DRIVER, "volumeHandle": "v"},
        "claimRef": {"namespace": "a", "name": "c", "uid": uid},
    }
    scene.stage.create("/api/v1/persistentvolumes", {"metadata": {"name": "v"}, "spec": spec})
    status = {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}
    scene.stage.patch(f"{CLAIMS}/c/status", {"status": status})
    scene.stage.work()


def attach(scene: Scene) -> None:
    volumes = [{"name": NAME, "devicePath": ""}]
    scene.stage.patch(f"{NODE}/status", {"status": {"volumesAttached": volumes}})
    scene.stage.work()
    scene.stage.pass_by(3)


def in_use(scene: Scene) -> Any:
    return scene.stage.send("GET", NODE).body["status"].get("volumesInUse")


def test_each_node_has_a_csi_node_that_is_restored(scene: Scene) -> None:
    path = "/apis/storage.k8s.io/v1/csinodes/node-1"
    assert scene.stage.names(CSI_NODES) == ["node-1", "node-2"]
    scene.stage.delete(path)
    scene.stage.work()
    (driver,) = scene.stage.send("GET", path).body["spec"]["drivers"]
    assert (driver["name"], driver["nodeID"], driver["allocatable"]) == (DRIVER, "node-1", {"count": 127})


def test_containers_start_after_the_claim_is_bound_and_its_volume_attached(scene: Scene) -> None:
    status = scene.status("p")
    assert (status["phase"], "startTime" in status) == ("Pending", False)
    assert status["containerStatuses"][0]["state"] == {"waiting": {"reason": "ContainerCreating"}}
    bind(scene)
    assert "startTime" not in scene.status("p")
    assert in_use(scene) == [NAME]
    attach(scene)
    assert scene.status("p")["phase"] == "Running"


def test_missing_volumes_are_reported_after_a_while(scene: Scene) -> None:
    scene.stage.pass_by(MOUNT_TIME - 20)
    assert "FailedMount" not in scene.context.told.reasons()
    scene.stage.pass_by(21)
    (told,) = (each for each in scene.context.told.events if each[1] == "FailedMount")
    assert told[2].startswith("Unable to attach or mount volumes: unmounted volumes=[data]")


def test_a_volume_is_no_longer_in_use_after_its_pod_was_deleted(scene: Scene) -> None:
    bind(scene)
    attach(scene)
    scene.stage.delete("/api/v1/namespaces/a/pods/p", gracePeriodSeconds=0)
    scene.stage.work()
    assert in_use(scene) is None


def test_a_running_pod_expands_the_file_system_of_its_claim(scene: Scene) -> None:
    bind(scene)
    attach(scene)
    scene.stage.patch("/api/v1/persistentvolumes/v", {"spec": {"capacity": {"storage": "2Gi"}}})
    pending = {"allocatedResources": {"storage": "2Gi"}, "allocatedResourceStatuses": {"storage": "NodeResizePending"}}
    scene.stage.patch(f"{CLAIMS}/c/status", {"status": pending})
    scene.stage.work()
    status = scene.stage.send("GET", f"{CLAIMS}/c").body["status"]
    assert (status["capacity"], "allocatedResourceStatuses" in status) == ({"storage": "2Gi"}, False)
    assert "FileSystemResizeSuccessful" in scene.context.told.reasons()
