from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.controllers.resourceclaim import Options
from ctrlmgr.controllers.resourceclaim.controller import CLAIMS, build
from tests.controllers.stage_context import StageContext
from tests.controllers.worked_stage import WorkedStage

GROUP = "/apis/resource.k8s.io/v1"
PODS = "/api/v1/namespaces/a/pods"
OURS = f"{GROUP}/namespaces/a/resourceclaims"
TEMPLATES = f"{GROUP}/namespaces/a/resourceclaimtemplates"
DEVICES = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
RESULT = {"request": "r", "driver": "gpu.example.com", "pool": "p", "device": "d0"}
FINALIZER = "resource.kubernetes.io/delete-protection"


class ClaimCluster:
    def __init__(self) -> None:
        self.stage = WorkedStage(self._build)
        self.stage.namespace("a")
        self.stage.create("/api/v1/nodes", {"metadata": {"name": "n"}})

    def _build(self, stage: WorkedStage) -> Any:
        self.context = StageContext(stage)
        return build(self.context, Options())

    def template(self, name: str = "t", **spec: Any) -> None:
        self.stage.create(TEMPLATES, {"metadata": {"name": name}, "spec": {"spec": DEVICES, **spec}})

    def pod(self, name: str, *claims: dict[str, str], **spec: Any) -> dict[str, Any]:
        containers = [{"name": "c", "image": "i"}]
        body = {
            "containers": containers,
            "resourceClaims": [{"name": f"c{at}", **each} for at, each in enumerate(claims)],
        }
        return self.stage.create(PODS, {"metadata": {"name": name}, "spec": {**body, **spec}})

    def allocated(self, name: str, *pods: dict[str, Any]) -> None:
        """Return a ResourceClaim that a scheduler has allocated, and has reserved for these pods."""
        self.stage.create(OURS, {"metadata": {"name": name, "finalizers": [FINALIZER]}, "spec": DEVICES})
        users = [
            {"resource": "pods", "name": each["metadata"]["name"], "uid": each["metadata"]["uid"]} for each in pods
        ]
        status = {"allocation": {"devices": {"results": [RESULT]}}, "reservedFor": users}
        self.stage.patch(f"{OURS}/{name}/status", {"status": status})

    def ends(self, name: str) -> None:
        self.stage.patch(f"{PODS}/{name}/status", {"status": {"phase": "Succeeded"}})
        self.stage.work()

    def get(self, path: str) -> dict[str, Any]:
        answer = self.stage.send("GET", path)
        assert answer.code == 200, answer.body
        body: dict[str, Any] = answer.body
        return body

    def users(self, name: str) -> list[str]:
        return [each["name"] for each in self.get(f"{OURS}/{name}")["status"].get("reservedFor") or ()]

    def claims(self) -> list[str]:
        return self.stage.names(CLAIMS)

    def statuses(self, pod: str) -> dict[str, str]:
        found = self.get(f"{PODS}/{pod}")["status"].get("resourceClaimStatuses") or ()
        return {each["name"]: each["resourceClaimName"] for each in found}


@pytest.fixture
def cluster() -> ClaimCluster:
    return ClaimCluster()


FROM_TEMPLATE = {"resourceClaimTemplateName": "t"}
SHARED = {"resourceClaimName": "shared"}


def test_each_entry_with_a_template_gets_a_claim_that_the_status_names(cluster: ClaimCluster) -> None:
    cluster.template(metadata={"labels": {"l": "1"}, "annotations": {"n": "2"}})
    pod = cluster.pod("web", FROM_TEMPLATE, FROM_TEMPLATE)
    cluster.stage.work()
    statuses = cluster.statuses("web")
    assert sorted(statuses) == ["c0", "c1"]
    assert sorted(statuses.values()) == cluster.claims()
    claim = cluster.get(f"{OURS}/{statuses['c1']}")
    assert claim["metadata"]["generateName"] == "web-c1-"
    assert claim["metadata"]["labels"] == {"l": "1"}
    assert claim["metadata"]["annotations"] == {"n": "2", "resource.kubernetes.io/pod-claim-name": "c1"}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": pod["metadata"]["uid"], "controller": True}
    assert claim["metadata"]["ownerReferences"] == [owner]


def test_long_names_of_claims_are_truncated_in_proportion(cluster: ClaimCluster) -> None:
    cluster.template()
    cluster.pod("p" * 80, {"name": "e" * 34, **FROM_TEMPLATE})
    cluster.stage.work()
    (name,) = cluster.claims()
    assert name.startswith("p" * 39 + "-" + "e" * 16)


