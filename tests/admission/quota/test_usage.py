"""Tests of the quota usage of objects, kind by kind."""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.admission.quota.evaluator import Evaluator, Requirement
from ctrlmgr.admission.quota.evaluators import CLAIMS, RESOURCE_CLAIMS, Evaluators
from ctrlmgr.admission.quota.quota_amounts import added, larger, printed, subtracted
from ctrlmgr.api.resource import PODS, SERVICES, Resource
from tests.engine.stage import Stage

NOW = "2026-01-01T00:01:00Z"
EVALUATORS = Evaluators()


def of(resource: Resource) -> Evaluator:
    found = EVALUATORS.of(resource)
    assert found is not None
    return found


def asking(name: str, cpu: str, memory: str | None = None, **more: Any) -> dict[str, Any]:
    limits = {"limits": {"memory": memory}} if memory else {}
    return {"name": name, "resources": {"requests": {"cpu": cpu}, **limits}, **more}


def pod(*containers: dict[str, Any], status: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    return {"metadata": {}, "spec": {"containers": list(containers), **spec}, "status": status or {}}


def test_sums_are_formatted_like_kubernetes() -> None:
    assert added({"memory": "0", "cpu": "500m"}, {"memory": "64Mi", "cpu": "500m", "pods": "1"}) == {
        "memory": "64Mi",
        "cpu": "1",
        "pods": "1",
    }
    assert added({"memory": "1Gi"}, {"memory": "512Mi"}) == {"memory": "1536Mi"}


def test_differences_are_never_negative() -> None:
    assert subtracted({"cpu": "1", "memory": "1Gi"}, {"cpu": "300m", "memory": "2Gi", "pods": "1"}) == {
        "cpu": "700m",
        "memory": "0",
        "pods": "0",
    }


def test_quantities_compare_across_notations() -> None:
    assert larger({"cpu": "1", "a": "1"}, {"cpu": "1500m", "b": "2"}) == {"cpu": "1500m", "a": "1", "b": "2"}
    assert printed({"pods": "1", "cpu": "0.5"}) == "cpu=500m,pods=1"


@pytest.mark.parametrize(
    ("fields", "used"),
    [
        pytest.param(
            pod(asking("a", "100m", "1Gi"), asking("b", "200m")),
            {"cpu": "300m", "requests.cpu": "300m", "limits.memory": "1Gi", "pods": "1", "count/pods": "1"},
            id="the sum of its containers",
        ),
        pytest.param(
            pod(asking("a", "100m"), initContainers=[asking("i", "1")]),
            {"cpu": "1", "requests.cpu": "1", "pods": "1", "count/pods": "1"},
            id="the most that is needed at a time",
        ),
        pytest.param(
            pod(asking("a", "100m"), initContainers=[asking("s", "50m", restartPolicy="Always")]),
            {"cpu": "150m", "requests.cpu": "150m", "pods": "1", "count/pods": "1"},
            id="sidecars run beside",
        ),
        pytest.param(
            pod(asking("a", "100m", "1Gi"), overhead={"cpu": "50m", "memory": "1Gi"}),
            {
                "cpu": "150m",
                "requests.cpu": "150m",
                "memory": "1Gi",
                "requests.memory": "1Gi",
                "limits.memory": "2Gi",
                "pods": "1",
                "count/pods": "1",
            },
            id="overhead, for limits where there are any",
        ),
        pytest.param(
            pod(asking("a", "100m"), resources={"requests": {"cpu": "2"}}),
            {"cpu": "2", "requests.cpu": "2", "pods": "1", "count/pods": "1"},
            id="what the pod says for all",
        ),
        pytest.param(pod(asking("a", "1"), status={"phase": "Failed"}), {"count/pods": "1"}, id="over"),
        pytest.param(
            pod({"name": "a", "resources": {"requests": {"example.com/gpu": "2", "hugepages-2Mi": "4Mi"}}}),
            {
                "requests.example.com/gpu": "2",
                "hugepages-2Mi": "4Mi",
                "requests.hugepages-2Mi": "4Mi",
                "pods": "1",
                "count/pods": "1",
            },
            id="devices and huge pages",
        ),
    ],
)
def test_usage_of_a_pod(fields: dict[str, Any], used: dict[str, str]) -> None:
    assert of(PODS).usage(fields, NOW) == used


def resizing(reason: str = "") -> dict[str, Any]:
    status = {
        "containerStatuses": [
            {"name": "a", "resources": {"requests": {"cpu": "200m"}}, "allocatedResources": {"cpu": "300m"}}
        ],
        "conditions": [{"type": "PodResizePending", "reason": reason}] if reason else [],
    }
    return pod(asking("a", "1"), status=status)


def test_a_resizing_pod_uses_the_maximum_of_requests_and_allocation() -> None:
    assert of(PODS).usage(resizing(), NOW)["cpu"] == "1"
    assert of(PODS).usage(resizing("Infeasible"), NOW)["cpu"] == "300m"


@pytest.mark.parametrize(
    ("reason", "asked", "used"),
    [
        ("", {"cpu": "1"}, {"cpu": "1", "memory": "2Gi"}),
        ("", {"cpu": "100m", "memory": "3Gi"}, {"cpu": "400m", "memory": "3Gi"}),
        ("Infeasible", {"cpu": "9"}, {"cpu": "400m", "memory": "2Gi"}),
        ("Deferred", {"cpu": "9"}, {"cpu": "9", "memory": "2Gi"}),
    ],
)
def test_a_resizing_pod_with_pod_level_resources_uses_their_maximum(
    reason: str, asked: dict[str, str], used: dict[str, str]
) -> None:
    status = {
        "resources": {"requests": {"cpu": "200m", "memory": "2Gi"}, "limits": {"cpu": "5"}},
        "allocatedResources": {"cpu": "400m"},
        "conditions": [{"type": "PodResizePending", "reason": reason}],
    }
    fields = pod({"name": "a"}, status=status, resources={"requests": asked, "limits": {"cpu": "4"}})
    found = of(PODS).usage(fields, NOW)
    assert {name: found[name] for name in used} == used
    assert found["limits.cpu"] == "5"


def test_a_pod_past_its_grace_period_uses_nothing() -> None:
    gone = {**pod(asking("a", "1")), "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}
    for grace, is_counted in ((30, False), (90, True)):
        gone["metadata"]["deletionGracePeriodSeconds"] = grace
        assert ("pods" in of(PODS).usage(gone, NOW)) is is_counted


@pytest.mark.parametrize(
    ("scope", "operator", "values", "spec", "is_in"),
    [
        ("Terminating", "Exists", (), {"activeDeadlineSeconds": 5}, True),
        ("NotTerminating", "Exists", (), {"activeDeadlineSeconds": 5}, False),
        ("BestEffort", "Exists", (), {}, True),
        ("NotBestEffort", "Exists", (), {}, False),
        ("PriorityClass", "In", ("high",), {"priorityClassName": "high"}, True),
        ("PriorityClass", "In", ("high",), {}, False),
        ("PriorityClass", "NotIn", ("high",), {}, True),
        ("PriorityClass", "NotIn", ("high",), {"priorityClassName": "high"}, False),
        ("PriorityClass", "DoesNotExist", (), {}, True),
        ("PriorityClass", "Exists", (), {"priorityClassName": "high"}, True),
        ("VolumeAttributesClass", "Exists", (), {}, False),
    ],
)
def test_scopes_of_pods(scope: str, operator: str, values: tuple[str, ...], spec: dict[str, Any], is_in: bool) -> None:
    assert of(PODS).in_scope(Requirement(scope, operator, values), pod({"name": "a"}, **spec)) is is_in


def test_cross_namespace_affinity_is_a_scope() -> None:
    term = {"topologyKey": "zone", "namespaces": ["other"]}
    affinity = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"podAffinityTerm": term}]}}
    requirement = Requirement("CrossNamespacePodAffinity", "Exists")
    assert of(PODS).in_scope(requirement, pod({"name": "a"}, affinity=affinity))
    assert not of(PODS).in_scope(requirement, pod({"name": "a"}))


