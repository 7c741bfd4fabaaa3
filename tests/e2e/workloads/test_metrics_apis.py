"""Tests of autoscalers with metrics of every type, which come from a small server of the metrics APIs that APIServices
name.
"""

from __future__ import annotations

import http.server
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.background import DEADLINE, background
from tests.e2e.kubectl import Kubectl
from tests.e2e.serving import Server, until
from tests.e2e.widgets import certificate
from tests.json_handler import JsonHandler

GROUPS = {"metrics.k8s.io": "v1beta1", "custom.metrics.k8s.io": "v1beta2", "external.metrics.k8s.io": "v1beta1"}
NOW = "2026-01-01T00:00:00Z"


class Metrics:
    """A server for the three metrics APIs; the usage of each requested pod, and the value of each other metric, is
    three times its target.
    """

    def __init__(self, folder: Path, server: Server) -> None:
        self.asked: list[str] = []
        self.users: set[str | None] = set()
        metrics = self

        class Handler(JsonHandler):
            protocol_version = "HTTP/1.1"

            def respond(self) -> None:
                metrics.users.add(self.headers["X-Remote-User"])
                self.answer({"items": metrics.items(server, self.path)})

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate(folder))
        self.http.socket = context.wrap_socket(self.http.socket, server_side=True, do_handshake_on_connect=False)
        self.port = self.http.server_address[1]

    def items(self, server: Server, path: str) -> list[dict[str, Any]]:
        parts = urlsplit(path)
        self.asked.append(parts.path)
        _, _, group, _, _, namespace, *rest = parts.path.split("/")
        if group == "external.metrics.k8s.io" or rest[0] == "services":
            return [{"value": "15", "timestamp": NOW}]
        selector = parse_qs(parts.query)["labelSelector"][0]
        pods = server.request("GET", f"/api/v1/namespaces/{namespace}/pods?labelSelector={selector}")[1]["items"]
        names = [pod["metadata"]["name"] for pod in pods]
        if group == "metrics.k8s.io":
            containers = [{"name": "app", "usage": {"memory": "300Mi"}}]
            return [
                {"metadata": {"name": n}, "timestamp": NOW, "window": "30s", "containers": containers} for n in names
            ]
        return [{"describedObject": {"name": name}, "value": "15", "timestamp": NOW} for name in names]


@pytest.fixture(scope="module")
def metrics(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Metrics]:
    """The metrics server, and the APIServices that name it."""
    metrics = Metrics(tmp_path_factory.mktemp("metrics"), server)
    server.create("/api/v1/namespaces", {"metadata": {"name": "monitoring"}})
    service = {"type": "ExternalName", "externalName": "127.0.0.1"}
    server.create("/api/v1/namespaces/monitoring/services", {"metadata": {"name": "metrics"}, "spec": service})
    collection = "/apis/apiregistration.k8s.io/v1/apiservices"
    for group, version in GROUPS.items():
        spec = {
            "group": group,
            "version": version,
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "insecureSkipTLSVerify": True,
            "service": {"name": "metrics", "namespace": "monitoring", "port": metrics.port},
        }
        server.create(collection, {"metadata": {"name": f"{version}.{group}"}, "spec": spec})
    serving = background(metrics.http.serve_forever)
    try:
        yield metrics
    finally:
        metrics.http.shutdown()
        serving.result(timeout=DEADLINE)
        metrics.http.server_close()
    for group, version in GROUPS.items():
        server.request("DELETE", f"{collection}/{version}.{group}")
    server.request("DELETE", "/api/v1/namespaces/monitoring")


OF_FIVE = {"type": "AverageValue", "averageValue": "5"}
SERVICE = {"kind": "Service", "name": "web", "apiVersion": "v1"}


@pytest.mark.parametrize(
    ("type_", "source", "asked"),
    [
        (
            "Resource",
            {"name": "memory", "target": {"type": "AverageValue", "averageValue": "100Mi"}},
            "/apis/metrics.k8s.io/v1beta1/namespaces/{}/pods",
        ),
        (
            "Pods",
            {"metric": {"name": "rps"}, "target": OF_FIVE},
            "/apis/custom.metrics.k8s.io/v1beta2/namespaces/{}/pods/*/rps",
        ),
        (
            "Object",
            {"metric": {"name": "hits"}, "describedObject": SERVICE, "target": {"type": "Value", "value": "5"}},
            "/apis/custom.metrics.k8s.io/v1beta2/namespaces/{}/services/web/hits",
        ),
        (
            "External",
            {"metric": {"name": "queue"}, "target": {"type": "Value", "value": "5"}},
            "/apis/external.metrics.k8s.io/v1beta1/namespaces/{}/queue",
        ),
    ],
    ids=["resource", "pods", "object", "external"],
)
def test_three_times_the_target_triples_the_replicas(
    kubectl: Kubectl, namespace: str, metrics: Metrics, server: Server, type_: str, source: dict[str, Any], asked: str
) -> None:
    kubectl("create deployment web --image=registry.example/app:1 --replicas=1")
    kubectl("rollout status deployment web --timeout=20s")
    metric = {"type": type_, type_[0].lower() + type_[1:]: source}
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    server.create(
        f"/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers",
        {"metadata": {"name": "web"}, "spec": {"scaleTargetRef": target, "maxReplicas": 3, "metrics": [metric]}},
    )
    until(lambda: kubectl.get("deployment web")["spec"]["replicas"] == 3)
    assert asked.format(namespace) in metrics.asked
    assert metrics.users - {"system:kube-aggregator", "system:aggregator"} == {
        "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
    }
    told = kubectl.get("events")["items"]
    assert any(each["reason"] == "SuccessfulRescale" and "New size: 3" in each["message"] for each in told)
