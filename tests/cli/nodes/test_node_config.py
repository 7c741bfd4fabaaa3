"""Tests of `ctrlmgr node-config`: the objects that it creates, and invalid options.

Joining a node is tested with a real server in `tests/e2e`.
"""

from __future__ import annotations

import base64
import random

import pytest
import yaml

from ctrlmgr.cli.nodes.kubeadm_objects import cluster_info, joining_objects, new_token, token_secret
from ctrlmgr.cli.nodes.kubelet_files import JoinedCluster
from tests.cli.conftest import Run
from tests.e2e.serving import Server

CLUSTER = JoinedCluster("https://192.0.2.10:6443", b"a certificate", "v1.36.2", "10.96.0.0/16")


def test_node_config_creates_the_objects_of_kubeadm() -> None:
    objects = joining_objects(CLUSTER, requests_serving=False)
    assert {f"{each['kind']} {each['metadata']['name']}" for each in objects} == {
        "ClusterRole kubeadm:get-nodes",
        "ClusterRoleBinding kubeadm:get-nodes",
        "ClusterRoleBinding kubeadm:kubelet-bootstrap",
        "ClusterRoleBinding kubeadm:node-autoapprove-bootstrap",
        "ClusterRoleBinding kubeadm:node-autoapprove-certificate-rotation",
        "ConfigMap kubeadm-config",
        "ConfigMap kubelet-config",
        "Role kubeadm:bootstrap-signer-clusterinfo",
        "Role kubeadm:kubelet-config",
        "Role kubeadm:nodes-kubeadm-config",
        "RoleBinding kubeadm:bootstrap-signer-clusterinfo",
        "RoleBinding kubeadm:kubelet-config",
        "RoleBinding kubeadm:nodes-kubeadm-config",
    }
    kubelet = next(each for each in objects if each["metadata"]["name"] == "kubelet-config" and "data" in each)
    configuration = yaml.safe_load(kubelet["data"]["kubelet"])
    assert configuration["clusterDNS"] == ["10.96.0.10"]
    assert configuration["authentication"]["x509"] == {"clientCAFile": "/etc/kubernetes/pki/ca.crt"}
    assert "serverTLSBootstrap" not in configuration


def test_cluster_info_has_the_server_and_no_credentials() -> None:
    config = yaml.safe_load(cluster_info(CLUSTER)["data"]["kubeconfig"])
    (entry,) = config["clusters"]
    assert entry["name"] == ""
    assert entry["cluster"]["server"] == CLUSTER.server
    assert base64.b64decode(entry["cluster"]["certificate-authority-data"]) == CLUSTER.authority
    assert "users" not in config


def test_a_token_is_valid_until_it_expires() -> None:
    token = new_token(random.Random(1))
    assert [len(part) for part in token.split(".")] == [6, 16]
    secret = token_secret(token, "worker-1", 1_767_323_045_000_000)
    assert secret["metadata"]["name"] == f"bootstrap-token-{token[:6]}"
    assert secret["stringData"]["expiration"] == "2026-01-02T03:04:05Z"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["Worker_1"], "'Worker_1' is not a node's name"),
        (["worker-1", "--kubeconfig", "/nonexistent"], "there is no kubeconfig at /nonexistent"),
    ],
)
def test_wrong_usage_is_reported(run: Run, arguments: list[str], told: str) -> None:
    done = run("node-config", *arguments)
    assert done.code == 2
    assert told in done.err


def test_a_server_without_bootstrap_tokens_is_reported(run: Run, tmp_path_factory: pytest.TempPathFactory) -> None:
    server = Server(tmp_path_factory.mktemp("server"), "--database", "memory:", "--api-only")
    with server.running():
        done = run("node-config", "worker-1", "--kubeconfig", str(server.kubeconfig))
        assert done.code == 2
        assert "start it with --enable-bootstrap-token-auth" in done.err
        done = run("node-config", "worker-1", "--kubeconfig", str(server.kubeconfig), "--server", "192.0.2.1")
        assert (done.code, "it must be a URL" in done.err) == (2, True)
