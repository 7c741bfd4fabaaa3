"""Tests of many clusters in one process: `serve --clusters`, `ctrlmgr cluster`, kubectl and the Python client."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
import yaml
from kubernetes import client, config
from kubernetes import watch as watches

from ctrlmgr import cli
from ctrlmgr.testing.cluster_host import ClusterHost, HostedCluster, RequestRefused
from ctrlmgr.testing.served import ServerProcess
from tests.e2e.kubectl import Kubectl, find_kubectl
from tests.e2e.serving import until

PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterHost]:
    folder = tmp_path_factory.mktemp("host")
    with ServerProcess(folder, "--clusters", str(folder / "clusters"), "--nodes", "1") as server:
        yield ClusterHost(server, folder)


@pytest.fixture
def cluster(host: ClusterHost) -> Iterator[HostedCluster]:
    with host.cluster() as cluster:
        yield cluster


@pytest.fixture
def other(host: ClusterHost) -> Iterator[HostedCluster]:
    with host.cluster() as cluster:
        yield cluster


@pytest.fixture
def kubectl(cluster: HostedCluster, tmp_path: Path) -> Kubectl:
    return Kubectl(find_kubectl(), cluster.kubeconfig, tmp_path)


def names(found: Any) -> list[str]:
    return [each["metadata"]["name"] for each in found["items"]]


def config_map(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}}


def refused(call: Callable[[], object]) -> int:
    with pytest.raises(RequestRefused) as refusal:
        call()
    return refusal.value.code


def test_a_cluster_has_its_own_objects_and_controllers(cluster: HostedCluster, other: HostedCluster) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    cluster.request("POST", path, config_map("mine"))
    assert "mine" in names(cluster.request("GET", path))
    assert "mine" not in names(other.request("GET", path))
    assert set(names(cluster.request("GET", "/api/v1/namespaces"))) == {
        "default",
        "kube-node-lease",
        "kube-public",
        "kube-system",
    }
    pod = {"spec": {"containers": [{"name": "c", "image": "i"}]}, "metadata": {"labels": {"app": "web"}}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": pod}
    cluster.request("POST", "/apis/apps/v1/namespaces/default/deployments", {**config_map("web"), "spec": spec})
    until(lambda: [each["status"]["phase"] for each in cluster.request("GET", PODS)["items"]] == ["Running", "Running"])
    assert names(other.request("GET", PODS)) == []


def test_each_cluster_has_its_own_identity(cluster: HostedCluster, other: HostedCluster) -> None:
    uid = [each.request("GET", "/api/v1/namespaces/kube-system")["metadata"]["uid"] for each in (cluster, other)]
    assert uid[0] != uid[1]
    root = cluster.request("GET", "/")["paths"]
    assert "/clusters" not in root


def test_no_credential_is_valid_in_another_cluster(
    host: ClusterHost, cluster: HostedCluster, other: HostedCluster
) -> None:
    until(lambda: names(cluster.request("GET", "/api/v1/namespaces/default/serviceaccounts")) == ["default"])
    review = "/api/v1/namespaces/default/serviceaccounts/default/token"
    account = cluster.request("POST", review, {"spec": {}})["status"]["token"]
    elsewhere = f"/clusters/{other.name}/api"
    for token in (cluster.token, account, host.server.token):
        assert refused(lambda token=token: host.request("GET", elsewhere, token=token)) == 401  # type: ignore[misc]  # mypy cannot infer the type of a lambda with a default
    for path in ("/api", "/clusters", f"/clusters/{other.name}"):
        assert refused(lambda path=path: host.request("GET", path, token=cluster.token)) == 401  # type: ignore[misc]  # as above
    assert host.request("GET", f"/clusters/{cluster.name}/api", token=account)["kind"] == "APIVersions"


def test_a_cluster_does_not_show_the_work_of_others(host: ClusterHost, cluster: HostedCluster) -> None:
    for path in ("/debug/profile", "/debug/threads"):
        assert refused(lambda path=path: cluster.request("GET", path)) == 404  # type: ignore[misc]  # mypy cannot infer the type of a lambda with a default
    request = Request(f"{cluster.url}/metrics", headers={"Authorization": f"Bearer {cluster.token}"})
    with urlopen(request, timeout=30, context=host.server.trust) as answer:
        assert answer.read() == b""


def test_kubectl_uses_a_cluster_under_its_path(kubectl: Kubectl, cluster: HostedCluster) -> None:
    assert kubectl("create configmap settings --from-literal=a=b") == "configmap/settings created\n"
    assert kubectl("get configmaps -o name") == "configmap/kube-root-ca.crt\nconfigmap/settings\n"
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "shops.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": "Shop", "plural": "shops"},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {"spec": {"type": "string", "description": "The address."}},
                        }
                    },
                }
            ],
        },
    }
    kubectl("apply -f -", definition)
    kubectl("wait --for=condition=Established crd/shops.example.com")
    kubectl("apply -f -", {"apiVersion": "example.com/v1", "kind": "Shop", **config_map("corner"), "spec": "Main St"})
    assert kubectl("get shops -o jsonpath={.items[*].spec}") == "Main St"
    assert "The address." in kubectl("explain shop.spec")
    index = cluster.request("GET", "/openapi/v3")["paths"]
    assert index["api/v1"]["serverRelativeURL"].startswith(f"/clusters/{cluster.name}/openapi/v3/api/v1?hash=")
    assert kubectl("auth can-i create pods") == "yes\n"


def test_the_python_client_lists_and_watches(cluster: HostedCluster) -> None:
    connection = config.new_client_from_config(str(cluster.kubeconfig))  # type: ignore[no-untyped-call]  # the client has no types
    api: Any = client.CoreV1Api(connection)
    api.create_namespaced_config_map("default", {"metadata": {"name": "first"}})
    watch: Any = watches.Watch()  # type: ignore[no-untyped-call]  # the client has no types
    for event in watch.stream(api.list_namespaced_config_map, "default", timeout_seconds=20):
        if event["object"].metadata.name == "first":
            watch.stop()
    assert event["type"] == "ADDED"


def test_a_deleted_cluster_is_empty_when_its_name_comes_back(host: ClusterHost) -> None:
    first = host.create("again")
    first.request("POST", "/api/v1/namespaces", config_map("shop"))
    host.delete("again")
    assert refused(lambda: host.request("GET", "/clusters/again")) == 404
    assert refused(lambda: host.request("POST", "/clusters", {"name": "Again!"})) == 400
    second = host.create("again")
    assert refused(lambda: host.create("again")) == 409
    assert "shop" not in names(second.request("GET", "/api/v1/namespaces"))
    assert refused(lambda: first.request("GET", "/api")) == 401
    host.delete("again")


def test_a_fork_has_the_objects_and_continues_alone(host: ClusterHost, cluster: HostedCluster) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    cluster.request("POST", path, config_map("first"))
    revision = cluster.request("GET", path)["metadata"]["resourceVersion"]
    cluster.request("POST", path, config_map("second"))
    newest, earlier = host.fork(cluster.name), host.fork(cluster.name, at=revision)
    newest.request("POST", path, config_map("third"))
    assert {"first", "second", "third"} <= set(names(newest.request("GET", path)))
    assert {"first", "second", "third"} & set(names(earlier.request("GET", path))) == {"first"}
    assert "third" not in names(cluster.request("GET", path))
    again = host.fork(newest.name)
    assert {"first", "second", "third"} <= set(names(again.request("GET", path)))
    token = cluster.token
    assert refused(lambda: host.request("GET", f"/clusters/{newest.name}/api", token=token)) == 401
    assert refused(lambda: host.fork("none")) == 404
    assert refused(lambda: host.fork(cluster.name, at="1000000")) == 400
    assert refused(lambda: host.request("POST", "/clusters", {"name": "a", "at": "1"})) == 400
    assert set(host.names()) == {each.name for each in (cluster, newest, earlier, again)}
    for each in (newest, earlier, again):
        host.delete(each.name)


def test_a_killed_server_serves_its_clusters_again(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path, "--clusters", str(tmp_path / "clusters"))
    with server:
        before = ClusterHost(server, tmp_path).create("kept")
        before.request("POST", "/api/v1/namespaces", config_map("shop"))
        assert server._process is not None
        server._process.kill()
    with server:
        host = ClusterHost(server, tmp_path)
        assert host.request("GET", "/clusters")["clusters"] == [
            {"name": "kept", "server": f"{server.url}/clusters/kept", "state": "asleep"}
        ]
        found = host.request("GET", "/clusters/kept/api/v1/namespaces", token=before.token)
        assert "shop" in names(found)
        kubeconfig = yaml.safe_load(host.request("GET", "/clusters/kept")["kubeconfig"])
        assert kubeconfig["clusters"][0]["cluster"]["server"] == f"{server.url}/clusters/kept"
        assert host.request("GET", "/clusters")["clusters"][0]["state"] == "awake"


def test_the_command_creates_lists_and_deletes(
    host: ClusterHost, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = ["--kubeconfig", str(host.server.kubeconfig)]
    file = tmp_path / "shop.yaml"
    assert cli.run(["cluster", "create", "shop", *server, "--output", str(file)]) == 0
    assert capsys.readouterr().out == f"{host.server.url}/clusters/shop\n"
    assert cli.run(["cluster", "list", *server]) == 0
    assert capsys.readouterr().out.split() == ["shop", "awake", f"{host.server.url}/clusters/shop"]
    assert cli.run(["cluster", "kubeconfig", "shop", *server]) == 0
    assert yaml.safe_load(capsys.readouterr().out)["users"] == yaml.safe_load(file.read_text())["users"]
    assert cli.run(["cluster", "fork", "shop", "copy", *server, "-o", str(file)]) == 0
    assert capsys.readouterr().out == f"{host.server.url}/clusters/copy\n"
    assert yaml.safe_load(file.read_text())["clusters"][0]["cluster"]["server"] == f"{host.server.url}/clusters/copy"
    assert cli.run(["cluster", "delete", "copy", *server]) == 0
    assert capsys.readouterr().out == "cluster copy is deleted\n"
    assert cli.run(["cluster", "create", "shop", *server]) == 1
    assert capsys.readouterr().err == 'error: /clusters: clusters "shop" already exists\n'
    assert cli.run(["cluster", "delete", "shop", *server]) == 0
    assert capsys.readouterr().out == "cluster shop is deleted\n"
    assert cli.run(["cluster", "list", *server]) == 0
    assert capsys.readouterr().out == ""


def test_a_user_needs_the_right_to_create_clusters(host: ClusterHost) -> None:
    path = "/api/v1/namespaces/default/serviceaccounts"
    host.request("POST", path, config_map("teacher"))
    token = host.request("POST", f"{path}/teacher/token", {"spec": {}})["status"]["token"]
    assert refused(lambda: host.request("POST", "/clusters", {"name": "class"}, token=token)) == 403
    rules = [{"nonResourceURLs": ["/clusters", "/clusters/*"], "verbs": ["get", "post", "delete"]}]
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    host.request("POST", f"{rbac}/clusterroles", {**config_map("teacher"), "rules": rules})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "teacher"}
    subject = {"kind": "ServiceAccount", "name": "teacher", "namespace": "default"}
    binding = {**config_map("teacher"), "roleRef": role, "subjects": [subject]}
    host.request("POST", f"{rbac}/clusterrolebindings", binding)
    assert host.request("POST", "/clusters", {"name": "class"}, token=token)["name"] == "class"
    assert host.request("DELETE", "/clusters/class", token=token) == {"name": "class"}


def test_an_unused_cluster_sleeps_and_keeps_its_state(tmp_path: Path) -> None:
    flags = ("--clusters", str(tmp_path / "clusters"), "--clusters-sleep-after", "1s")
    with ServerProcess(tmp_path, *flags) as server:
        host = ClusterHost(server, tmp_path)
        cluster = host.create()
        cluster.request("POST", "/api/v1/namespaces", config_map("shop"))
        until(lambda: host.request("GET", "/clusters")["clusters"][0]["state"] == "asleep")
        assert not [*(tmp_path / "clusters" / cluster.name).glob("*.db-wal")]
        assert "shop" in names(cluster.request("GET", "/api/v1/namespaces"))
        assert host.names() == [cluster.name]
