"""Tests of pods whose node is chosen but whose volumes are not bound yet."""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.api.resource import Key
from ctrlmgr.scheduling.awaited_volumes import AwaitedVolumes, progress
from ctrlmgr.scheduling.filters import Volumes
from ctrlmgr.scheduling.volume_binding import Delayed
from tests.controllers.scheduler.test_scheduler import SchedulerCluster
from tests.controllers.scheduler.test_scheduler_volume_limits import CLAIMS, STORAGE

SELECTED = "volume.kubernetes.io/selected-node"
CLAIM = Key("a", "c")


@pytest.fixture
def cluster() -> SchedulerCluster:
    cluster = SchedulerCluster()
    cluster.node("n")
    delayed = {"provisioner": "csi.example.com", "volumeBindingMode": "WaitForFirstConsumer"}
    cluster.stage.create(f"{STORAGE}/storageclasses", {"metadata": {"name": "slow"}, **delayed})
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "slow",
    }
    cluster.stage.create(CLAIMS, {"metadata": {"name": "c"}, "spec": spec})
    cluster.pod("p", cpu="2", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}])
    assert cluster.places() == {"p": ""}
    return cluster


def change(cluster: SchedulerCluster, fields: dict[str, Any]) -> None:
    cluster.stage.patch(f"{CLAIMS}/c", fields)


def test_a_pod_counts_for_its_node_while_its_volumes_are_bound(cluster: SchedulerCluster) -> None:
    cluster.pod("other")
    assert cluster.places() == {"p": "", "other": ""}
    assert "1 Insufficient cpu" in cluster.recorded("FailedScheduling")[0]
    source = {"driver": "csi.example.com", "volumeHandle": "v"}
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "csi": source}
    cluster.stage.create("/api/v1/persistentvolumes", {"metadata": {"name": "v"}, "spec": spec})
    change(
        cluster,
        {"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}, "spec": {"volumeName": "v"}},
    )
    assert cluster.places()["p"] == "n"


def test_a_bound_volume_that_is_not_in_the_cache_yet_is_awaited(cluster: SchedulerCluster) -> None:
    bound = {"pv.kubernetes.io/bind-completed": "yes"}
    change(cluster, {"metadata": {"annotations": bound}, "spec": {"volumeName": "v"}})
    assert cluster.places()["p"] == ""
    assert cluster.recorded("FailedScheduling") == []
    source = {"driver": "csi.example.com", "volumeHandle": "v"}
    reference = {"namespace": "a", "name": "c"}
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "csi": source, "claimRef": reference}
    cluster.stage.create("/api/v1/persistentvolumes", {"metadata": {"name": "v"}, "spec": spec})
    assert cluster.places()["p"] == "n"


def test_after_the_timeout_the_node_is_released(cluster: SchedulerCluster) -> None:
    cluster.stage.pass_by(601)
    cluster.places()
    assert cluster.recorded("FailedScheduling") == [
        'running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded'
    ]
    cluster.pod("other")
    change(cluster, {"metadata": {"labels": {"tried": "again"}}})
    assert cluster.places()["other"] == "n"


def test_a_failed_provisioning_causes_a_new_decision(cluster: SchedulerCluster) -> None:
    change(cluster, {"metadata": {"annotations": {SELECTED: None}}})
    cluster.places()
    assert cluster.recorded("FailedScheduling") == [
        'running PreBind plugin "VolumeBinding": binding volumes: provisioning failed for PVC "c"'
    ]
    cluster.stage.pass_by(1)
    cluster.places()
    claim = cluster.stage.send("GET", f"{CLAIMS}/c", None).body
    assert claim["metadata"]["annotations"][SELECTED] == "n"


def test_a_deleted_node_is_an_error() -> None:
    awaited = AwaitedVolumes("n", 5.0, frozenset([CLAIM]))
    waiting = Volumes(delayed=(Delayed(CLAIM, 1, selected="n"),))
    assert progress(awaited, waiting, {}, 4.0) == (False, "")
    assert progress(awaited, Volumes(), {}, 6.0) == (True, "")
    assert progress(awaited, waiting, None, 4.0).problem.endswith('failed to get node "n": node "n" not found')
