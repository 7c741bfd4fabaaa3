"""What the conformance tests of chunking and of the latency of Services ask, in their words."""

from __future__ import annotations

from functools import partial

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
    """A Service that selects a pod which runs has its endpoints at once: no delay that counts is waited for."""
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