def test_containers_must_request_the_limited_resources() -> None:
    fields = pod(asking("b", "1"), {"name": "a"})
    said = of(PODS).problem(["limits.cpu", "requests.cpu", "pods"], fields)
    assert said == "must specify limits.cpu for: a,b; requests.cpu for: a"
    assert not of(PODS).problem(["limits.cpu"], pod({"name": "a"}, resources={"requests": {"cpu": "1"}}))


@pytest.mark.parametrize(
    ("spec", "ports", "balancers"),
    [
        ({"type": "ClusterIP"}, "0", "0"),
        ({"type": "NodePort"}, "2", "0"),
        ({"type": "LoadBalancer"}, "2", "1"),
        ({"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False}, "1", "1"),
    ],
)
def test_usage_of_a_service(spec: dict[str, Any], ports: str, balancers: str) -> None:
    used = of(SERVICES).usage({"spec": {**spec, "ports": [{"port": 1, "nodePort": 30001}, {"port": 2}]}}, NOW)
    assert used["services"] == used["count/services"] == "1"
    assert (used["services.nodeports"], used["services.loadbalancers"]) == (ports, balancers)


def test_usage_of_a_persistent_volume_claim() -> None:
    spec = {"resources": {"requests": {"storage": "1500m"}}, "storageClassName": "gold"}
    assert of(CLAIMS).usage({"spec": spec}, NOW) == {
        "persistentvolumeclaims": "1",
        "count/persistentvolumeclaims": "1",
        "requests.storage": "2",
        "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
        "gold.storageclass.storage.k8s.io/requests.storage": "2",
    }
    allocated = {"status": {"allocatedResources": {"storage": "2Gi"}}, "spec": {"resources": spec["resources"]}}
    assert of(CLAIMS).usage(allocated, NOW)["requests.storage"] == "2Gi"


def test_usage_of_a_resource_claim() -> None:
    requests = [
        {"exactly": {"deviceClassName": "gpu", "count": 2}},
        {"exactly": {"deviceClassName": "nic", "allocationMode": "All"}},
        {"firstAvailable": [{"deviceClassName": "gpu", "count": 3}, {"deviceClassName": "gpu", "count": 1}]},
    ]
    assert of(RESOURCE_CLAIMS).usage({"spec": {"devices": {"requests": requests}}}, NOW) == {
        "count/resourceclaims.resource.k8s.io": "1",
        "gpu.deviceclass.resource.k8s.io/devices": "5",
        "nic.deviceclass.resource.k8s.io/devices": "32",
    }


def test_all_other_kinds_are_counted_except_ephemeral_ones() -> None:
    assert of(Resource("", "configmaps")).usage({}, NOW) == {"count/configmaps": "1", "configmaps": "1"}
    assert of(Resource("example.com", "widgets")).usage({}, NOW) == {"count/widgets.example.com": "1"}
    assert EVALUATORS.of(Resource("", "events")) is None


def test_the_first_of_several_quotas_of_one_second_refuses() -> None:
    stage = Stage()
    stage.namespace("shop")
    for name in ("zero", "no", "all"):
        body = {"metadata": {"name": name}, "spec": {"hard": {"count/configmaps": "0"}}}
        made = stage.send("POST", "/api/v1/namespaces/shop/resourcequotas", body)
        status = {**made.body, "status": {"hard": {"count/configmaps": "0"}, "used": {"count/configmaps": "0"}}}
        assert stage.send("PUT", f"/api/v1/namespaces/shop/resourcequotas/{name}/status", status).code == 200
    refused = stage.send("POST", "/api/v1/namespaces/shop/configmaps", {"metadata": {"name": "m"}})
    assert "exceeded quota: zero," in refused.message
