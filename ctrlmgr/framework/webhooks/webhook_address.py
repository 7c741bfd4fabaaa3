"""Decides how an API server reaches the webhooks of this process, and where the process listens.

The rules are those of kopf's `kopf.WebhookAutoServer`. If the user names a URL or a Service, the API server uses that
URL or Service. If the user names neither, the address depends on the cluster. For a cluster in a container on this
machine, the address is the host name of the machine inside the container. For an API server on this machine, the
address is the IP address of the API server. For any other cluster, the address cannot be determined, and an error is
raised.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.x509.oid import NameOID

from ctrlmgr.api.resource import Key
from ctrlmgr.errors import SettingsError

SERVICE_PORT: Final = 9443
"""The default port of a process behind a Service, which is also controller-runtime's default."""

_ANYWHERE: Final = "0.0.0.0"
_LOCAL_CLUSTERS: Final = (("k3s-", "host.k3d.internal"), ("minikube", "host.minikube.internal"))
"""For each tool that runs local clusters: the beginning of the name of its certificate authority, and the host name
with which its containers reach this machine.
"""
_DOCKER_DESKTOP: Final = ("docker-for-desktop", "host.docker.internal")
_PATIENCE: Final = 5.0


class WebhookOptions(NamedTuple):
    """The options that determine the address; at most one of `url` and `service` is given."""

    url: str = ""
    """The URL `https://HOST[:PORT][/PATH]` of the webhooks; empty if it is not given."""
    service: Key | None = None
    listen: tuple[str, int] | None = None


class WebhookAddress(NamedTuple):
    """The address at which the API server reaches the webhooks."""

    listen: tuple[str, int]
    """The host and port on which the process listens; port 0 means any free port."""
    names: Sequence[str]
    """The host names and IP addresses in the certificate."""
    url: str = ""
    """The URL prefix of each function's path, with `{port}` in place of the port.

    The prefix is empty if the webhooks are behind a Service.
    """
    service: Key | None = None

    def client_config(self, path: str, port: int, authority: str) -> dict[str, Any]:
        """Return the `clientConfig` of the webhook at `path`, for the port on which this process listens.

        `authority` is the certificate authority (PEM, base64).
        """
        if self.service is not None:
            place = {"namespace": self.service.namespace, "name": self.service.name, "path": path, "port": 443}
            return {"service": place, "caBundle": authority}
        return {"url": f"{self.url.replace('{port}', str(port))}{path}", "caBundle": authority}

    def label(self, port: int) -> str:
        """Return the address in the form of log lines."""
        return f"service {self.service}" if self.service is not None else self.url.replace("{port}", str(port))


def decide_address(
    options: WebhookOptions,
    server: str,
    *,
    functions: str,
    certificate_of: Callable[[str, int], bytes | None] | None = None,
) -> WebhookAddress:
    """Return the address for the API server at the URL `server`.

    Raises `SettingsError` if no address can be determined. `functions` names the admission functions for the error
    message. `certificate_of` returns the serving certificate (PEM) of a host and port, None if there is none; the
    default connects to the host.
    """
    if options.service is not None:
        return _behind(options.service, options.listen)
    if options.url:
        return _at(options.url, options.listen)
    parts = urlsplit(server)
    host = parts.hostname or ""
    certificate = None
    if parts.scheme == "https":
        certificate = (certificate_of or _certificate_of)(host, parts.port or 443)
    if name := _host_of_local_cluster(certificate):
        listen = options.listen or (_ANYWHERE, 0)
        return WebhookAddress(listen, (name,), f"https://{name}:{{port}}")
    if (address := _own_address(host)) is None:
        raise SettingsError(
            f"run: {server} cannot call the admission functions of {functions} without an address: give --webhook-url"
            " or --webhook-service, or run the controllers alone with --no-admission"
        )
    return WebhookAddress(options.listen or (address, 0), (address,), f"https://{_bracketed(address)}:{{port}}")


def _behind(service: Key, listen: tuple[str, int] | None) -> WebhookAddress:
    host = f"{service.name}.{service.namespace}.svc"
    return WebhookAddress(listen or (_ANYWHERE, SERVICE_PORT), (host, f"{host}.cluster.local"), service=service)


def _at(url: str, listen: tuple[str, int] | None) -> WebhookAddress:
    parts = urlsplit(url)
    assert parts.hostname is not None  # `run` has checked this before.
    return WebhookAddress(listen or (_ANYWHERE, parts.port or 443), (parts.hostname,), url.rstrip("/"))


def _host_of_local_cluster(certificate: bytes | None) -> str:
    """Return the host name by which the containers of a local cluster reach this machine.

    The name is empty if the serving certificate does not belong to a known type of local cluster.
    """
    if certificate is None:
        return ""
    read = x509.load_pem_x509_certificate(certificate)
    issuers = [str(each.value) for each in read.issuer.get_attributes_for_oid(NameOID.COMMON_NAME)]
    for beginning, host in _LOCAL_CLUSTERS:
        if any(each.startswith(beginning) for each in issuers):
            return host
    return _DOCKER_DESKTOP[1] if _DOCKER_DESKTOP[0] in _names(read) else ""


def _names(certificate: x509.Certificate) -> Sequence[str]:
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    return found.get_values_for_type(x509.DNSName)


def _certificate_of(host: str, port: int) -> bytes | None:
    try:
        return ssl.get_server_certificate((host, port), timeout=_PATIENCE).encode()
    except OSError:  # If this fails, the first request to the cluster reports the reason.
        return None


def _own_address(host: str) -> str | None:
    """Return the IP address of `host` if it belongs to this machine, otherwise None."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_DGRAM)
    except OSError:
        return None
    for family, kind, _, _, address in found:
        with socket.socket(family, kind) as probe:
            try:
                probe.bind((address[0], 0))
            except OSError:
                continue
            return str(address[0])
    return None


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address
