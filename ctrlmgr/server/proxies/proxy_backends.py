"""Finds the server to which a request to the `proxy` of a pod or a Service is forwarded.

Guarantees: the proxy connects only to addresses of pods, and never to loopback, link-local or multicast addresses.
Therefore a client cannot reach this machine's own services through the proxy.

Source: `ResourceLocation` in `pkg/registry/core/pod/strategy.go` and `pkg/registry/core/service/storage/storage.go`,
and apimachinery `pkg/util/net/port_split.go`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import ip_address
from random import Random
from typing import Final, NamedTuple, TypeVar

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import ENDPOINTS, PODS, SERVICES, Key
from ctrlmgr.engine.api_errors import not_found
from ctrlmgr.engine.strategy import View
from ctrlmgr.errors import BadRequest, ServiceUnavailable

T = TypeVar("T")

NOT_ALLOWED: Final = "address not allowed"
_SCHEMES: Final = ("", "http", "https")
_BROADCAST: Final = "255.255.255.255"


class ProxyName(NamedTuple):
    """The name in a request to a proxy: `NAME`, `NAME:PORT` or `SCHEME:NAME:PORT`."""

    scheme: str
    name: str
    port: str
    """The number or the name of a port; empty for the default port."""

    @classmethod
    def of(cls, text: str, kind: str) -> ProxyName:
        """Parse a name in a proxy request.

        Raises `BadRequest` if the name is malformed; the error message contains `kind` (such as "pod").
        """
        match text.split(":"):
            case [name]:
                found = cls("", name, "")
            case [name, port]:
                found = cls("", name, port)
            case [scheme, name, port]:
                found = cls(scheme, name, port)
            case _:
                found = cls("", "", "")
        if not found.name or found.scheme not in _SCHEMES:
            raise BadRequest(f'invalid {kind} request "{text}"')
        return found


class Backend(NamedTuple):
    """The address of the server to which a request is forwarded."""

    scheme: str
    host: str
    port: str
    """The port: its number, or its name. A connection can be made only with a number."""
    pod: Object

    @property
    def is_secure(self) -> bool:
        """Whether the connection to the server uses TLS."""
        return self.scheme == "https"


class _ContainerPort(msgspec.Struct, rename="camel"):
    container_port: int = 0


class _Container(msgspec.Struct):
    ports: list[_ContainerPort] | None = None


class _Spec(msgspec.Struct):
    containers: list[_Container] | None = None


class _PodIP(msgspec.Struct):
    ip: str = ""


class _Status(msgspec.Struct):
    ip: str = msgspec.field(name="podIP", default="")
    ips: list[_PodIP] | None = msgspec.field(name="podIPs", default=None)


class _Pod(msgspec.Struct):
    spec: _Spec | None = None
    status: _Status | None = None


class _ServicePort(msgspec.Struct):
    port: int = 0
    name: str = ""


class _ServiceSpec(msgspec.Struct):
    ports: list[_ServicePort] | None = None


class _Service(msgspec.Struct):
    spec: _ServiceSpec | None = None


class _Target(msgspec.Struct):
    namespace: str = ""
    name: str = ""


class _Address(msgspec.Struct, rename="camel"):
    ip: str = ""
    target_ref: _Target | None = None


class _Subset(msgspec.Struct):
    addresses: list[_Address] | None = None
    ports: list[_ServicePort] | None = None


class _Endpoints(msgspec.Struct):
    subsets: list[_Subset] | None = None


def is_proxyable(address: str) -> bool:
    """Return whether requests may be forwarded to an IP address (Go's `IP.IsGlobalUnicast`)."""
    try:
        found = ip_address(address)
    except ValueError:
        return False
    mapped = getattr(found, "ipv4_mapped", None)
    if mapped is not None:
        return is_proxyable(str(mapped))
    is_special = found.is_loopback or found.is_link_local or found.is_multicast or found.is_unspecified
    return not is_special and address != _BROADCAST


def backend_of_pod(pod: Object, requested: ProxyName) -> Backend:
    """Return the address of the server in a pod, by default at its first declared port.

    Raises `BadRequest` if the address is not allowed.
    """
    address = next(iter(_addresses(pod)), "")
    if not is_proxyable(address):
        raise BadRequest(NOT_ALLOWED)
    scheme = requested.scheme or "http"
    port = requested.port or _first_port(pod) or ("443" if scheme == "https" else "80")
    return Backend(scheme, address, port, pod)


def backend_of_service(service: Object, wanted: ProxyName, requested: str, view: View, random: Random) -> Backend:
    """Return a ready endpoint of a Service, chosen randomly from the pods that have the port.

    `requested` is the name in the request. Raises `NotFound` if the Service does not exist, and `ServiceUnavailable` if
    the Service has no such endpoint.
    """
    port_name = _port_name(service, wanted)
    endpoints = view.get(ENDPOINTS, service.key)
    if endpoints is None:  # Kubernetes reports a missing Endpoints object as a missing Service
        raise not_found(SERVICES, service.name)
    subsets = endpoints.view(_Endpoints).subsets or []
    if not subsets:
        raise ServiceUnavailable(f'no endpoints available for service "{service.name}"')
    for subset in _shuffled(subsets, random):
        for port in subset.ports or ():
            if port.name == port_name:
                for address in _shuffled(subset.addresses or (), random):
                    pod = _pod_of(address, service.namespace, view)
                    if pod is not None:
                        return Backend(wanted.scheme or "http", address.ip, str(port.port), pod)
    raise ServiceUnavailable(f'no endpoints available for service "{requested}"')


def _port_name(service: Object, requested: ProxyName) -> str:
    """Return the name of the Service's port that is requested.

    Raises `ServiceUnavailable` if the Service does not have the port.
    """
    if not requested.port.isdecimal():
        return requested.port
    spec = service.view(_Service).spec or _ServiceSpec()
    for each in spec.ports or ():
        if each.port == int(requested.port):
            return each.name
    raise ServiceUnavailable(f'no service port {int(requested.port)} found for service "{service.name}"')


def _pod_of(address: _Address, namespace: str, view: View) -> Object | None:
    """Return the pod of an endpoint; None if the endpoint's address is not that of a pod in the Service's namespace."""
    target = address.target_ref
    if target is None or target.namespace != namespace or not is_proxyable(address.ip):
        return None
    pod = view.get(PODS, Key(namespace, target.name))
    return pod if pod is not None and address.ip in _addresses(pod) else None


def _addresses(pod: Object) -> list[str]:
    status = pod.view(_Pod).status or _Status()
    return [each.ip for each in status.ips or ()] or [status.ip]


def _first_port(pod: Object) -> str:
    """Return the first declared port of a pod; empty if the pod declares none."""
    spec = pod.view(_Pod).spec or _Spec()
    return next((str(each.ports[0].container_port) for each in spec.containers or () if each.ports), "")


def _shuffled(items: Sequence[T], random: Random) -> Iterator[T]:
    """Yield all items in order, starting at a random item."""
    start = random.randrange(len(items)) if items else 0
    return iter([*items[start:], *items[:start]])
