"""Kubernetes' conformance tests of chunked lists, webhook configurations and the latency of Services."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tests.simulation.conforming.cluster import Cluster, workload


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_api_chunking_should_continue_listing_from_the_last_key_if_the_original_version_has_been_compacted_away(
    cluster: Cluster,
) -> None:
    names = [f"template-{number:04d}" for number in range(400)]
    for name in names:
        cluster.make("podtemplates", {"metadata": {"name": name}, "template": workload("t")["spec"]["template"]})
    where = cluster.path("podtemplates")
    first = cluster.send("GET", where, query={"limit": "40"}).body
    assert [each["metadata"]["name"] for each in first["items"]] == names[:40]
    assert first["metadata"]["remainingItemCount"] == 360
    cluster.delete("podtemplates", names[200])
    cluster.log.compact(cluster.log.head().revision)
    expired = cluster.send("GET", where, query={"limit": "40", "continue": first["metadata"]["continue"]})
    assert (expired.code, expired.body["reason"]) == (410, "Expired")
    token = expired.body["metadata"]["continue"]
    rest = cluster.send("GET", where, query={"continue": token}).body
    assert [each["metadata"]["name"] for each in rest["items"]] == names[40:200] + names[201:]
    assert int(rest["metadata"]["resourceVersion"]) > int(first["metadata"]["resourceVersion"])


def has_endpoints(cluster: Cluster, name: str) -> bool:
    found = cluster.find("endpoints", name)
    return found is not None and bool(found.get("subsets"))


def test_service_endpoints_latency_should_not_be_very_high(cluster: Cluster) -> None:
    """A Service that selects a running pod has its endpoints at once: no virtual time passes."""
    made = workload("latency", app="latency", replicas=1)
    made["spec"]["selector"] = {"app": "latency"}
    cluster.make("replicationcontrollers", made)
    cluster.until(lambda: len(cluster.ready("app=latency")) == 1)
    took = []
    for number in range(50):
        name, began = f"latency-{number}", cluster.clock.monotonic()
        spec = {"selector": {"app": "latency"}, "ports": [{"port": 80}]}
        cluster.make("services", {"metadata": {"name": name}, "spec": spec})
        cluster.until(partial(has_endpoints, cluster, name), within=20)
        took.append(cluster.clock.monotonic() - began)
    assert max(took) <= 1.0


HOOKS = "/apis/admissionregistration.k8s.io/v1"
KINDS = ("mutating", "validating")


def configuration(**condition: str) -> dict[str, Any]:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}
    hook = {
        "name": "hook.example.com",
        "clientConfig": {"service": {"namespace": "default", "name": "e2e-test-webhook", "path": "/never"}},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "matchConditions": [condition],
    }
    return {"metadata": {"name": "with-conditions"}, "webhooks": [hook]}


def conditions(answer: Any) -> list[dict[str, str]]:
    assert answer.code in (200, 201), answer.body
    found: list[dict[str, str]] = answer.body["webhooks"][0]["matchConditions"]
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_admission_webhook_should_be_able_to_create_and_update_webhook_configurations_with_match_conditions(
    cluster: Cluster, kind: str
) -> None:
    where = f"{HOOKS}/{kind}webhookconfigurations"
    first = {"name": "expression-1", "expression": "object.metadata.namespace == 'production'"}
    assert conditions(cluster.send("POST", where, configuration(**first))) == [first]
    read = cluster.send("GET", f"{where}/with-conditions")
    assert conditions(read) == [first]
    second = {"name": "expression-2", "expression": "object.metadata.namespace == 'staging'"}
    read.body["webhooks"][0]["matchConditions"] = [first, second]
    assert conditions(cluster.send("PUT", f"{where}/with-conditions", read.body)) == [first, second]
    assert conditions(cluster.send("GET", f"{where}/with-conditions")) == [first, second]


@pytest.mark.parametrize("kind", KINDS)
def test_admission_webhook_should_reject_webhook_configurations_with_invalid_match_conditions(
    cluster: Cluster, kind: str
) -> None:
    wrong = configuration(name="invalid-expression-1", expression="... [] bad expression")
    refused = cluster.send("POST", f"{HOOKS}/{kind}webhookconfigurations", wrong)
    assert (refused.code, refused.body["reason"]) == (422, "Invalid")
    assert "compilation failed" in refused.body["message"]
    assert refused.body["details"]["causes"][0]["field"] == "webhooks[0].matchConditions[0].expression"
