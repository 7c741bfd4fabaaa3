"""Tests of six operators on simulated nodes: the operators start, and their custom resources become ready.

The manifests in `operators/` resemble public manifests: webhooks that the operator serves, Jobs that are hooks of a
chart, probes on undeclared ports, init containers that copy files, leader elections.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.kubectl import Kubectl, find_kubectl
from tests.e2e.serving import Server, until

MANIFESTS = sorted((Path(__file__).parent / "operators").glob("*.yaml"))
SPEED = ("--simulated-speed", "5")
"""A server with simulated nodes that run five times as fast as real time."""
CUSTOM = {
    "addresses": """
apiVersion: addresses.example.com/v1alpha1
kind: Pool
metadata: {name: one}
spec: {ranges: [192.0.2.0/24]}
""",
    "certificates": """
apiVersion: certificates.example.com/v1
kind: Issuer
metadata: {name: one}
spec: {selfSigned: {}}
""",
    "delivery": """
apiVersion: delivery.example.com/v1alpha1
kind: Application
metadata: {name: one}
spec: {project: default}
""",
    "ingress": """
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: one}
spec: {ingressClassName: example, defaultBackend: {service: {name: web, port: {number: 80}}}}
""",
    "monitoring": """
apiVersion: monitoring.example.com/v1
kind: Rule
metadata: {name: one}
spec: {groups: [{name: a}]}
""",
    "queues": """
apiVersion: queues.example.com/v1beta1
kind: LocalQueue
metadata: {name: one}
spec: {clusterQueue: all}
""",
}
"""The requests that call each operator's webhooks, with a version that has to be converted if the operator has a
conversion webhook.
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("operators")
    found = Server(folder, "--database", f"sqlite:///{folder / 'ctrlmgr.db'}", "--nodes", "3", *SPEED)
    with found.running():
        yield found


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.stem)
def test_installed_operators_become_ready(server: Server, tmp_path: Path, manifest: Path) -> None:
    user = Kubectl(find_kubectl(), server.kubeconfig, tmp_path, server.new_namespace())
    user.within("")(f"apply -f {manifest}")
    operator = user.within(manifest.stem)
    for name in operator("get deployments,daemonsets,statefulsets --output name").split():
        operator(f"rollout status {name} --timeout 60s")
    for name in operator("get jobs --output name").split():
        operator(f"wait {name} --for condition=Complete --timeout 60s")
    statuses = [each["status"] for each in operator.get("pods")["items"]]
    assert {each["restartCount"] for status in statuses for each in status["containerStatuses"]} == {0}
    user("apply -f -", CUSTOM[manifest.stem])
    user("create deployment after --image nginx")
    user("rollout status deployment after --timeout 60s")
    user("create job after --image example.com/tool:1")
    user("wait job after --for condition=Complete --timeout 60s")


def test_a_webhook_without_ready_pods_fails_requests(server: Server, tmp_path: Path) -> None:
    user = Kubectl(find_kubectl(), server.kubeconfig, tmp_path, server.new_namespace())
    user.within("")(f"apply -f {MANIFESTS[-1]}")
    operator = user.within(MANIFESTS[-1].stem)
    operator("rollout status deployment controller-manager --timeout 60s")
    told = "annotate pods --selector control-plane=controller-manager --overwrite simulate.ctrlmgr.io/pod"
    operator(f"{told}='never ready'")
    operator("wait pods --selector control-plane=controller-manager --for condition=Ready=False --timeout 20s")
    until(lambda: user.run("create deployment refused --image nginx --dry-run=server").code == 1)
    refused = user.fails("create deployment refused --image nginx --dry-run=server")
    assert 'failed calling webhook "deployments.queues.example.com"' in refused
    assert 'no endpoints available for service "webhook"' in refused
    operator(f"{told}-")
    operator("wait pods --selector control-plane=controller-manager --for condition=Ready --timeout 20s")
    until(lambda: user.run("create deployment accepted --image nginx").code == 0)
