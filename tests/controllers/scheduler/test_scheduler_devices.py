"""Tests of pods with ResourceClaims: a pod is bound only after its claims exist, are allocated, and are reserved for
the pod.
"""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.api.resource import PODS
from ctrlmgr.controllers.scheduler.scheduled_claims import RESOURCE_CLAIMS
from tests.controllers.scheduler.test_scheduler import Scene
from tests.controllers.worked_stage import MERGE

CLAIMS = "/apis/resource.k8s.io/v1/namespaces/a/resourceclaims"
BY_NAME = [{"name": "gpu", "resourceClaimName": "mine"}]
BY_TEMPLATE = [{"name": "gpu", "resourceClaimTemplateName": "gpus"}]
REQUESTS = {"requests": [{"name": "one", "exactly": {"deviceClassName": "gpus"}}]}


@pytest.fixture
def scene() -> Scene:
    scene = Scene()
    scene.node("n1")
    scene.node("n2")
    scene.stage.create("/apis/resource.k8s.io/v1/deviceclasses", {"metadata": {"name": "gpus"}, "spec": {}})
    return scene


def claim(scene: Scene, devices: dict[str, Any] = REQUESTS, **metadata: Any) -> None:
    scene.stage.create(CLAIMS, {"metadata": {"name": "mine", **metadata}, "spec": {"devices": devices}})


def allocate(scene: Scene, node: str) -> None:
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    result = {"request": "one", "driver": "gpus.example.com", "pool": node, "device": "gpu-0"}
    allocation = {
        "devices": {"results": [result]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
    }
    answer = scene.stage.send(
        "PATCH", f"{CLAIMS}/mine/status", {"status": {"allocation": allocation}}, media_type=MERGE
    )
    assert answer.code == 200, answer.body


def reserved(scene: Scene) -> list[str]:
    found = scene.stage.stored(RESOURCE_CLAIMS, "mine", "a")
    assert found is not None
    return [each["name"] for each in (found.to_dict().get("status") or {}).get("reservedFor") or ()]


@pytest.mark.parametrize("claims", [BY_NAME, BY_TEMPLATE])
def test_a_pod_with_a_missing_claim_waits_without_an_event(scene: Scene, claims: list[dict[str, str]]) -> None:
    scene.pod("p", resourceClaims=claims)
    assert scene.places() == {"p": ""}
    assert scene.context.told.events == []
    assert not scene.status("p").get("conditions")
    scene.stage.pass_by(600)
    assert scene.places() == {"p": ""}


def test_an_unallocatable_claim_fits_no_node(scene: Scene) -> None:
    scene.pod("p", resourceClaims=BY_NAME)
    claim(scene)
    assert scene.places() == {"p": ""}
    assert scene.told("FailedScheduling") == [
        "0/2 nodes are available: 2 cannot allocate all claims. still not schedulable, "
        "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    ]


def test_a_pod_is_placed_on_the_node_of_its_devices_and_reserves_them(scene: Scene) -> None:
    claim(scene)
    allocate(scene, "n2")
    scene.pod("p", resourceClaims=BY_NAME)
    assert scene.places() == {"p": "n2"}
    assert reserved(scene) == ["p"]
    scene.pod("other", cpu="2", resourceClaims=BY_NAME)
    assert scene.places()["other"] == ""
    assert "1 Insufficient cpu, 1 resourceclaim not available on the node" in scene.told("FailedScheduling")[0]


def test_a_waiting_pod_is_retried_after_its_claim_is_allocated(scene: Scene) -> None:
    scene.pod("p", resourceClaims=BY_NAME)
    claim(scene)
    assert scene.places() == {"p": ""}
    allocate(scene, "n1")
    scene.stage.pass_by(1)
    assert scene.places() == {"p": "n1"}


def test_a_missing_class_is_named(scene: Scene) -> None:
    claim(scene, {"requests": [{"name": "one", "firstAvailable": [{"name": "fast", "deviceClassName": "tpus"}]}]})
    scene.pod("p", resourceClaims=BY_NAME)
    assert scene.places() == {"p": ""}
    assert "request one/fast: device class tpus does not exist" in scene.told("FailedScheduling")[0]


def test_the_claim_of_a_template_must_belong_to_the_pod(scene: Scene) -> None:
    scene.pod("p", resourceClaims=BY_TEMPLATE)
    scene.stage.work()
    pod = scene.stage.stored(PODS, "p", "a")
    assert pod is not None
    claim(scene)
    allocate(scene, "n1")
    status = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "mine"}]}
    scene.stage.send("PATCH", "/api/v1/namespaces/a/pods/p/status", {"status": status}, media_type=MERGE)
    assert scene.places() == {"p": ""}
    assert scene.context.told.events == []
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": pod.uid, "controller": True}
    scene.stage.patch(f"{CLAIMS}/mine", {"metadata": {"ownerReferences": [owner]}})
    assert scene.places() == {"p": "n1"}


def test_a_template_without_a_claim_requests_nothing(scene: Scene) -> None:
    scene.pod("p", resourceClaims=BY_TEMPLATE)
    status = {"resourceClaimStatuses": [{"name": "gpu"}]}
    scene.stage.send("PATCH", "/api/v1/namespaces/a/pods/p/status", {"status": status}, media_type=MERGE)
    assert scene.places()["p"] != ""
