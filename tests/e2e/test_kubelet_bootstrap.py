"""Tests of joining a node: a script sends the same requests as Kubernetes' kubelet over real TLS, in the same order.

The steps are: get a bootstrap token, verify the signature of `cluster-info` and read the authority from it, get a
client certificate, and renew this certificate.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import json
import ssl
import subprocess
import sys
from collections.abc import Iterator, Sequence
from ipaddress import ip_address
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

GROUP = "system:bootstrappers:kubeadm:default-node-token"
CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
CLUSTER_INFO = "/api/v1/namespaces/kube-public/configmaps/cluster-info"
CONFIG_MAPS = "/api/v1/namespaces/kube-system/configmaps"
WHO_AM_I = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
CLIENT = "kubernetes.io/kube-apiserver-client-kubelet", ("digital signature", "client auth")
SERVING = "kubernetes.io/kubelet-serving", ("digital signature", "server auth")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with the controllers that are needed to join nodes."""
    controllers = "*,bootstrap-signer-controller,token-cleaner-controller,kubelet-serving-approving-controller"
    flags = ("--enable-bootstrap-token-auth", "true", "--controllers", controllers)
    server = Server(tmp_path_factory.mktemp("cluster"), *flags)
    with server.running():
        yield server


def node_config(cluster: Server, *arguments: str) -> str:
    """Return the output of `ctrlmgr node-config`."""
    command = [sys.executable, "-m", "ctrlmgr", "node-config", "--kubeconfig", str(cluster.kubeconfig), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def token(cluster: Server) -> str:
    """A bootstrap token for nodes, from the first call of `ctrlmgr node-config`."""
    files = json.loads(node_config(cluster, "worker-1", "-o", "json"))
    assert files["kubeletConfiguration"]["clusterDNS"] == ["10.96.0.10"]
    return str(files["bootstrapKubeconfig"]["users"][0]["user"]["token"])


class Kubelet:
    """The client side of a kubelet, with its credentials."""

    def __init__(self, folder: Path, url: str, name: str) -> None:
        self.name = name
        self._folder = folder
        self._url = url
        self._trust = ssl._create_unverified_context()  # the server cannot be verified yet
        self._token = ""

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Send a request, and return the status code and the body of the response."""
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
        """Read the certificate authority from a ConfigMap that any client may read, and verify its signature with the
        token.
        """
        token_id, _, secret = token.partition(".")
        key = f"jws-kubeconfig-{token_id}"
        until(lambda: key in self.ask("GET", CLUSTER_INFO)[1].get("data", {}))
        data = self.ask("GET", CLUSTER_INFO)[1]["data"]
        header, detached, signature = data[key].split(".")
        assert detached == ""
        payload = base64.urlsafe_b64encode(data["kubeconfig"].encode()).rstrip(b"=").decode()
        signed = hmac.digest(secret.encode(), f"{header}.{payload}".encode(), "sha256")
        assert base64.urlsafe_b64encode(signed).rstrip(b"=").decode() == signature
        assert json.loads(base64.urlsafe_b64decode(header + "==")) == {"alg": "HS256", "kid": token_id}
        cluster = yaml.safe_load(data["kubeconfig"])["clusters"][0]["cluster"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self._url, self._trust = cluster["server"], ssl.create_default_context(cadata=authority)
        self._authority, self._token = authority, token

    def request(
        self, request_name: str, node: str, kind: tuple[str, Sequence[str]] = CLIENT, *names: x509.GeneralName
    ) -> ec.EllipticCurvePrivateKey:
        """Request a certificate for a node, by default a client certificate; return the certificate's private key."""
        key = ec.generate_private_key(ec.SECP256R1())
        parts = [(NameOID.ORGANIZATION_NAME, "system:nodes"), (NameOID.COMMON_NAME, f"system:node:{node}")]
        subject = x509.Name([x509.NameAttribute(*part) for part in parts])
        builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        request = builder.sign(key, hashes.SHA256())
        spec = {
            "request": base64.b64encode(request.public_bytes(serialization.Encoding.PEM)).decode(),
            "signerName": kind[0],
            "usages": kind[1],
        }
        code, answer = self.ask("POST", CSRS, {"metadata": {"name": request_name}, "spec": spec})
        assert code == 201, answer
        return key

    def certify(self, request_name: str) -> x509.Certificate:
        """Request a client certificate, wait for the certificate, and use it for all later requests."""
        key = self.request(request_name, self.name)
        pem = self.issued(request_name)
        self._present(pem, key)
        return x509.load_pem_x509_certificate(pem)

    def issued(self, request_name: str) -> bytes:
        """Wait for a certificate that controllers sign without an administrator's approval, and return it."""
        path = f"{CSRS}/{request_name}"
        until(lambda: self.ask("GET", path)[1].get("status", {}).get("certificate"))
        status = self.ask("GET", path)[1]["status"]
        assert [condition["type"] for condition in status["conditions"]] == ["Approved"]
        return base64.b64decode(status["certificate"])

    def _present(self, certificate: bytes, key: ec.EllipticCurvePrivateKey) -> None:
        encoding = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        file = self._folder / "kubelet-client-current.pem"
        file.write_bytes(certificate + key.private_bytes(*encoding))
        self._trust = ssl.create_default_context(cadata=self._authority)
        self._trust.load_cert_chain(file)
        self._token = ""

    def who(self) -> Any:
        """Return the user that the server reports for the client."""
        return self.ask("POST", WHO_AM_I, {})[1]["status"]["userInfo"]


def test_a_kubelet_joins_and_renews_its_certificate(cluster: Server, token: str, tmp_path: Path) -> None:
    kubelet = Kubelet(tmp_path, cluster.url, "worker-1")
    kubelet.discover(token)
    assert kubelet.who()["username"] == f"system:bootstrap:{token.partition('.')[0]}"
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


def test_a_deleted_token_does_not_authenticate_a_join(cluster: Server, tmp_path: Path) -> None:
    kubelet = Kubelet(tmp_path, cluster.url, "worker-3")
    token = json.loads(node_config(cluster, "worker-3", "-o", "json"))["bootstrapKubeconfig"]["users"][0]["user"][
        "token"
    ]
    token_id = token.partition(".")[0]
    kubelet.discover(token)
    path = f"/api/v1/namespaces/kube-system/secrets/bootstrap-token-{token_id}"
    secret = cluster.request("GET", path)[1]
    assert cluster.request("DELETE", path)[0] == 200
    assert kubelet.ask("POST", WHO_AM_I, {})[0] == 401
    until(lambda: f"jws-kubeconfig-{token_id}" not in cluster.request("GET", CLUSTER_INFO)[1]["data"])
    for field in ("resourceVersion", "uid", "creationTimestamp"):
        del secret["metadata"][field]
    assert cluster.request("POST", path.rpartition("/")[0], secret)[0] == 201
    assert kubelet.ask("POST", WHO_AM_I, {})[0] == 201


def test_another_nodes_certificate_is_not_approved(cluster: Server, token: str, tmp_path: Path) -> None:
    """If a node requests a certificate in the name of another node, no controller approves the request."""
    kubelet = Kubelet(tmp_path, cluster.url, "worker-4")
    kubelet.discover(token)
    kubelet.certify("csr-fourth")
    kubelet.request("csr-stolen", "worker-1")
    kubelet.certify("csr-later")  # by now the controller has processed the previous request
    assert cluster.request("GET", f"{CSRS}/csr-stolen")[1].get("status", {}) == {}


def test_a_kubelets_serving_certificate_is_approved(cluster: Server, token: str, tmp_path: Path) -> None:
    kubelet = Kubelet(tmp_path, cluster.url, "worker-5")
    kubelet.discover(token)
    kubelet.certify("csr-fifth")
    addresses = [{"type": "InternalIP", "address": "192.0.2.5"}, {"type": "Hostname", "address": "worker-5"}]
    fields = {"metadata": {"name": "worker-5"}, "status": {"addresses": addresses}}
    assert kubelet.ask("POST", "/api/v1/nodes", fields)[0] == 201
    names = [x509.DNSName("worker-5"), x509.IPAddress(ip_address("192.0.2.5"))]
    kubelet.request("csr-too-much", "worker-5", SERVING, *names, x509.DNSName("kubernetes"))
    kubelet.request("csr-serving", "worker-5", SERVING, *names)
    certificate = x509.load_pem_x509_certificate(kubelet.issued("csr-serving"))
    assert list(certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value) == names
    assert cluster.request("GET", f"{CSRS}/csr-too-much")[1].get("status", {}) == {}


def test_kubeadm_finds_the_configuration_with_a_token(cluster: Server, token: str, tmp_path: Path) -> None:
    kubelet = Kubelet(tmp_path, cluster.url, "worker-6")
    kubelet.discover(token)
    assert kubelet.ask("GET", "/api/v1/nodes/worker-6")[0] == 404  # and not 403: kubeadm requires a new name
    for name, key in (("kubeadm-config", "ClusterConfiguration"), ("kubelet-config", "kubelet")):
        code, found = kubelet.ask("GET", f"{CONFIG_MAPS}/{name}")
        assert (code, yaml.safe_load(found["data"][key])["apiVersion"].partition(".")[0]) == (
            200,
            name.partition("-")[0],
        )
    assert kubelet.ask("GET", CONFIG_MAPS)[0] == 403


def test_the_join_command_pins_the_authority(cluster: Server) -> None:
    words = node_config(cluster, "worker-7", "-o", "kubeadm", "--server", "https://192.0.2.1:6443").split()
    assert words[:5] == ["kubeadm", "join", "192.0.2.1:6443", "--node-name", "worker-7"]
    authority = x509.load_pem_x509_certificate((cluster.kubeconfig.parent / "pki" / "ca.crt").read_bytes())
    parts = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    assert words[-1] == f"sha256:{hashlib.sha256(authority.public_key().public_bytes(*parts)).hexdigest()}"
    assert f"jws-kubeconfig-{words[6].partition('.')[0]}" in cluster.request("GET", CLUSTER_INFO)[1]["data"]
    node_config(cluster, "worker-7")  # the other processes publish the server's own address again


def test_existing_configuration_is_kept(cluster: Server, token: str) -> None:
    path = f"{CONFIG_MAPS}/kubelet-config"
    assert cluster.request("PATCH", path, {"data": {"kubelet": "maxPods: 7"}})[0] == 200
    node_config(cluster, "worker-8")
    assert cluster.request("GET", path)[1]["data"] == {"kubelet": "maxPods: 7"}


def test_files_are_written(cluster: Server, tmp_path: Path) -> None:
    told = node_config(cluster, "worker-9", "--output-dir", str(tmp_path / "new"), "--serving-certificate")
    assert told.startswith(f"kubelet --hostname-override worker-9 --config {tmp_path}/new/kubelet-config.yaml ")
    configuration = yaml.safe_load((tmp_path / "new" / "kubelet-config.yaml").read_text())
    assert configuration["serverTLSBootstrap"] is True
    authority = configuration["authentication"]["x509"]["clientCAFile"]
    assert "BEGIN CERTIFICATE" in (tmp_path / "new" / authority).read_text()
    assert (tmp_path / "new" / "bootstrap-kubelet.conf").stat().st_mode & 0o077 == 0
