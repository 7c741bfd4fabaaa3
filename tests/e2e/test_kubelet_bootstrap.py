"""How a kubelet joins, played by a script over real TLS, step by step as the kubelet of Kubernetes does it.

A bootstrap token → the authority out of `cluster-info`, whose signature is verified → a certificate → the next one.
"""

from __future__ import annotations

import base64
import hmac
import http.client
import json
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.e2e.serving import DEADLINE, Server, until

TOKEN_ID, TOKEN_SECRET = "abcdef", "0123456789abcdef"
TOKEN = f"{TOKEN_ID}.{TOKEN_SECRET}"
GROUP = "system:bootstrappers:kubeadm:default-node-token"
CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
CLUSTER_INFO = "/api/v1/namespaces/kube-public/configmaps/cluster-info"
WHO_AM_I = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
RBAC = "/apis/rbac.authorization.k8s.io/v1"

SETUP: list[tuple[str, dict[str, Any]]] = [
    (
        f"{RBAC}/clusterrolebindings",
        {
            "metadata": {"name": f"bootstrap-{number}"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": group}],
        },
    )
    for number, (role, group) in enumerate(
        [
            ("system:node-bootstrapper", GROUP),
            ("system:certificates.k8s.io:certificatesigningrequests:nodeclient", GROUP),
            ("system:certificates.k8s.io:certificatesigningrequests:selfnodeclient", "system:nodes"),
        ]
    )
]
SETUP += [
    (
        f"{RBAC}/namespaces/kube-public/roles",
        {
            "metadata": {"name": "info"},
            "rules": [
                {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["cluster-info"], "verbs": ["get"]}
            ],
        },
    ),
    (
        f"{RBAC}/namespaces/kube-public/rolebindings",
        {
            "metadata": {"name": "info"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "info"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "system:anonymous"}],
        },
    ),
    (
        "/api/v1/namespaces/kube-system/secrets",
        {
            "metadata": {"name": f"bootstrap-token-{TOKEN_ID}"},
            "type": "bootstrap.kubernetes.io/token",
            "stringData": {
                "token-id": TOKEN_ID,
                "token-secret": TOKEN_SECRET,
                "usage-bootstrap-authentication": "true",
                "usage-bootstrap-signing": "true",
                "auth-extra-groups": GROUP,
            },
        },
    ),
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server as kubeadm would leave it for its first node."""
    controllers = "*,bootstrap-signer-controller,token-cleaner-controller"
    flags = ("--enable-bootstrap-token-auth", "true", "--controllers", controllers)
    server = Server(tmp_path_factory.mktemp("cluster"), *flags)
    server.start()
    try:
        until(lambda: server.request("GET", "/api/v1/namespaces/kube-public")[0] == 200)
        for path, body in SETUP:
            code, answer = server.request("POST", path, body)
            assert code == 201, answer
        config = yaml.safe_load(server.kubeconfig.read_text())["clusters"][0]["cluster"]
        kubeconfig = json.dumps({"kind": "Config", "apiVersion": "v1", "clusters": [{"name": "", "cluster": config}]})
        body = {"metadata": {"name": "cluster-info"}, "data": {"kubeconfig": kubeconfig}}
        code, answer = server.request("POST", "/api/v1/namespaces/kube-public/configmaps", body)
        assert code == 201, answer
        yield server
        server.stop()
    finally:
        server.close()


class Kubelet:
    """The client side: what a kubelet knows, and asks."""

    def __init__(self, folder: Path, url: str, name: str) -> None:
        self.name = name
        self._folder = folder
        self._url = url
        self._trust = ssl._create_unverified_context()  # nothing is known yet that could be trusted
        self._token = ""

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Send a request and return the code and the answer."""
        connection = http.client.HTTPSConnection(urlsplit(self._url).netloc, context=self._trust, timeout=DEADLINE)
        headers = {"Content-Type": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def discover(self, token: str) -> None:
        """Learn whom to trust from a ConfigMap that anybody may read and only who knows the token can sign."""
        key = f"jws-kubeconfig-{TOKEN_ID}"
        until(lambda: key in self.ask("GET", CLUSTER_INFO)[1].get("data", {}))
        data = self.ask("GET", CLUSTER_INFO)[1]["data"]
        header, detached, signature = data[key].split(".")
        assert detached == ""
        payload = base64.urlsafe_b64encode(data["kubeconfig"].encode()).rstrip(b"=").decode()
        signed = hmac.digest(TOKEN_SECRET.encode(), f"{header}.{payload}".encode(), "sha256")
        assert base64.urlsafe_b64encode(signed).rstrip(b"=").decode() == signature
        assert json.loads(base64.urlsafe_b64decode(header + "==")) == {"alg": "HS256", "kid": TOKEN_ID}
        cluster = json.loads(data["kubeconfig"])["clusters"][0]["cluster"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self._url, self._trust = cluster["server"], ssl.create_default_context(cadata=authority)
        self._authority, self._token = authority, token

    def request(self, request_name: str, node: str) -> ec.EllipticCurvePrivateKey:
        """Ask for the client certificate of a node; returns the key that it will be for."""
        key = ec.generate_private_key(ec.SECP256R1())
        parts = [(NameOID.ORGANIZATION_NAME, "system:nodes"), (NameOID.COMMON_NAME, f"system:node:{node}")]
        subject = x509.Name([x509.NameAttribute(*part) for part in parts])
        request = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
        spec = {
            "request": base64.b64encode(request.public_bytes(serialization.Encoding.PEM)).decode(),
            "signerName": "kubernetes.io/kube-apiserver-client-kubelet",
            "usages": ["digital signature", "client auth"],
        }
        code, answer = self.ask("POST", CSRS, {"metadata": {"name": request_name}, "spec": spec})
        assert code == 201, answer
        return key

    def certify(self, request_name: str) -> x509.Certificate:
        """Ask for a client certificate of its own, wait for it, and go by it from now on."""
        key, path = self.request(request_name, self.name), f"{CSRS}/{request_name}"
        until(lambda: self.ask("GET", path)[1].get("status", {}).get("certificate"))
        status = self.ask("GET", path)[1]["status"]
        assert [condition["type"] for condition in status["conditions"]] == ["Approved"]
        pem = base64.b64decode(status["certificate"])
        self._present(pem, key)
        return x509.load_pem_x509_certificate(pem)

    def _present(self, certificate: bytes, key: ec.EllipticCurvePrivateKey) -> None:
        encoding = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        file = self._folder / "kubelet-client-current.pem"
        file.write_bytes(certificate + key.private_bytes(*encoding))
        self._trust = ssl.create_default_context(cadata=self._authority)
        self._trust.load_cert_chain(file)
        self._token = ""

    def who(self) -> Any:
        """Return what the server takes the sender for."""
        return self.ask("POST", WHO_AM_I, {})[1]["status"]["userInfo"]


def test_a_kubelet_joins_and_renews_its_certificate(cluster: Server, tmp_path: Path) -> None:
    kubelet = Kubelet(tmp_path, cluster.url, "worker-1")
    kubelet.discover(TOKEN)
    assert kubelet.who()["username"] == f"system:bootstrap:{TOKEN_ID}"
    assert GROUP in kubelet.who()["groups"]
    assert kubelet.ask("GET", "/api/v1/nodes")[0] == 403

    first = kubelet.certify("csr-first")
    assert kubelet.who()["username"] == "system:node:worker-1"
    assert "system:nodes" in kubelet.who()["groups"]
    code, answer = kubelet.ask("POST", "/api/v1/nodes", {"metadata": {"name": "worker-1"}})
    assert code == 201, answer
    assert kubelet.ask("GET", "/api/v1/namespaces/kube-system/secrets")[0] == 403

    second = kubelet.certify("csr-second")
    assert second.serial_number != first.serial_number
    assert second.subject == first.subject
    assert kubelet.who()["username"] == "system:node:worker-1"
    assert kubelet.ask("GET", "/api/v1/nodes/worker-1")[0] == 200


def test_a_token_that_is_gone_lets_nobody_join(cluster: Server, tmp_path: Path) -> None:
    kubelet = Kubelet(tmp_path, cluster.url, "worker-3")
    kubelet.discover(TOKEN)
    path = f"/api/v1/namespaces/kube-system/secrets/bootstrap-token-{TOKEN_ID}"
    secret = cluster.request("GET", path)[1]
    assert cluster.request("DELETE", path)[0] == 200
    assert kubelet.ask("POST", WHO_AM_I, {})[0] == 401
    until(lambda: f"jws-kubeconfig-{TOKEN_ID}" not in cluster.request("GET", CLUSTER_INFO)[1]["data"])
    for field in ("resourceVersion", "uid", "creationTimestamp"):
        del secret["metadata"][field]
    assert cluster.request("POST", path.rpartition("/")[0], secret)[0] == 201
    assert kubelet.ask("POST", WHO_AM_I, {})[0] == 201


def test_another_nodes_certificate_is_not_approved(cluster: Server, tmp_path: Path) -> None:
    """A request of one node in another's name is left to administrators: no controller approves it."""
    kubelet = Kubelet(tmp_path, cluster.url, "worker-4")
    kubelet.discover(TOKEN)
    kubelet.certify("csr-fourth")
    kubelet.request("csr-stolen", "worker-1")
    kubelet.certify("csr-later")  # by now the one before has been looked at
    assert cluster.request("GET", f"{CSRS}/csr-stolen")[1].get("status", {}) == {}
