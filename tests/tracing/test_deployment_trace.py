"""One POST of a Deployment is one trace, in which the binding and the start of each pod are found."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.request import Request, urlopen

import pytest

from ctrlmgr.testing.served import ServerProcess
from tests.tracing.collector import CollectedSpan, Collector

REPLICAS = 3
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with Collector() as collector:
        yield collector


@pytest.fixture(scope="module")
def server(collector: Collector, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("traced")
    file = folder / "tracing.yaml"
    file.write_text(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n"
        f"endpoint: {collector.endpoint}\nsamplingRatePerMillion: 0\n"
    )
    with ServerProcess(
        folder, "--nodes", "2", "--tracing-config-file", str(file), OTEL_BSP_SCHEDULE_DELAY="200"
    ) as server:
        yield server


def post(server: ServerProcess, path: str, body: Any, **headers: str) -> None:
    request = Request(
        f"{server.url}{path}",
        json.dumps(body).encode(),
        {"Authorization": f"Bearer {server.token}", "Content-Type": "application/json", **headers},
        method="POST",
    )
    with urlopen(request, timeout=30, context=server.trust) as answer:
        assert answer.status == 201


def deployment(name: str) -> dict[str, Any]:
    labels = {"app": name}
    containers = [{"name": "main", "image": "nginx"}]
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
    spec = {"replicas": REPLICAS, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def pods_of(spans: list[CollectedSpan], controller: str) -> set[str]:
    """Return the pods that a controller has reconciled with a write, in the trace of the test."""
    writers = {each.parent for each in spans if each.name == "append" and each.trace == TRACE}
    return {
        str(each.attributes["key"])
        for each in spans
        if each.name == f"reconcile {controller}" and each.trace == TRACE and each.id in writers
    }


def test_one_trace_connects_a_deployment_with_the_binding_and_start_of_each_pod(
    server: ServerProcess, collector: Collector
) -> None:
    path = "/apis/apps/v1/namespaces/default/deployments"
    post(server, path, deployment("web"), Traceparent=f"00-{TRACE}-{PARENT}-01")

    def is_complete(spans: list[CollectedSpan]) -> bool:
        return all(len(pods_of(spans, each)) == REPLICAS for each in ("kube-scheduler", "simulated-nodes-controller"))

    spans = collector.wait_for(is_complete)
    assert pods_of(spans, "kube-scheduler") == pods_of(spans, "simulated-nodes-controller")
    starts = [each for each in spans if each.name == "reconcile simulated-nodes-controller" and each.trace == TRACE]
    request = "POST /apis/apps/v1/namespaces/{:namespace}/deployments"
    for start in starts:
        way = collector.path(start)
        assert way[-1] == request
        steps = [name.removeprefix("reconcile ") for name in way if name.startswith("reconcile ")]
        assert {"kube-scheduler", "replicaset-controller", "deployment-controller"} <= set(steps), way
    root = next(each for each in spans if each.name == request)
    assert (root.trace, root.parent, root.attributes["http.status_code"]) == (TRACE, PARENT, 201)
    assert any(each.name.startswith("admission ") and each.parent == root.id for each in spans)


def test_an_unsampled_trace_is_not_exported(server: ServerProcess, collector: Collector) -> None:
    trace = "11111111111111111111111111111111"
    path = "/api/v1/namespaces/default/configmaps"
    body = {"apiVersion": "v1", "kind": "ConfigMap"}
    post(server, path, {**body, "metadata": {"name": "a"}}, Traceparent=f"00-{trace}-{PARENT}-00")
    last = "22222222222222222222222222222222"
    post(server, path, {**body, "metadata": {"name": "b"}}, Traceparent=f"00-{last}-{PARENT}-01")
    spans = collector.wait_for(lambda spans: any(each.trace == last for each in spans))
    assert trace not in {each.trace for each in spans}
    assert {each.trace for each in spans} <= {TRACE, last}, "a rate of 0 samples no trace of the server itself"
