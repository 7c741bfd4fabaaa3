"""A custom kind for end-to-end tests, in a separate API group for each test, and a webhook that
converts its objects.
"""

from __future__ import annotations

import base64
import http.server
import ipaddress
import json
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.e2e.serving import Server, until
from tests.json_handler import JsonHandler

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def version(name: str, size: str, *, storage: bool = True) -> dict[str, Any]:
    """Return a version of the CustomResourceDefinition whose objects have a field `size`, a scale and a status."""
    spec = {"type": "object", "properties": {size: {"type": "integer", "default": 1}, "color": {"type": "string"}}}
    status = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "name": name,
        "served": True,
        "storage": storage,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}},
        "subresources": {
            "status": {},
            "scale": {"specReplicasPath": f".spec.{size}", "statusReplicasPath": ".status.replicas"},
        },
        "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": f".spec.{size}"}],
        "selectableFields": [{"jsonPath": ".spec.color"}] if storage else [],
    }


def definition(group: str, *versions: Mapping[str, Any], **spec: Any) -> dict[str, Any]:
    """Return the CustomResourceDefinition of Widgets in an API group."""
    names = {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"], "categories": ["all"]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": names,
            "versions": [*(versions or [version("v1", "size")])],
            **spec,
        },
    }


@contextmanager
def defined(server: Server, fields: Mapping[str, Any]) -> Iterator[None]:
    """Create a CustomResourceDefinition and yield when it is established; afterwards, delete it and its objects."""
    name = fields["metadata"]["name"]
    server.create(DEFINITIONS, fields)
    until(lambda: _is_established(server.request("GET", f"{DEFINITIONS}/{name}")[1]))
    try:
        yield
    finally:
        server.request("DELETE", f"{DEFINITIONS}/{name}")
        until(lambda: server.request("GET", f"{DEFINITIONS}/{name}")[0] == 404)


def _is_established(fields: Mapping[str, Any]) -> bool:
    conditions = (fields.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


class Hook:
    """A conversion webhook at `url`: the field `size` of v1 becomes `width` of v2, and vice versa.

    While `broken` is set, the webhook responds with failures.
    """

    def __init__(self, folder: Path) -> None:
        hook = self

        class Handler(JsonHandler):
            protocol_version = "HTTP/1.1"

            def respond(self) -> None:
                review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self.answer(hook._answer(review))

        self.broken = False
        pem = certificate(folder)
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pem)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        authority = pem.read_bytes().partition(b"-----BEGIN EC")[0].partition(b"-----BEGIN PRIVATE")[0]
        url = f"https://127.0.0.1:{self._server.server_address[1]}/convert"
        client = {"url": url, "caBundle": base64.b64encode(authority).decode()}
        self.conversion = {
            "strategy": "Webhook",
            "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]},
        }

    @contextmanager
    def running(self) -> Iterator[None]:
        """Serve the webhook while the block runs."""
        thread = threading.Thread(target=self._server.serve_forever)
        thread.start()
        try:
            yield
        finally:
            self._server.shutdown()
            self._server.server_close()
            thread.join()

    def _answer(self, review: dict[str, Any]) -> dict[str, Any]:
        request = review["request"]
        wanted = request["desiredAPIVersion"]
        names = {"size": "width"} if wanted.endswith("v2") else {"width": "size"}
        objects = [
            {**each, "apiVersion": wanted, "spec": {names.get(k, k): v for k, v in each.get("spec", {}).items()}}
            for each in request["objects"]
        ]
        result = {"status": "Failure", "message": "broken"} if self.broken else {"status": "Success"}
        response = {"uid": request["uid"], "result": result, "convertedObjects": objects}
        return {"kind": "ConversionReview", "apiVersion": review["apiVersion"], "response": response}


def certificate(folder: Path) -> Path:
    """Write a self-signed certificate for 127.0.0.1 and the certificate's private key into one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "hook")])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = folder / "hook.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    file.write_bytes(signed.public_bytes(serialization.Encoding.PEM) + private)
    return file
