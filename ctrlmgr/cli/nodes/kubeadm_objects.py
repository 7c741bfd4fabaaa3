"""Creates bootstrap tokens for nodes, and the objects that nodes read when they join, in the form of `kubeadm init`.

Guarantees: names, rules and subjects are the same as kubeadm's. `kubeadm join` and `kubeadm token` work with the
objects that this module creates.

Source: kubeadm `app/phases/{bootstraptoken,uploadconfig,kubelet}`, `app/apis/kubeadm/v1beta4`.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final
from urllib.parse import urlsplit

import yaml

from ctrlmgr.authentication import bootstrap_tokens
from ctrlmgr.cli.nodes.kubelet_files import CLUSTER, JoinedCluster, kubelet_configuration
from ctrlmgr.clock import format_time_seconds

Fields = dict[str, Any]

NODES: Final = "system:nodes"
JOINING: Final = "system:bootstrappers:kubeadm:default-node-token"
"""The group of the bootstrap tokens with which nodes join."""
CLIENT_CA: Final = "/etc/kubernetes/pki/ca.crt"
"""The path to which kubeadm writes the cluster's certificate authority on a node."""
INFO_PATH: Final = "/api/v1/namespaces/kube-public/configmaps/cluster-info"
SIGNATURE: Final = "jws-kubeconfig-"
_RBAC: Final = "rbac.authorization.k8s.io"
_APPROVED: Final = "system:certificates.k8s.io:certificatesigningrequests:"
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz0123456789"


def joining_objects(cluster: JoinedCluster, *, requests_serving: bool) -> list[Fields]:
    """Return the roles, bindings and ConfigMaps that `kubeadm init` creates, except `cluster-info`.

    See `kubelet_configuration`.
    """
    kubelet = kubelet_configuration(cluster, CLIENT_CA, requests_serving=requests_serving)
    return [
        _bound("kubeadm:kubelet-bootstrap", "system:node-bootstrapper", JOINING),
        _bound("kubeadm:node-autoapprove-bootstrap", f"{_APPROVED}nodeclient", JOINING),
        _bound("kubeadm:node-autoapprove-certificate-rotation", f"{_APPROVED}selfnodeclient", NODES),
        _role("kubeadm:get-nodes", "", "nodes"),
        _bound("kubeadm:get-nodes", "kubeadm:get-nodes", JOINING),
        *_readable("kubeadm:bootstrap-signer-clusterinfo", "kube-public", "cluster-info", _user("system:anonymous")),
        *_readable("kubeadm:nodes-kubeadm-config", "kube-system", "kubeadm-config", _group(JOINING), _group(NODES)),
        *_readable("kubeadm:kubelet-config", "kube-system", "kubelet-config", _group(NODES), _group(JOINING)),
        _config_map("kube-system", "kubeadm-config", ClusterConfiguration=_yaml(cluster_configuration(cluster))),
        _config_map("kube-system", "kubelet-config", kubelet=_yaml(kubelet)),
    ]


def cluster_configuration(cluster: JoinedCluster) -> Fields:
    """Return kubeadm's ClusterConfiguration."""
    return {
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "ClusterConfiguration",
        "certificatesDir": "/etc/kubernetes/pki",
        "clusterName": CLUSTER,
        "controlPlaneEndpoint": urlsplit(cluster.server).netloc,
        "kubernetesVersion": cluster.version,
        "networking": {"dnsDomain": "cluster.local", "serviceSubnet": cluster.service_range},
    }


def cluster_info(cluster: JoinedCluster) -> Fields:
    """Return the ConfigMap with which nodes verify the server if they have only a bootstrap token.

    A controller adds signatures to the ConfigMap `cluster-info`.
    """
    config = {"apiVersion": "v1", "kind": "Config", "clusters": [{"name": "", "cluster": cluster.entry}]}
    return _config_map("kube-public", "cluster-info", kubeconfig=_yaml(config))


def new_token(random: Random) -> str:
    """Return a new bootstrap token."""
    return f"{_letters(random, 6)}.{_letters(random, 16)}"


def token_secret(token: str, node: str, expires: int) -> Fields:
    """Return the Secret with a bootstrap token for a node, valid until `expires` (microseconds since 1970)."""
    token_id, _, secret = token.partition(".")
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": f"{bootstrap_tokens.NAME_PREFIX}{token_id}",
            "namespace": bootstrap_tokens.NAMESPACE,
        },
        "type": bootstrap_tokens.TYPE,
        "stringData": {
            "description": f"lets the node {node} join",
            "token-id": token_id,
            "token-secret": secret,
            "expiration": format_time_seconds(expires),
            bootstrap_tokens.USED_FOR_AUTHENTICATION: "true",
            bootstrap_tokens.USED_FOR_SIGNING: "true",
            "auth-extra-groups": JOINING,
        },
    }


def _letters(random: Random, count: int) -> str:
    return "".join(random.choice(_LETTERS) for _ in range(count))


def _readable(name: str, namespace: str, config_map: str, *subjects: Fields) -> tuple[Fields, Fields]:
    """Return a role that may read a ConfigMap, and its binding."""
    reference = {"apiGroup": _RBAC, "kind": "Role", "name": name}
    binding = {**_head("RoleBinding", name, namespace), "roleRef": reference, "subjects": list(subjects)}
    return _role(name, namespace, "configmaps", config_map), binding


def _role(name: str, namespace: str, resource: str, *names: str) -> Fields:
    rule: Fields = {"verbs": ["get"], "apiGroups": [""], "resources": [resource]}
    if names:
        rule["resourceNames"] = list(names)
    return {**_head("Role" if namespace else "ClusterRole", name, namespace), "rules": [rule]}


def _bound(name: str, role: str, group: str) -> Fields:
    reference = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role}
    return {**_head("ClusterRoleBinding", name), "roleRef": reference, "subjects": [_group(group)]}


def _head(kind: str, name: str, namespace: str = "") -> Fields:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": f"{_RBAC}/v1", "kind": kind, "metadata": metadata}


def _group(name: str) -> Fields:
    return {"apiGroup": _RBAC, "kind": "Group", "name": name}


def _user(name: str) -> Fields:
    return {"apiGroup": _RBAC, "kind": "User", "name": name}


def _config_map(namespace: str, name: str, **data: str) -> Fields:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": data,
    }


def _yaml(fields: Fields) -> str:
    text: str = yaml.safe_dump(fields, sort_keys=False)
    return text
