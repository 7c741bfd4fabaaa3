"""Resolves the address of a webhook or an extension server: a URL, or an endpoint of a Service.

Guarantees: for each call, a Service is resolved to one of the ready endpoints in its EndpointSlices. Therefore calls
need neither a service proxy nor a name server. The certificate of a Service's server must name `NAME.NAMESPACE.svc`.
Endpoints on simulated nodes are never called, because no process listens at their addresses.

Rules come from apiserver's `pkg/util/webhook/client.go` and `pkg/util/proxy/proxy.go` (`ResolveEndpoint`).
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from ctrlmgr.api.resource import ENDPOINT_SLICES, NODES, SERVICES, Key
from ctrlmgr.engine.strategy import View

_SERVICE_LABEL = "kubernetes.io/service-name"
SIMULATED = "simulate.ctrlmgr.io/node"
"""The label of simulated nodes; its value is "true"."""
_ENDPOINT_TYPES = ("ClusterIP", "NodePort", "LoadBalancer")


class Endpoint(NamedTuple):
    """The endpoint to which a request is sent."""

    url: str
    """The URL of the endpoint without a query."""
    ca_bundle: bytes
    address: tuple[str, int] | None = None
    """The address to which the call connects, if this is not the host of the URL."""
    problem: str = ""
    """The reason why the endpoint was not found; empty if it was found.

    If the endpoint was not found, the other fields describe the requested endpoint.
    """
    is_simulated: bool = False
    """Whether all ready endpoints of the Service are pods on simulated nodes, so that no process can be called."""


def endpoint_of(client: Mapping[str, Any], view: View, random: Random) -> Endpoint:
    """Return the endpoint that a WebhookClientConfig names."""
    authority = base64.b64decode(client.get("caBundle") or "")
    service = client.get("service")
    if service is None:
        return Endpoint(_plain(client.get("url") or ""), authority)
    name, namespace, port = service["name"], service["namespace"], service.get("port") or 443
    path = service.get("path") or "/"
    url = f"https://{name}.{namespace}.svc:{port}{path if path.startswith('/') else '/' + path}"
    try:
        address = resolve_endpoint(view, namespace, name, port, random)
        return Endpoint(url, authority, address, is_simulated=address is None)
    except Unresolved as problem:
        return Endpoint(url, authority, problem=str(problem))


class Unresolved(Exception):
    """Raised if a Service has no address that can be called; the message contains the reason."""


def _plain(url: str) -> str:
    """Return `url` with a path and without a query."""
    parts = urlsplit(url)
    return parts._replace(path=parts.path or "/", query="", fragment="").geturl()


def resolve_endpoint(view: View, namespace: str, name: str, port: int, random: Random) -> tuple[str, int] | None:
    """Return the address and port of a ready endpoint of a Service; None if all endpoints are on simulated nodes.

    Raises `Unresolved`.
    """
    spec = _spec_of(view, namespace, name)
    if spec.get("type") == "ExternalName":
        return spec["externalName"], port
    listed = _listed(spec, name, port)
    found = sorted(_ready(view, namespace, name, listed.get("name") or ""))
    if not found:
        raise Unresolved(f'no endpoints available for service "{name}"')
    simulated = {node for node in {each.node for each in found} if _is_simulated(view, node)}
    real = [(each.address, each.port) for each in found if each.node not in simulated]
    return random.choice(real) if real else None


def resolve_cluster(view: View, namespace: str, name: str, port: int) -> tuple[str, int]:
    """Return the cluster address and port of a Service (`ResolveCluster`).

    Raises `Unresolved` if the Service has none.
    """
    spec = _spec_of(view, namespace, name)
    if spec.get("type") == "ExternalName":
        return spec["externalName"], port
    if spec.get("clusterIP") == "None" and spec.get("type", "ClusterIP") == "ClusterIP":
        raise Unresolved('cannot route to service with ClusterIP "None"')
    _listed(spec, name, port)
    return spec.get("clusterIP") or "", port


def _spec_of(view: View, namespace: str, name: str) -> Mapping[str, Any]:
    service = view.get(SERVICES, Key(namespace, name))
    if service is None:
        raise Unresolved(f'service "{name}" not found')
    return service.to_dict().get("spec") or {}


def _listed(spec: Mapping[str, Any], name: str, port: int) -> Mapping[str, Any]:
    """Return the entry of a Service's port; raises `Unresolved` if the Service has none."""
    if spec.get("type", "ClusterIP") not in _ENDPOINT_TYPES:
        raise Unresolved(f'unsupported service type "{spec.get("type")}"')
    for each in spec.get("ports") or ():
        if each.get("port") == port:
            found: Mapping[str, Any] = each
            return found
    raise Unresolved(f'no service port {port} found for service "{name}"')


class _Ready(NamedTuple):
    """A ready endpoint of a Service."""

    address: str
    port: int
    node: str


def _is_simulated(view: View, name: str) -> bool:
    node = view.get(NODES, Key("", name)) if name else None
    return node is not None and node.labels.get(SIMULATED) == "true"


def _ready(view: View, namespace: str, name: str, port_name: str) -> Iterator[_Ready]:
    """Yield the ready endpoints of a Service."""
    for each in view.list(ENDPOINT_SLICES, namespace):
        if each.labels.get(_SERVICE_LABEL) != name:
            continue
        fields = each.to_dict()
        ports = [port["port"] for port in fields.get("ports") or () if (port.get("name") or "") == port_name]
        for endpoint in fields.get("endpoints") or ():
            if (endpoint.get("conditions") or {}).get("ready") is not False:
                node = endpoint.get("nodeName") or ""
                yield from (_Ready(each, port, node) for each in endpoint.get("addresses") or () for port in ports)
