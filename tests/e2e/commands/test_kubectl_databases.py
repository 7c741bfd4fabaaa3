"""Tests of commands on every database, before and after the server is stopped or killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.kubectl import Kubectl, find_kubectl, lines, squeezed
from tests.e2e.serving import DEADLINE, DUAL_STACK, Server, until

DATABASES = ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]

SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web"},
    "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}], "ipFamilyPolicy": "PreferDualStack"},
}


@pytest.mark.parametrize("database", DATABASES, indirect=True)
def test_a_service_is_created_updated_and_deleted(kubectl: Kubectl, server: Server) -> None:
    with kubectl.watching("get services -w --output-watch-events") as process:
        assert kubectl("apply -f -", SERVICE) == "service/web created\n"
        kubectl("apply -f -", SERVICE | {"metadata": {"name": "web", "labels": {"a": "b"}}})
        kubectl("run one --image=nginx --labels=app=web")
        ready = {"conditions": [{"type": "Ready", "status": "True"}], "podIPs": [{"ip": "10.1.0.1"}]}
        path = f"/api/v1/namespaces/{kubectl.namespace}/pods/one/status"
        assert server.request("PATCH", path, {"status": ready})[0] == 200
        until(lambda: kubectl("get endpoints web --no-headers").split()[1] == "10.1.0.1:80")
        addresses = kubectl.get("service web")["spec"]["clusterIPs"]
        assert [address.split(".")[0].split(":")[0] for address in addresses] == ["10", "fd00"]
        kubectl("delete service web")
        told = [line.split()[:2] for line in lines(process, 4)]
        assert told == [["EVENT", "NAME"], ["ADDED", "web"], ["MODIFIED", "web"], ["DELETED", "web"]]
    assert kubectl(f"get ipaddresses {' '.join(addresses)} -o name --ignore-not-found") == ""


@pytest.fixture(params=DATABASES)
def own(request: pytest.FixtureRequest, tmp_path: Path) -> Server:
    """A server that is not started yet, and whose database only this test uses."""
    url = f"sqlite:///{tmp_path / 'own.db'}"
    if request.param == "postgres":
        url = request.getfixturevalue("postgres_url")
    return Server(tmp_path, "--database", url, *DUAL_STACK)


def test_acknowledged_writes_survive_a_crash(own: Server, tmp_path: Path) -> None:
    kubectl = Kubectl(find_kubectl(), own.kubeconfig, tmp_path, "kept")
    try:
        own.start()
        kubectl("create namespace kept")
        kubectl("apply -f -", SERVICE)
        before = kubectl.get("service web")
        own.kill()
        own.start()
        assert kubectl.get("service web") == before
        assert kubectl("apply -f -", SERVICE) == "service/web unchanged\n"
        revision = before["metadata"]["resourceVersion"]
        path = f"/api/v1/namespaces/kept/services?watch=1&timeoutSeconds=1&resourceVersion={int(revision) - 1}"
        assert kubectl(f"get --raw '{path}'").startswith('{"type":"ADDED"')
        with kubectl.watching("get services -w -o name") as process:
            assert lines(process, 1) == ["service/web"]
            own.stop()
            assert process.wait(DEADLINE) == 0
        told = kubectl.fails("get services")
        assert "connection to the server" in squeezed(told), told
    finally:
        own.close()
