"""Maps requests for containers to URLs of kubelets; the functions do no I/O.

Source: `pkg/registry/core/pod/strategy.go` (LogLocation, streamLocation, PortForwardLocation, validateContainer),
`pkg/kubelet/client/kubelet_client.go`, `pkg/util/node` (GetPreferredNodeAddress).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple
from urllib.parse import urlencode

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.clock import format_time_seconds
from ctrlmgr.engine.pod_log_options import LogOptions
from ctrlmgr.errors import BadRequest, UnknownError
from ctrlmgr.http.proxying.upstream_address import authority

WEBSOCKETS: Final = "ExtendWebSocketsToKubelet"
"""The feature that a node declares if its kubelet accepts all WebSocket protocols of Kubernetes."""
_STREAMS: Final = (("stdin", "input"), ("stdout", "output"), ("stderr", "error"), ("tty", "tty"))
"""The flags of PodExecOptions and PodAttachOptions, each with its query parameter in the kubelet's API."""


class KubeletUrl(NamedTuple):
    """The address of a kubelet, and the target of a request to the kubelet."""

    host: str
    port: int
    path: str
    query: str
    has_websockets: bool
    """Whether the kubelet's node has declared the feature `WEBSOCKETS`."""

    @property
    def authority(self) -> str:
        """The host and the port of the kubelet."""
        return authority(self.host, self.port)

    @property
    def target(self) -> str:
        """The URL path and the query of the request."""
        return f"{self.path}?{self.query}" if self.query else self.path

    def __str__(self) -> str:
        return f"https://{self.authority}{self.target}"


class _Address(msgspec.Struct):
    type: str = ""
    address: str = ""


class _KubeletEndpoint(msgspec.Struct):
    port: int = msgspec.field(name="Port", default=0)


class _DaemonEndpoints(msgspec.Struct, rename="camel"):
    kubelet_endpoint: _KubeletEndpoint | None = None


class _NodeStatus(msgspec.Struct, rename="camel"):
    addresses: list[_Address] | None = None
    daemon_endpoints: _DaemonEndpoints | None = None
    declared_features: list[str] | None = None


class _Node(msgspec.Struct):
    status: _NodeStatus | None = None


class _Container(msgspec.Struct):
    name: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    containers: list[_Container] | None = None
    init_containers: list[_Container] | None = None
    ephemeral_containers: list[_Container] | None = None


class _Pod(msgspec.Struct):
    spec: _Spec | None = None


def container_of(pod: Object, requested: str) -> str:
    """Return the name of the requested container, or of the pod's only container.

    Raises `BadRequest` if there is no such container.
    """
    spec = pod.view(_Pod).spec or _Spec()
    names = [*_names(spec.init_containers), *_names(spec.containers), *_names(spec.ephemeral_containers)]
    if requested:
        if requested not in names:
            raise BadRequest(f"container {requested} is not valid for pod {pod.name}")
        return requested
    match [*_names(spec.containers)]:
        case [only]:
            return only
        case []:
            raise BadRequest(f"a container name must be specified for pod {pod.name}")
    choice = " ".join(names)
    raise BadRequest(f"a container name must be specified for pod {pod.name}, choose one of: [{choice}]")


def _names(containers: Iterable[_Container] | None) -> Iterator[str]:
    return (each.name for each in containers or ())


def node_url(node: Object, types: Sequence[str], port: int) -> KubeletUrl:
    """Return the address of a node's kubelet; raises `UnknownError` if the node has no address."""
    return _url(node, "", (), types, port)


def log_url(pod: Object, node: Object, options: LogOptions, types: Sequence[str], port: int) -> KubeletUrl:
    """Return the URL of a container's log.

    Raises `BadRequest` for an invalid container, `UnknownError` for a node without an address.
    """
    container = container_of(pod, options.container)
    path = f"/containerLogs/{pod.namespace}/{pod.name}/{container}"
    return _url(node, path, _log_parameters(options), types, port)


def _log_parameters(options: LogOptions) -> Iterator[tuple[str, str]]:
    for flag in ("follow", "previous", "timestamps"):
        if getattr(options, flag):
            yield flag, "true"
    if options.since_seconds is not None:
        yield "sinceSeconds", str(options.since_seconds)
    if options.since_time is not None:
        yield "sinceTime", format_time_seconds(options.since_time)
    if options.tail_lines is not None:
        yield "tailLines", str(options.tail_lines)
    if options.limit_bytes is not None:
        yield "limitBytes", str(options.limit_bytes)


def stream_url(
    pod: Object, node: Object, part: str, options: Unstructured, types: Sequence[str], port: int
) -> KubeletUrl:
    """Return the URL of exec, attach or portforward (`part`) with its connect options.

    Raises the same errors as `log_url`.
    """
    if part == "portforward":
        ports = ",".join(map(str, options.get("ports", ())))
        parameters = [("port", ports)] if ports else []
        return _url(node, f"/portForward/{pod.namespace}/{pod.name}", parameters, types, port)
    container = container_of(pod, str(options.get("container", "")))
    parameters = [(parameter, "1") for flag, parameter in _STREAMS if options.get(flag)]
    parameters += [("command", str(each)) for each in options.get("command", ())]
    return _url(node, f"/{part}/{pod.namespace}/{pod.name}/{container}", parameters, types, port)


def _url(node: Object, path: str, parameters: Iterable[tuple[str, str]], types: Sequence[str], port: int) -> KubeletUrl:
    status = node.view(_Node).status or _NodeStatus()
    endpoint = status.daemon_endpoints.kubelet_endpoint if status.daemon_endpoints is not None else None
    reported = endpoint.port if endpoint is not None else 0
    query = urlencode(sorted(parameters, key=lambda each: each[0]))
    host = _preferred(status.addresses or (), types)
    return KubeletUrl(host, reported or port, path, query, WEBSOCKETS in (status.declared_features or ()))


def _preferred(addresses: Sequence[_Address], types: Sequence[str]) -> str:
    """Return the node's first address of the first preferred type for which the node has an address.

    Raises `UnknownError` if the node has no address of a preferred type.
    """
    for requested in types:
        for each in addresses:
            if each.type == requested:
                return each.address
    known = " ".join(f"{{{each.type} {each.address}}}" for each in addresses)
    raise UnknownError(f"no preferred addresses found; known addresses: [{known}]")
