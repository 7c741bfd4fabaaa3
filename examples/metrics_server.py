"""An extension server in 100 lines: it serves `metrics.k8s.io`, with the usage that annotations of pods contain.

python examples/metrics_server.py --kubeconfig ~/.local/state/ctrlmgr/kubeconfig

The example shows the three tasks of an extension server:

- It presents a certificate for `NAME.NAMESPACE.svc`; the APIService contains the authority that signed the certificate.
- It answers only the front proxy of the API server. The ConfigMap `kube-system/extension-apiserver-authentication`
  contains the proxy's authority and its name. The user is in the request headers, and the API server has authorized the
  request.
- It serves the discovery document of its version at `/apis/GROUP/VERSION`, and its kinds below that path.

The server uses only those functions of ctrlmgr that create certificates. The server works with any Kubernetes API
server that can reach this machine as localhost.
"""

from __future__ import annotations

import argparse
import base64
import json
import ssl
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from ctrlmgr.clock import SystemClock
from ctrlmgr.http.tls import CertificateFiles, ensure_certificates

GROUP, VERSION, NAMESPACE, NAME = "metrics.k8s.io", "v1beta1", "kube-system", "annotated-metrics"
VERSION_PATH = f"/apis/{GROUP}/{VERSION}"
RESOURCES = [{"name": "pods", "singularName": "", "namespaced": True, "kind": "PodMetrics", "verbs": ["get", "list"]}]


class Cluster:
    """The API server, to which kubectl sends the requests."""

    def __init__(self, kubectl: str, kubeconfig: str) -> None:
        self._command = [kubectl, "--kubeconfig", kubeconfig]

    def get(self, *what: str) -> Any:
        """Return the object that `kubectl get` prints."""
        return json.loads(subprocess.check_output([*self._command, "get", *what, "--output", "json"]))

    def apply(self, manifest: Mapping[str, Any]) -> None:
        """Create or update an object with kubectl."""
        subprocess.run([*self._command, "apply", "-f", "-"], input=json.dumps(manifest), text=True, check=True)

    def metrics(self, namespace: str) -> Iterator[dict[str, Any]]:
        """Yield the PodMetrics of a namespace, or of all namespaces if it is empty.

        A pod without annotations uses nothing.
        """
        where = ["--namespace", namespace] if namespace else ["--all-namespaces"]
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        for pod in self.get("pods", *where)["items"]:
            metadata = pod["metadata"]
            said = metadata.get("annotations", {})
            usage = {"cpu": said.get("example.com/cpu", "0"), "memory": said.get("example.com/memory", "0")}
            containers = [{"name": each["name"], "usage": usage} for each in pod["spec"]["containers"]]
            head = {"name": metadata["name"], "namespace": metadata["namespace"], "labels": metadata.get("labels", {})}
            yield {"metadata": head, "timestamp": now, "window": "30s", "containers": containers}


def handler(cluster: Cluster, proxies: list[str]) -> type[BaseHTTPRequestHandler]:
    """Return the handler of requests.

    `proxies` are the allowed names of front proxies, and an empty list allows any name.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            code, answer = self._answer() if self._is_front_proxy() else (401, {"kind": "Status", "code": 401})
            body = json.dumps({"apiVersion": f"{GROUP}/{VERSION}", **answer}).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _is_front_proxy(self) -> bool:
            """TLS has verified the authority of the certificate, so only the name is checked"""
            assert isinstance(self.connection, ssl.SSLSocket)
            subject: Any = (self.connection.getpeercert() or {}).get("subject", ())
            names = [value for part in subject for key, value in part if key == "commonName"]
            return bool(names) and (not proxies or names[0] in proxies)

        def _answer(self) -> tuple[int, dict[str, Any]]:
            path = self.path.partition("?")[0].rstrip("/")
            match path.removeprefix(VERSION_PATH).split("/")[1:]:
                case [] if path == VERSION_PATH:
                    known = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{GROUP}/{VERSION}"}
                    return 200, {**known, "resources": RESOURCES}
                case ["pods"]:
                    return 200, {"kind": "PodMetricsList", "metadata": {}, "items": [*cluster.metrics("")]}
                case ["namespaces", namespace, "pods"]:
                    return 200, {"kind": "PodMetricsList", "metadata": {}, "items": [*cluster.metrics(namespace)]}
                case ["namespaces", namespace, "pods", name]:
                    for each in cluster.metrics(namespace):
                        if each["metadata"]["name"] == name:
                            return 200, {"kind": "PodMetrics", **each}
            return 404, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}

        def log_message(self, format: str, *args: object) -> None:
            """Print nothing for each request."""

    return Handler


def serving(cluster: Cluster, files: CertificateFiles) -> ThreadingHTTPServer:
    """Return the server, which listens on a free port of this machine."""
    published = cluster.get("configmap", "extension-apiserver-authentication", "--namespace", NAMESPACE)["data"]
    proxies = json.loads(published["requestheader-allowed-names"])
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler(cluster, proxies))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=published["requestheader-client-ca-file"])
    context.load_cert_chain(files.serving, files.serving_key)
    context.verify_mode = ssl.CERT_REQUIRED
    server.socket = context.wrap_socket(server.socket, server_side=True)
    return server


def manifests(port: int, authority: bytes) -> Iterator[dict[str, Any]]:
    """Yield the Service that leads to this machine, and the APIService that names the Service."""
    metadata = {"name": NAME, "namespace": NAMESPACE}
    spec: dict[str, Any] = {"type": "ExternalName", "externalName": "localhost"}
    yield {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}
    spec = {
        "group": GROUP,
        "version": VERSION,
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
        "caBundle": base64.b64encode(authority).decode(),
        "service": {**metadata, "port": port},
    }
    name = {"name": f"{VERSION}.{GROUP}"}
    yield {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": name, "spec": spec}


def main() -> None:
    """Register the extension server, and serve until Ctrl-C."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kubeconfig", required=True)
    parser.add_argument("--kubectl", default="kubectl")
    given = parser.parse_args()
    cluster = Cluster(given.kubectl, given.kubeconfig)
    with tempfile.TemporaryDirectory() as folder:
        files = ensure_certificates(Path(folder), [f"{NAME}.{NAMESPACE}.svc"], clock=SystemClock())
        server = serving(cluster, files)
        for manifest in manifests(server.server_address[1], files.authority.read_bytes()):
            cluster.apply(manifest)
        server.serve_forever()


if __name__ == "__main__":
    main()
