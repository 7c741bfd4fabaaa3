"""Creates the files that a joining kubelet needs: its KubeletConfiguration, and the kubeconfig for its first requests.

Source: kubeadm `app/componentconfigs/kubelet.go`, `app/util/kubeconfig`.
"""

from __future__ import annotations

import base64
from ipaddress import ip_network
from typing import Any, Final, NamedTuple

Fields = dict[str, Any]

CLUSTER: Final = "kubernetes"
_USER: Final = "kubelet-bootstrap"
_DNS: Final = 10
"""The position of the DNS Service's address in the range of Services, as in kubeadm."""


class JoinedCluster(NamedTuple):
    """The properties of a cluster that a joining node needs."""

    server: str
    """The URL at which the node can reach the API server."""
    authority: bytes
    """The certificate authority (PEM) that issued the server's certificate."""
    version: str
    """The version of Kubernetes, such as `v1.36.2`."""
    service_range: str
    """The CIDR from which Services get their addresses."""

    @property
    def entry(self) -> Fields:
        """Return the cluster's entry in a kubeconfig."""
        return {"server": self.server, "certificate-authority-data": base64.b64encode(self.authority).decode()}

    @property
    def dns(self) -> str:
        """Return the address of the cluster's DNS Service; the address is chosen in the same way as by kubeadm."""
        return str(ip_network(self.service_range)[_DNS])


def bootstrap_kubeconfig(cluster: JoinedCluster, token: str) -> Fields:
    """Return the kubeconfig with which a kubelet requests its first certificate."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": CLUSTER, "cluster": cluster.entry}],
        "users": [{"name": _USER, "user": {"token": token}}],
        "contexts": [{"name": CLUSTER, "context": {"cluster": CLUSTER, "user": _USER}}],
        "current-context": CLUSTER,
    }


def kubelet_configuration(cluster: JoinedCluster, client_ca: str, *, requests_serving: bool) -> Fields:
    """Return a KubeletConfiguration whose field `clientCAFile` is `client_ca`.

    If `requests_serving` is true, the kubelet requests its serving certificate from the cluster; otherwise the kubelet
    signs the certificate itself.
    """
    configuration: Fields = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": client_ca},
        },
        "authorization": {"mode": "Webhook"},
        "cgroupDriver": "systemd",
        "clusterDNS": [cluster.dns],
        "clusterDomain": "cluster.local",
        "rotateCertificates": True,
        "staticPodPath": "/etc/kubernetes/manifests",
    }
    return configuration | ({"serverTLSBootstrap": True} if requests_serving else {})
