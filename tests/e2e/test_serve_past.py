"""Tests of `serve --at` with the real kubectl, while another process writes to the log."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.kubectl import Kubectl, find_kubectl, lines
from tests.e2e.serving import Server
from tests.recording.samples import SMALL

DATABASES = ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]

CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "data": {"a": "then"}}


class HistoricalServer(Server):
    """A `ctrlmgr serve --at` process, with its own directory."""

    def __init__(self, folder: Path, database: str, revision: int, before: str) -> None:
        folder.mkdir()
        super().__init__(folder, "--database", database, "--at", str(revision))
        self.kubeconfig = folder / f"kubeconfig-at-{revision}"
        self.revision = revision
        self.before = before
        """A revision with a known state."""

    def complaint(self, method: str, path: str, body: object = None) -> str:
        """Return the message of a refused write."""
        code, status = self.request(method, path, body)
        assert (code, status["kind"], status["reason"]) == (403, "Status", "Forbidden")
        return str(status["message"])


@pytest.fixture
def past(kubectl: Kubectl, database: str, tmp_path: Path) -> Iterator[HistoricalServer]:
    """Return a revision at which `one` exists unchanged in the namespace, and `two` does not exist yet."""
    kubectl("create -f -", CONFIG_MAP)
    before = kubectl.get("configmap one")["metadata"]["resourceVersion"]
    kubectl("label configmap one x=y")
    at = kubectl.get("configmap one")["metadata"]["resourceVersion"]
    kubectl("create -f -", {**CONFIG_MAP, "metadata": {"name": "two"}})
    kubectl("delete configmap one")
    past = HistoricalServer(tmp_path / "past", database, int(at), before)
    with past.running():
        yield past


@pytest.mark.parametrize("database", DATABASES, indirect=True)
def test_the_past_can_be_read(past: HistoricalServer, kubectl: Kubectl, server: Server, tmp_path: Path) -> None:
    then = Kubectl(find_kubectl(), past.kubeconfig, tmp_path, kubectl.namespace)
    where = f"/api/v1/namespaces/{kubectl.namespace}/configmaps"
    head = server.request("GET", where)[1]["metadata"]["resourceVersion"]
    listed = names(past, where)
    assert listed == (str(past.revision), ["kube-root-ca.crt", "one"])
    assert then("get configmap one -o name --show-labels=false").strip() == "configmap/one"
    assert then.get("configmap one")["metadata"]["labels"] == {"x": "y"}
    assert "labels" not in exactly(past, where, past.before)["one"]["metadata"]
    assert then.fails("get configmap two").strip() == 'Error from server (NotFound): configmaps "two" not found'
    assert past.request("GET", f"{where}?resourceVersion={head}&timeoutSeconds=1")[0] == 504
    with then.watching("get configmaps -w --output-watch-events") as process:
        server.create(where, {"metadata": {"name": "three"}})
        told = [line.split()[:2] for line in lines(process, 3)]
    assert told == [["EVENT", "NAME"], ["ADDED", "kube-root-ca.crt"], ["ADDED", "one"]]
    assert names(past, where) == listed
    assert then("get --raw /readyz") == "ok"
    assert '"gitVersion"' in then("get --raw /version")
    assert "configmaps" in then("api-resources")


def test_clients_cannot_write_to_the_past(
    past: HistoricalServer, kubectl: Kubectl, server: Server, tmp_path: Path
) -> None:
    then = Kubectl(find_kubectl(), past.kubeconfig, tmp_path, kubectl.namespace)
    reason = f"the cluster is served as it was at revision {past.revision} ("
    where = f"/api/v1/namespaces/{kubectl.namespace}/configmaps"
    for method, path, body in (
        ("POST", where, CONFIG_MAP),
        ("POST", f"{where}?dryRun=All", CONFIG_MAP),
        ("PUT", f"{where}/one", CONFIG_MAP),
        ("PATCH", f"{where}/one", {"data": {"a": "now"}}),
        ("DELETE", f"{where}/one", None),
        ("DELETE", where, None),
        ("POST", f"/api/v1/namespaces/{kubectl.namespace}/serviceaccounts/default/token", {}),
    ):
        assert reason in past.complaint(method, path, body)
    assert "is forbidden: User" in then.fails("apply -f -", CONFIG_MAP)
    assert reason in then.fails("delete configmap one")
    asked = then.run("auth can-i create pods")
    assert asked.code == 1
    assert asked.out.startswith(f"no - {reason}")
    assert then("auth can-i list pods").strip() == "yes"
    assert names(past, where)[1] == ["kube-root-ca.crt", "one"]
    assert names(server, where)[1] == ["kube-root-ca.crt", "two"]


def test_ages_are_computed_at_the_past_moment(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'incident.db'}"
    ctrlmgr("import", str(SMALL), "--database", url)
    past = HistoricalServer(tmp_path / "past", url, 772, "")
    try:
        past.start()
        then = Kubectl(find_kubectl(), past.kubeconfig, tmp_path)
        age = then("get namespace default --no-headers").split()[-1]
        assert re.fullmatch(r"\d+m(\d+s)?|\d+s", age), age  # it was recorded within minutes, and long ago
        checks = past.request("GET", "/ui/api/health")[1]["endpoints"]
        assert [each["problem"] for of in checks for each in of["checks"] if each["problem"]] == []
    finally:
        past.close()


def test_an_imported_recording_continues(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'incident.db'}"
    ctrlmgr("import", str(SMALL), "--database", url)
    server = Server(tmp_path, "--database", url)
    with server.running():
        made = server.create("/api/v1/namespaces/default/configmaps", CONFIG_MAP)
        assert int(made["metadata"]["resourceVersion"]) > 772
        assert "kube-node-lease" in names(server, "/api/v1/namespaces")[1]
        health = server.request("GET", "/ui/api/health")[1]
        assert [each["problem"] for of in health["endpoints"] for each in of["checks"] if each["problem"]] == []
        assert "problem" not in health["log"]
    assert "ok: " in ctrlmgr("verify", "--database", url)
    gaps = ctrlmgr("sql", "-c", "SELECT after_revision, last_revision FROM log_import", "-o", "csv", "--database", url)
    assert gaps.split()[1:] == ["0,772"]


def ctrlmgr(*arguments: str) -> str:
    """Run a command and return its output."""
    done = subprocess.run([sys.executable, "-m", "ctrlmgr", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def names(server: Server, path: str) -> tuple[str, list[str]]:
    """Return the resourceVersion and the items of a list."""
    code, listed = server.request("GET", path)
    assert code == 200, listed
    return listed["metadata"]["resourceVersion"], [item["metadata"]["name"] for item in listed["items"]]


def exactly(server: Server, path: str, revision: str) -> dict[str, Any]:
    """Return the objects of a list at exactly this resourceVersion, by name."""
    code, listed = server.request("GET", f"{path}?resourceVersion={revision}&resourceVersionMatch=Exact")
    assert (code, listed["metadata"]["resourceVersion"]) == (200, revision)
    return {item["metadata"]["name"]: item for item in listed["items"]}
