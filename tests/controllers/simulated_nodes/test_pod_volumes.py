from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.controllers.simulated_nodes.csi_nodes import CSI_NODES
from ctrlmgr.controllers.simulated_nodes.pod_volumes import MOUNT_TIME
from ctrlmgr.simulation.csi_objects import DRIVER
from tests.controllers.simulated_nodes.simulated_cluster import SimulatedCluster

CLAIMS, NODE = "/api/v1/namespaces/a/persistentvolumeclaims", "/api/v1/nodes/node-1"
RWO = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
NAME = f"kubernetes.io/csi/{DRIVER}^v"


@pytest.fixture
def cluster() -> SimulatedCluster:
    """Two nodes, and a pod on the first node whose claim is not bound."""
    found = SimulatedCluster()
    found.stage.create(CLAIMS, {"metadata": {"name": "c"}, "spec": {"storageClassName": "", "volumeName": "v", **RWO}})
    found.pod("p", volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}])
    return found


def bind(cluster: SimulatedCluster) -> None:
    uid = cluster.stage.send("GET", f"{CLAIMS}/c").body["metadata"]["uid"]
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "csi": {"driver": DRIVER, "volumeHandle": "v"},
        "claimRef": {"namespace": "a", "name": "c", "uid": uid},
    }
    cluster.stage.create("/api/v1/persistentvolumes", {"metadata": {"name": "v"}, "spec": spec})
    status = {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}
    cluster.stage.patch(f"{CLAIMS}/c/status", {"status": status})
    cluster.stage.work()


def attach(cluster: SimulatedCluster) -> None:
    volumes = [{"name": NAME, "devicePath": ""}]
    cluster.stage.patch(f"{NODE}/status", {"status": {"volumesAttached": volumes}})
    cluster.stage.work()
    cluster.stage.pass_by(3)


def in_use(cluster: SimulatedCluster) -> Any:
    return cluster.stage.send("GET", NODE).body["status"].get("volumesInUse")


def test_each_node_has_a_csi_node_that_is_restored(cluster: SimulatedCluster) -> None:
    path = "/apis/storage.k8s.io/v1/csinodes/node-1"
    assert cluster.stage.names(CSI_NODES) == ["node-1", "node-2"]
    cluster.stage.delete(path)
    cluster.stage.work()
    (driver,) = cluster.stage.send("GET", path).body["spec"]["drivers"]
    assert (driver["name"], driver["nodeID"], driver["allocatable"]) == (DRIVER, "node-1", {"count": 127})


def test_containers_start_after_the_claim_is_bound_and_its_volume_attached(cluster: SimulatedCluster) -> None:
    status = cluster.status("p")
    assert (status["phase"], "startTime" in status) == ("Pending", False)
    assert status["containerStatuses"][0]["state"] == {"waiting": {"reason": "ContainerCreating"}}
    bind(cluster)
    assert "startTime" not in cluster.status("p")
    assert in_use(cluster) == [NAME]
    attach(cluster)
    assert cluster.status("p")["phase"] == "Running"


def test_missing_volumes_are_reported_after_a_while(cluster: SimulatedCluster) -> None:
    cluster.stage.pass_by(MOUNT_TIME - 20)
    assert "FailedMount" not in cluster.context.recorded.reasons()
    cluster.stage.pass_by(21)
    (recorded,) = (each for each in cluster.context.recorded.events if each[1] == "FailedMount")
    assert recorded[2].startswith("Unable to attach or mount volumes: unmounted volumes=[data]")


def test_a_volume_is_no_longer_in_use_after_its_pod_was_deleted(cluster: SimulatedCluster) -> None:
    bind(cluster)
    attach(cluster)
    cluster.stage.delete("/api/v1/namespaces/a/pods/p", gracePeriodSeconds=0)
    cluster.stage.work()
    assert in_use(cluster) is None


def test_a_running_pod_expands_the_file_system_of_its_claim(cluster: SimulatedCluster) -> None:
    bind(cluster)
    attach(cluster)
    cluster.stage.patch("/api/v1/persistentvolumes/v", {"spec": {"capacity": {"storage": "2Gi"}}})
    pending = {"allocatedResources": {"storage": "2Gi"}, "allocatedResourceStatuses": {"storage": "NodeResizePending"}}
    cluster.stage.patch(f"{CLAIMS}/c/status", {"status": pending})
    cluster.stage.work()
    status = cluster.stage.send("GET", f"{CLAIMS}/c").body["status"]
    assert (status["capacity"], "allocatedResourceStatuses" in status) == ({"storage": "2Gi"}, False)
    assert "FileSystemResizeSuccessful" in cluster.context.recorded.reasons()
