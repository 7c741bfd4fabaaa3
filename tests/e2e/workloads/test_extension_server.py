"""Tests of the extension API server in `examples`: kubectl uses its kinds through ctrlmgr's API server."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.kubectl import Kubectl, find_kubectl
from tests.e2e.serving import Server, until

EXAMPLE = Path(__file__).parents[3] / "examples" / "metrics_server.py"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("cluster"), "--disable-admission-plugins", "ServiceAccount")
    with server.running():
        yield server


@pytest.fixture
def kubectl(server: Server, tmp_path: Path) -> Kubectl:
    return Kubectl(find_kubectl(), server.kubeconfig, tmp_path, server.new_namespace())


@pytest.fixture
def extension(server: Server, kubectl: Kubectl) -> Iterator[subprocess.Popen[bytes]]:
    until(lambda: kubectl.run("get configmap extension-apiserver-authentication --namespace kube-system").code == 0)
    command = [sys.executable, str(EXAMPLE), "--kubeconfig", str(server.kubeconfig), "--kubectl", kubectl.program]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    yield process
    process.kill()
    process.wait()


def test_kubectl_uses_the_kinds_of_the_example_server(kubectl: Kubectl, extension: subprocess.Popen[bytes]) -> None:
    kubectl("run web --image nginx --annotations example.com/cpu=120m --annotations example.com/memory=64Mi")
    until(lambda: "web" in kubectl.run("top pods").out)
    assert kubectl("top pods --no-headers").split() == ["web", "120m", "64Mi"]
    assert "annotated-metrics" in kubectl("get apiservice v1beta1.metrics.k8s.io")
    extension.kill()
    extension.wait()
    refused = kubectl.run("top pods")
    assert refused.code != 0
    assert "error trying to reach service" in refused.err or "currently unable" in refused.err
    assert kubectl("get pods -o name") == "pod/web\n"
