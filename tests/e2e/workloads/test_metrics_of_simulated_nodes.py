"""Tests of the CPU and memory usage of simulated nodes and pods with real kubectl, and of an autoscaler that uses these
metrics.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.kubectl import Kubectl, find_kubectl
from tests.e2e.serving import Server, until

AUTOSCALER = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 1
  maxReplicas: 4
  metrics:
  - type: Resource
    resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}
"""
WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata:
      labels: {app: web}
      annotations: {simulate.ctrlmgr.io/pod: cpu 90m}
    spec:
      containers: [{name: web, image: nginx, resources: {requests: {cpu: 100m}}}]
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("cluster")
    periods = ("--horizontal-pod-autoscaler-sync-period", "1s", "--horizontal-pod-autoscaler-initial-readiness-delay")
    ready = ("0s", "--horizontal-pod-autoscaler-cpu-initialization-period", "0s")
    server = Server(folder, "--nodes", "2", *periods, *ready)
    with server.running():
        yield server


@pytest.fixture
def kubectl(server: Server, tmp_path: Path) -> Kubectl:
    return Kubectl(find_kubectl(), server.kubeconfig, tmp_path, server.new_namespace())


def test_ready_is_printed_last(server: Server) -> None:
    until(lambda: server.request("GET", "/apis/metrics.k8s.io/v1beta1/nodes")[0] == 200)
    until(lambda: re.search(r"\] ready +seconds=", server.log))
    before, ready, _ = server.log.partition("] ready ")
    assert ready
    for line in (
        "became leader",
        "publishing server addresses",
        "APIService availability changed apiservice=v1beta1",
    ):
        assert line in before, server.log


def test_kubectl_top_shows_the_usage_of_containers(kubectl: Kubectl) -> None:
    kubectl("run idle --image nginx --labels app=idle")
    kubectl("run busy --image nginx --annotations 'simulate.ctrlmgr.io/pod=cpu 250m; memory 512Mi'")
    kubectl("wait pods --all --for condition=Ready --timeout 20s")
    until(lambda: "busy" in kubectl.run("top pods").out)
    rows = {row.split()[0]: row.split()[1:] for row in kubectl("top pods --no-headers").splitlines()}
    assert rows == {"busy": ["250m", "512Mi"], "idle": ["1m", "16Mi"]}
    assert kubectl("top pods --no-headers -l app=idle").split()[0] == "idle"
    assert [row.split()[0] for row in kubectl("top nodes --no-headers").splitlines()] == ["node-1", "node-2"]
    assert "PodMetrics" in kubectl("api-resources --api-group metrics.k8s.io")


def test_an_autoscaler_scales_by_usage(kubectl: Kubectl) -> None:
    kubectl("apply -f -", WEB)
    kubectl("apply -f -", AUTOSCALER)
    until(lambda: kubectl.get("deployment web")["spec"]["replicas"] == 4)
    status = kubectl.get("hpa web")["status"]
    assert status["currentMetrics"][0]["resource"]["current"]["averageUtilization"] == 90
