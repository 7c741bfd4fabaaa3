"""Tests of version skew: common commands of kubectl 1.34 to 1.37 and of helm work with this server."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.kubectl import Kubectl
from tests.e2e.serving import Server
from tests.e2e.skew.programs import MINORS, find_programs

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("skew")
    server = Server(folder, "--database", "memory:", "--nodes", "2", "--simulated-speed", "5")
    with server.running():
        yield server


def programs(minor: int) -> Path:
    found = find_programs(minor)
    if found is None:
        pytest.skip(f"there is no kubectl 1.{minor} for this machine in a package that can be had")
    return found


def deployment(image: str = "nginx:1") -> dict[str, Any]:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": image}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


@pytest.mark.parametrize("minor", MINORS)
def test_kubectl_of_every_supported_version_works(server: Server, tmp_path: Path, minor: int) -> None:
    kubectl = Kubectl(str(programs(minor) / "kubectl" / "kubectl"), server.kubeconfig, tmp_path, server.new_namespace())
    told = json.loads(kubectl("version -o json"))
    assert told["clientVersion"]["minor"] == str(minor)
    assert told["serverVersion"]["gitVersion"].startswith("v1.36")
    assert "deployment.apps/web created" in kubectl("apply -f -", deployment())
    assert "successfully rolled out" in kubectl("rollout status deployment/web --timeout 60s")
    kubectl("expose deployment web --port 80")
    assert kubectl("get pods -o wide --show-labels").count("Running") == 2
    assert "deployment.apps/web serverside-applied" in kubectl(
        "apply --server-side --force-conflicts -f -", deployment()
    )
    assert "nginx:2" in kubectl.run("diff -f -", deployment("nginx:2")).out
    kubectl("set image deployment/web c=nginx:2")
    kubectl("rollout status deployment/web --timeout 60s")
    kubectl("rollout undo deployment/web")
    kubectl("scale deployment web --replicas 3")
    kubectl("wait deployment/web --for condition=Available --timeout 60s")
    kubectl("label deployment web tier=front")
    kubectl('patch deployment web -p \'{"spec":{"minReadySeconds":1}}\'')
    kubectl("annotate pods --all seen=yes")
    assert "Replicas:" in kubectl("describe deployment web")
    assert "FIELD: replicas" in kubectl("explain deployment.spec.replicas")
    assert "yes" in kubectl("auth can-i create pods")
    assert "Scheduled" in kubectl("events")
    assert "deployments" in kubectl("api-resources --api-group apps")
    kubectl("delete deployment,service web --wait --timeout 60s")
    assert kubectl("get deployments -o name") == ""


class Helm:
    """Runs helm against a server."""

    def __init__(self, program: Path, server: Server, namespace: str, folder: Path) -> None:
        self._program = program
        self._environment = {"HOME": str(folder), "KUBECONFIG": str(server.kubeconfig), "HELM_NAMESPACE": namespace}
        self._folder = folder

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(self._program), *arguments]
        environment = {**self._environment, "PATH": "/usr/bin:/bin"}
        return subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=120, env=environment, cwd=self._folder
        )

    def ok(self, *arguments: str) -> str:
        done = self(*arguments)
        assert done.returncode == 0, f"helm {arguments}: {done.stdout}{done.stderr}"
        return done.stdout


def test_helm_of_every_supported_version_works(server: Server, tmp_path: Path) -> None:
    """helm installs, tests, upgrades, rolls back and uninstalls the chart that `helm create` generates."""
    found, namespace = programs(36), server.new_namespace()
    kubectl = Kubectl(str(found / "kubectl" / "kubectl"), server.kubeconfig, tmp_path, namespace)
    helm = Helm(found / "helm" / "helm", server, namespace, tmp_path)
    helm.ok("create", "shop")
    helm.ok("install", "web", "./shop", "--wait", "--timeout", "60s")
    assert kubectl("get pods").count("1/1") == 1
    assert "Succeeded" in helm.ok("test", "web", "--timeout", "60s")
    helm.ok("upgrade", "web", "./shop", "--set", "replicaCount=2", "--wait", "--timeout", "60s")
    assert kubectl("get pods -l app.kubernetes.io/instance=web").count("1/1") == 2
    helm.ok("rollback", "web", "1", "--wait", "--timeout", "60s")
    kubectl("annotate pods --all simulate.ctrlmgr.io/pod=never\\ ready")
    kubectl("wait pods --all --for condition=Ready=false --timeout 60s")
    failed = helm("test", "web", "--timeout", "60s")
    assert failed.returncode != 0, failed.stdout
    helm.ok("uninstall", "web", "--wait")
    assert "web" not in helm.ok("list", "-q")