def test_a_missing_template_is_an_event_and_the_claim_follows_when_it_exists(cluster: ClaimCluster) -> None:
    cluster.pod("web", FROM_TEMPLATE)
    cluster.stage.work()
    missing = 'resource claim template "t": resourceclaimtemplate.resource.k8s.io "t" not found'
    recorded = ("Warning", "FailedResourceClaimCreation", f"PodResourceClaim c0: {missing}")
    assert set(cluster.context.recorded.events) == {recorded}
    cluster.template()
    cluster.stage.work()
    assert [*cluster.statuses("web").values()] == cluster.claims()


def test_a_deleted_claim_is_created_again_and_the_others_keep_their_names(cluster: ClaimCluster) -> None:
    cluster.template()
    cluster.pod("web", FROM_TEMPLATE, FROM_TEMPLATE)
    cluster.stage.work()
    before = cluster.statuses("web")
    cluster.stage.delete(f"{OURS}/{before['c0']}")
    cluster.stage.work()
    after = cluster.statuses("web")
    assert after["c1"] == before["c1"]
    assert after["c0"] != before["c0"]
    assert sorted(after.values()) == cluster.claims()


def test_an_existing_claim_missing_in_the_status_is_adopted(cluster: ClaimCluster) -> None:
    cluster.template()
    cluster.pod("web", FROM_TEMPLATE)
    cluster.stage.work()
    before = cluster.claims()
    cluster.stage.patch(f"{PODS}/web/status", {"status": {"resourceClaimStatuses": None}})
    cluster.stage.work()
    assert cluster.claims() == before
    assert [*cluster.statuses("web").values()] == before


def test_a_terminated_pod_is_no_consumer_and_the_last_one_deallocates(cluster: ClaimCluster) -> None:
    one, two = cluster.pod("one", SHARED), cluster.pod("two", SHARED)
    cluster.allocated("shared", one, two)
    cluster.stage.work()
    cluster.ends("one")
    assert cluster.users("shared") == ["two"]
    cluster.stage.delete(f"{PODS}/two", gracePeriodSeconds=0)
    cluster.stage.work()
    claim = cluster.get(f"{OURS}/shared")
    assert "allocation" not in claim.get("status", {})
    assert "finalizers" not in claim["metadata"]


def test_a_consumer_that_is_no_pod_is_kept(cluster: ClaimCluster) -> None:
    cluster.allocated("shared")
    ghost = {"resource": "pods", "name": "ghost", "uid": "11111111-2222-3333-4444-555555555555"}
    other = {"apiGroup": "example.com", "resource": "things", "name": "x", "uid": "1"}
    cluster.stage.patch(f"{OURS}/shared/status", {"status": {"reservedFor": [ghost, other]}})
    cluster.stage.work()
    assert cluster.users("shared") == ["x"]
    assert cluster.get(f"{OURS}/shared")["status"]["allocation"]


def test_an_unused_claim_without_a_template_stays_allocated(cluster: ClaimCluster) -> None:
    cluster.allocated("shared")
    cluster.stage.work()
    assert cluster.get(f"{OURS}/shared")["status"]["allocation"]
    cluster.stage.delete(f"{OURS}/shared")
    cluster.stage.work()
    assert cluster.claims() == []


def test_a_used_claim_is_kept(cluster: ClaimCluster) -> None:
    cluster.allocated("shared", cluster.pod("web", SHARED))
    cluster.stage.delete(f"{OURS}/shared")
    cluster.stage.work()
    assert cluster.claims() == ["shared"]
    cluster.ends("web")
    assert cluster.claims() == []


def test_an_allocated_claim_is_reserved_for_a_pod_that_was_bound_without_the_scheduler(cluster: ClaimCluster) -> None:
    cluster.allocated("shared")
    cluster.pod("waiting", SHARED)
    cluster.pod("bound", SHARED, nodeName="n")
    cluster.stage.work()
    assert cluster.users("shared") == ["bound"]


def test_the_claim_of_a_template_is_deleted_when_its_pod_has_ended(cluster: ClaimCluster) -> None:
    cluster.template()
    cluster.pod("web", FROM_TEMPLATE)
    cluster.stage.work()
    assert len(cluster.claims()) == 1
    cluster.ends("web")
    assert cluster.claims() == []
