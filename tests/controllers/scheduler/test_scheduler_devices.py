"""Tests of pods with ResourceClaims: a pod is bound only after its claims exist, are allocated, and are reserved for
the pod.
"""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.api.resource import PODS
from ctrlmgr.controllers.scheduler.scheduled_claims import RESOURCE_CLAIMS
from tests.controllers.scheduler.test_scheduler import SchedulerCluster
from tests.controllers.worked_stage import MERGE

CLAIMS = "/apis/resource.k8s.io/v1/namespaces/a/resourceclaims"
BY_NAME = [{"name": "gpu", "resourceClaimName": "mine"}]
BY_TEMPLATE = [{"name": "gpu", "resourceClaimTemplateName": "gpus"}]
REQUESTS = {"requests": [{"name": "one", "exactly": {"deviceClassName": "gpus"}}]}


@pytest.fixture
def cluster() -> SchedulerCluster:
    cluster = SchedulerCluster()
    cluster.node("n1")
    cluster.node("n2")
    cluster.stage.create("/apis/resource.k8s.io/v1/deviceclasses", {"metadata": {"name": "gpus"}, "spec": {}})
    return cluster


def claim(cluster: SchedulerCluster, devices: dict[str, Any] = REQUESTS, **metadata: Any) -> None:
    cluster.stage.create(CLAIMS, {"metadata": {"name": "mine", **metadata}, "spec": {"devices": devices}})


def allocate(cluster: SchedulerCluster, node: str) -> None:
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    result = {"request": "one", "driver": "gpus.example.com", "pool": node, "device": "gpu-0"}
    allocation = {
        "devices": {"results": [result]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
    }
    answer = cluster.stage.send(
        "PATCH", f"{CLAIMS}/mine/status", {"status": {"allocation": allocation}}, media_type=MERGE
    )
    assert answer.code == 200, answer.body


def reserved(cluster: SchedulerCluster) -> list[str]:
    found = cluster.stage.stored(RESOURCE_CLAIMS, "mine", "a")
    assert found is not None
    return [each["name"] for each in (found.to_dict().get("status") or {}).get("reservedFor") or ()]


@pytest.mark.parametrize("claims", [BY_NAME, BY_TEMPLATE])
def test_a_pod_with_a_missing_claim_waits_without_an_event(
    cluster: SchedulerCluster, claims: list[dict[str, str]]
) -> None:
    cluster.pod("p", resourceClaims=claims)
    assert cluster.places() == {"p": ""}
    assert cluster.context.recorded.events == []
    assert not cluster.status("p").get("conditions")
    cluster.stage.pass_by(600)
    assert cluster.places() == {"p": ""}


def test_an_unallocatable_claim_fits_no_node(cluster: SchedulerCluster) -> None:
    cluster.pod("p", resourceClaims=BY_NAME)
    claim(cluster)
    assert cluster.places() == {"p": ""}
    assert cluster.recorded("FailedScheduling") == [
        "0/2 nodes are available: 2 cannot allocate all claims. still not schedulable, "
        "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    ]


def test_a_pod_is_placed_on_the_node_of_its_devices_and_reserves_them(cluster: SchedulerCluster) -> None:
    claim(cluster)
    allocate(cluster, "n2")
    cluster.pod("p", resourceClaims=BY_NAME)
    assert cluster.places() == {"p": "n2"}
    assert reserved(cluster) == ["p"]
    cluster.pod("other", cpu="2", resourceClaims=BY_NAME)
    assert cluster.places()["other"] == ""
    assert "1 Insufficient cpu, 1 resourceclaim not available on the node" in cluster.recorded("FailedScheduling")[0]


def test_a_waiting_pod_is_retried_after_its_claim_is_allocated(cluster: SchedulerCluster) -> None:
    cluster.pod("p", resourceClaims=BY_NAME)
    claim(cluster)
    assert cluster.places() == {"p": ""}
    allocate(cluster, "n1")
    cluster.stage.pass_by(1)
    assert cluster.places() == {"p": "n1"}


def test_a_missing_class_is_named(cluster: SchedulerCluster) -> None:
    claim(cluster, {"requests": [{"name": "one", "firstAvailable": [{"name": "fast", "deviceClassName": "tpus"}]}]})
    cluster.pod("p", resourceClaims=BY_NAME)
    assert cluster.places() == {"p": ""}
    assert "request one/fast: device class tpus does not exist" in cluster.recorded("FailedScheduling")[0]


def test_the_claim_of_a_template_must_belong_to_the_pod(cluster: SchedulerCluster) -> None:
    cluster.pod("p", resourceClaims=BY_TEMPLATE)
    cluster.stage.work()
    pod = cluster.stage.stored(PODS, "p", "a")
    assert pod is not None
    claim(cluster)
    allocate(cluster, "n1")
    status = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "mine"}]}
    cluster.stage.send("PATCH", "/api/v1/namespaces/a/pods/p/status", {"status": status}, media_type=MERGE)
    assert cluster.places() == {"p": ""}
    assert cluster.context.recorded.events == []
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": pod.uid, "controller": True}
    cluster.stage.patch(f"{CLAIMS}/mine", {"metadata": {"ownerReferences": [owner]}})
    assert cluster.places() == {"p": "n1"}


def test_a_template_without_a_claim_requests_nothing(cluster: SchedulerCluster) -> None:
    cluster.pod("p", resourceClaims=BY_TEMPLATE)
    status = {"resourceClaimStatuses": [{"name": "gpu"}]}
    cluster.stage.send("PATCH", "/api/v1/namespaces/a/pods/p/status", {"status": status}, media_type=MERGE)
    assert cluster.places()["p"] != ""
