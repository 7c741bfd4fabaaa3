"""Tests of metrics from the servers that APIServices name: the chosen server, the requests, and the handling of
responses.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest

from ctrlmgr.controllers.horizontal_pod_autoscaler import API_SERVICES
from ctrlmgr.controllers.horizontal_pod_autoscaler.aggregated_metrics import Aggregated, MetricsServers
from ctrlmgr.controllers.horizontal_pod_autoscaler.metrics_client import MetricsError, PodMetric
from ctrlmgr.engine.calls.call import Call, Credentials, Reply
from ctrlmgr.engine.selectors.label_selector_parser import LabelSelector
from tests.engine.stage import Stage

WEB = LabelSelector.parse("app=web,tier in (b,a),!canary")
EVERYTHING = LabelSelector()
MINUTE = 60_000_000


class Servers:
    """A cluster with APIServices whose servers send the responses that a test sets."""

    def __init__(self) -> None:
        self.stage = Stage()
        self.stage.namespace("monitoring")
        self.stage.namespace("shop")
        spec = {"type": "ExternalName", "externalName": "metrics.example"}
        service = self.stage.send(
            "POST", "/api/v1/namespaces/monitoring/services", {"metadata": {"name": "m"}, "spec": spec}
        )
        assert service.code == 201, service.body
        self.asked: list[Call] = []
        self.reply = Reply(200, "application/json", b'{"items":[]}')

    def served(self, group: str, version: str, *, priority: int = 100, **more: Any) -> None:
        spec = {
            "group": group,
            "version": version,
            "groupPriorityMinimum": 100,
            "versionPriority": priority,
            "insecureSkipTLSVerify": True,
            "service": {"name": "m", "namespace": "monitoring", "port": 6443},
            **more,
        }
        body = {"metadata": {"name": f"{version}.{group}"}, "spec": spec}
        made = self.stage.send("POST", "/apis/apiregistration.k8s.io/v1/apiservices", body)
        assert made.code == 201, made.body

    def answer(self, *items: Mapping[str, Any], code: int = 200) -> None:
        self.reply = Reply(code, "application/json", json.dumps({"items": items}).encode())

    def metrics(self) -> Aggregated:
        def call(asked: Call) -> Reply:
            self.asked.append(asked)
            return self.reply

        cacher = self.stage.cacher
        servers = MetricsServers(lambda: cacher.list(API_SERVICES), cacher, Random(0), Credentials({}, b"pem"))
        return Aggregated(lambda namespace: None, servers, call, lambda: self.stage.kinds)


@pytest.fixture
def servers() -> Servers:
    return Servers()


def test_resource_metrics(servers: Servers) -> None:
    servers.served("metrics.k8s.io", "v1beta1")
    servers.answer(
        {
            "metadata": {"name": "p", "namespace": "shop"},
            "timestamp": "2026-01-01T00:00:00Z",
            "window": "30s",
            "containers": [{"name": "a", "usage": {"cpu": "250m"}}, {"name": "b", "usage": {"cpu": "1"}}],
        }
    )
    metrics = servers.metrics()
    measured = PodMetric(1250, 1_767_225_600_000_000, MINUTE // 2)
    assert metrics.resource("cpu", "shop", WEB, "") == {"p": measured}
    assert metrics.resource("cpu", "shop", WEB, "a") == {"p": measured._replace(value=250)}
    asked = servers.asked[0]
    path = "/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods"
    assert asked.url == f"https://m.monitoring.svc:6443{path}?labelSelector=app%3Dweb%2C%21canary%2Ctier+in+%28a%2Cb%29"
    assert (asked.method, asked.address, asked.is_checked) == ("GET", ("metrics.example", 6443), False)
    assert asked.credentials.certificate == b"pem"
    assert asked.credentials.headers["X-Remote-User"] == "system:serviceaccount:kube-system:horizontal-pod-autoscaler"


def test_metrics_of_pods(servers: Servers) -> None:
    servers.served("custom.metrics.k8s.io", "v1beta1")
    servers.answer(
        {"describedObject": {"name": "p"}, "timestamp": "2026-01-01T00:00:00Z", "value": "12"},
        {"describedObject": {"name": "q"}, "timestamp": "2026-01-01T00:00:00Z", "value": "500m", "windowSeconds": 5},
    )
    at = 1_767_225_600_000_000
    assert servers.metrics().pods("rps", "shop", LabelSelector.parse("app=web"), EVERYTHING) == {
        "p": PodMetric(12_000, at, MINUTE),
        "q": PodMetric(500, at, 5_000_000),
    }
    path = "/apis/custom.metrics.k8s.io/v1beta1/namespaces/shop/pods/*/rps"
    assert servers.asked[0].url == f"https://m.monitoring.svc:6443{path}?labelSelector=app%3Dweb"


@pytest.mark.parametrize(
    ("described", "path"),
    [
        ({"kind": "Service", "name": "s", "apiVersion": "v1"}, "services/s/hits"),
        ({"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}, "deployments.apps/d/hits"),
        ({"kind": "Namespace", "name": "other", "apiVersion": "v1"}, "metrics/hits"),
    ],
)
def test_metrics_of_objects(servers: Servers, described: dict[str, str], path: str) -> None:
    servers.served("custom.metrics.k8s.io", "v1beta2")
    servers.answer({"describedObject": {"name": "s"}, "value": "7"})
    assert servers.metrics().object("hits", "shop", described, LabelSelector.parse("verb=GET")) == 7000
    where = f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/{path}?metricLabelSelector=verb%3DGET"
    assert servers.asked[0].url == f"https://m.monitoring.svc:6443{where}"


def test_external_metrics(servers: Servers) -> None:
    servers.served("external.metrics.k8s.io", "v1beta1")
    servers.answer({"metricName": "q", "value": "3"}, {"metricName": "q", "value": "1500m"})
    assert servers.metrics().external("q", "shop", EVERYTHING) == [3000, 1500]
    path = "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/q"
    assert servers.asked[0].url == f"https://m.monitoring.svc:6443{path}"


@pytest.mark.parametrize(("first", "second", "chosen"), [(100, 100, "v1beta2"), (200, 100, "v1beta1")])
def test_the_version_with_the_highest_priority_counts(servers: Servers, first: int, second: int, chosen: str) -> None:
    servers.served("custom.metrics.k8s.io", "v1beta1", priority=first)
    servers.served("custom.metrics.k8s.io", "v1beta2", priority=second)
    servers.served("custom.metrics.k8s.io", "v1", priority=1000)
    servers.answer({"describedObject": {"name": "p"}, "value": "1"})
    servers.metrics().pods("rps", "shop", EVERYTHING, EVERYTHING)
    assert f"/{chosen}/" in servers.asked[0].url


UNAVAILABLE = "the server is currently unable to handle the request"


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply(problem="dial tcp: connection refused"), f"{UNAVAILABLE} (get pods.metrics.k8s.io)"),
        (Reply(503, "text/plain", b"no"), f"{UNAVAILABLE} (get pods.metrics.k8s.io)"),
        (Reply(404, "application/json", b'{"kind":"Status","message":"nothing of that name"}'), "nothing of that name"),
        (Reply(200, "application/json", b'{"items":7}'), "Expected `array`, got `int` - at `$.items`"),
    ],
)
def test_a_server_that_does_not_answer(servers: Servers, reply: Reply, said: str) -> None:
    servers.served("metrics.k8s.io", "v1beta1")
    servers.reply = reply
    with pytest.raises(MetricsError) as failed:
        servers.metrics().resource("cpu", "shop", WEB, "")
    assert str(failed.value) == f"unable to fetch metrics from resource metrics API: {said}"


def test_a_service_that_is_missing(servers: Servers) -> None:
    servers.served("metrics.k8s.io", "v1beta1", service={"name": "none", "namespace": "monitoring"})
    with pytest.raises(MetricsError, match=r"unable to handle the request \(get pods.metrics.k8s.io\)"):
        servers.metrics().resource("cpu", "shop", WEB, "")
    assert servers.asked == []


@pytest.mark.parametrize("value", ["much", ""])
def test_an_invalid_amount_is_an_error(servers: Servers, value: str) -> None:
    servers.served("external.metrics.k8s.io", "v1beta1")
    servers.answer({"value": value})
    with pytest.raises(MetricsError):
        servers.metrics().external("q", "shop", EVERYTHING)


def test_exactly_one_object_is_queried(servers: Servers) -> None:
    servers.served("custom.metrics.k8s.io", "v1beta2")
    with pytest.raises(MetricsError, match="returned 0 results when we asked for exactly one"):
        servers.metrics().object("hits", "shop", {"kind": "Service", "name": "s", "apiVersion": "v1"}, EVERYTHING)
    with pytest.raises(MetricsError, match=r'no matches for kind "Thing" in group "x.example"'):
        servers.metrics().object("hits", "shop", {"kind": "Thing", "apiVersion": "x.example/v1"}, EVERYTHING)


def test_a_group_without_a_server_is_missing(servers: Servers) -> None:
    with pytest.raises(MetricsError, match="no custom metrics API"):
        servers.metrics().pods("rps", "shop", EVERYTHING, EVERYTHING)
    with pytest.raises(MetricsError, match=r"could not find the requested resource \(get pods.metrics.k8s.io\)"):
        servers.metrics().resource("cpu", "shop", WEB, "")
