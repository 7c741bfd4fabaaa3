"""A control plane, a kubelet that the tests run, and a pod on the kubelet's node, which all modules share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.kubectl import Kubectl, find_kubectl
from tests.e2e.kubelet.small_kubelet import SmallKubelet
from tests.e2e.serving import Server


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("server"), "--database", "memory:", "--kubelet-timeout", "3s")
    with server.running():
        yield server


@pytest.fixture(scope="package")
def kubelet(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallKubelet]:
    kubelet = SmallKubelet(server.kubeconfig.parent / "pki", tmp_path_factory.mktemp("kubelet"))
    with kubelet.serving():
        yield kubelet


@pytest.fixture(scope="package")
def namespace(server: Server, kubelet: SmallKubelet) -> str:
    """The name of a namespace with the pod `real` on the kubelet's node, and the pod `older` on a node that declares no
    features.
    """
    create_node(server, "real", kubelet.port, ["ExtendWebSocketsToKubelet"])
    name = server.new_namespace()
    create_pod(server, name, "real", "real")
    create_node(server, "older", kubelet.port, [])
    create_pod(server, name, "older", "older")
    return name


@pytest.fixture
def kubectl(server: Server, namespace: str, tmp_path: Path) -> Kubectl:
    return Kubectl(find_kubectl(), server.kubeconfig, tmp_path, namespace)


def create_node(server: Server, name: str, port: int, features: list[str], address: str = "127.0.0.1") -> None:
    """Create a node whose kubelet listens at a given address."""
    status = {
        "addresses": [{"type": "InternalIP", "address": address}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        "declaredFeatures": features,
    }
    server.create("/api/v1/nodes", {"metadata": {"name": name}, "status": status})


def create_pod(server: Server, namespace: str, name: str, node: str, *containers: str) -> None:
    """Create a running pod on a node."""
    listed = [{"name": each, "image": "busybox"} for each in containers or ("main",)]
    server.create(
        f"/api/v1/namespaces/{namespace}/pods",
        {"metadata": {"name": name}, "spec": {"nodeName": node, "containers": listed}},
    )
    running = {
        "phase": "Running",
        "conditions": [{"type": each, "status": "True"} for each in ("Ready", "ContainersReady")],
        "containerStatuses": [{"name": each["name"], "ready": True} for each in listed],
    }
    path = f"/api/v1/namespaces/{namespace}/pods/{name}/status"
    code, answer = server.request("PATCH", path, {"status": running})
    assert code == 200, answer
