"""A server with running workload controllers, two nodes, and simulated kubelets."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.kubectl import Kubectl, find_kubectl
from tests.e2e.serving import Server
from tests.e2e.workloads.kubelets import kubelets

NODES = ("node-a", "node-b")
_CONTROLLERS = (
    "deployment,replicaset,replicationcontroller,statefulset,daemonset,job,cronjob,disruption,"
    "horizontal-pod-autoscaler,garbage-collector,namespace,root-ca-certificate-publisher,serviceaccount"
)
_PERIOD = "--horizontal-pod-autoscaler-sync-period=1s"


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A running server with all controllers of workloads."""
    folder = tmp_path_factory.mktemp("workloads")
    server = Server(folder, "--database", f"sqlite:///{folder / 'ctrlmgr.db'}", "--controllers", _CONTROLLERS, _PERIOD)
    try:
        server.start()
        for name in NODES:
            server.create("/api/v1/nodes", {"metadata": {"name": name}})
            server.request("PATCH", f"/api/v1/nodes/{name}", {"spec": {"taints": None}})
        with kubelets(server):
            yield server
        server.stop()
    finally:
        server.close()


@pytest.fixture(scope="session")
def anywhere(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    """A function that runs kubectl commands for this module's server instead of the server that all tests share."""
    return Kubectl(find_kubectl(), server.kubeconfig, tmp_path_factory.mktemp("home"))
