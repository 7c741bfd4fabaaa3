"""Tests of Services that scripts in pods use: init containers that wait, and tests of charts."""

from __future__ import annotations

import pytest

from tests.simulation.conforming.cluster import Cluster, Thing, condition, container, pod, template, terminated

NAMESPACE_FILE = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
WAITS = f"""
until nslookup myservice.$(cat {NAMESPACE_FILE}).svc.cluster.local; do
  echo waiting for myservice
  sleep 2
done
"""
"""The init container in Kubernetes' documentation (Pods > Init Containers)."""


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def service(cluster: Cluster, name: str, port: int = 80, **spec: object) -> None:
    ports = [{"name": "http", "port": port, "targetPort": 8080}]
    cluster.make("services", {"metadata": {"name": name}, "spec": {"selector": {"app": name}, "ports": ports, **spec}})


def chart_test(name: str, *arguments: str, command: str = "wget") -> Thing:
    """Return the pod in `templates/tests/test-connection.yaml`, in the form in which `helm create` writes it."""
    one = {"name": "wget", "image": "busybox", "command": [command], "args": [*arguments]}
    return pod(name, one, restartPolicy="Never")


def ended(cluster: Cluster, name: str, within: float = 30.0) -> str:
    cluster.until(lambda: cluster.phase(name) in ("Succeeded", "Failed"), within=within)
    return cluster.phase(name)


def test_an_init_container_waits_until_its_service_exists(cluster: Cluster) -> None:
    projected = {"projected": {"sources": [{"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {
        "fieldPath": "metadata.namespace"}}]}}]}, "name": "api"}  # fmt: skip
    mount = {"name": "api", "mountPath": NAMESPACE_FILE.rpartition("/")[0]}
    first = container(WAITS, "init-myservice", volumeMounts=[mount])
    cluster.make("pods", pod("p", container(), initContainers=[first], volumes=[projected]))
    cluster.pass_by(60)
    assert condition(cluster.get("pods", "p"), "Initialized")["status"] == "False"
    service(cluster, "myservice")
    cluster.until(lambda: cluster.phase("p") == "Running", within=5)
    assert cluster.get("pods", "p")["status"]["initContainerStatuses"][0]["restartCount"] == 0


def test_the_test_of_a_default_chart_passes_after_its_pods_are_ready(cluster: Cluster) -> None:
    cluster.make("pods", chart_test("too-early", "web:80"))
    assert ended(cluster, "too-early") == "Failed"
    service(cluster, "web")
    cluster.make("pods", chart_test("still-too-early", "web:80"))
    assert ended(cluster, "still-too-early") == "Failed"
    cluster.pass_by(1)
    cluster.make(
        "replicationcontrollers", {"metadata": {"name": "web"}, "spec": {"replicas": 2, "template": template()}}
    )
    cluster.until(lambda: len(cluster.ready("app=web")) == 2)
    for name, where in (("short", "web:80"), ("long", "http://web.a.svc.cluster.local"), ("else", "example.com")):
        cluster.make("pods", chart_test(name, where))
        assert ended(cluster, name) == "Succeeded", name
    address = cluster.get("services", "web")["spec"]["clusterIP"]
    cluster.make("pods", chart_test("by-address", address, "80", "-z", command="nc"))
    assert ended(cluster, "by-address") == "Succeeded"
    cluster.make("pods", chart_test("no-such-port", "-T", "3", "web:81"))
    assert ended(cluster, "no-such-port") == "Failed"


def test_a_service_without_endpoints_refuses_connections_and_the_past_is_kept(cluster: Cluster) -> None:
    service(cluster, "web")
    cluster.make("pods", pod("server", labels={"app": "web"}))
    cluster.until(lambda: len(cluster.ready("app=web")) == 1)
    asks = container("until nc -z web 80; do sleep 1; done; while nc -z web 80; do sleep 1; done; exit 3")
    cluster.make("pods", pod("p", asks, restartPolicy="Never"))
    cluster.pass_by(20)
    assert cluster.phase("p") == "Running"
    cluster.delete("pods", "server", gracePeriodSeconds=0)
    assert ended(cluster, "p") == "Failed"
    assert terminated(cluster.get("pods", "p"))["exitCode"] == 3


def test_pods_of_a_stateful_set_are_resolved_by_name(cluster: Cluster) -> None:
    service(cluster, "web", clusterIP="None")
    spec = {"serviceName": "web", "selector": {"matchLabels": {"app": "web"}}, "template": template()}
    cluster.make("statefulsets", {"metadata": {"name": "web"}, "spec": spec})
    cluster.until(lambda: len(cluster.ready("app=web")) == 1)
    cluster.make("pods", chart_test("there", "web-0.web:8080"))
    cluster.make("pods", chart_test("not-there", "web-1.web:8080"))
    assert [ended(cluster, name) for name in ("there", "not-there")] == ["Succeeded", "Failed"]


def test_a_pod_that_waits_for_no_service_is_not_recomputed(cluster: Cluster) -> None:
    service(cluster, "web")
    cluster.make("pods", pod("server", labels={"app": "web"}))
    cluster.until(lambda: len(cluster.ready("app=web")) == 1)
    cluster.make("pods", chart_test("short", "web"))
    ended(cluster, "short")
    cluster.pass_by(1)
    before = len(cluster.history("pods", "short"))
    cluster.delete("services", "web")
    cluster.pass_by(5)
    assert len(cluster.history("pods", "short")) == before
