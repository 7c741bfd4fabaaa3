"""The expected Endpoints and EndpointSlices, computed naively from the Kubernetes documentation.

The oracle computes on plain JSON with loops over all objects, without indexes, packing or caches, and shares no code
with the controllers. Sources: "Service", "EndpointSlices", "Topology Aware Routing" and "Traffic distribution" of the
concepts section, and the API reference of Service, Endpoints and EndpointSlice. Subsets and slices are compared as a
set of `ExpectedEndpoint`, one endpoint at one port each, because other tests check their division into
subsets and slices.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

Fields = Mapping[str, Any]

ZONE = "topology.kubernetes.io/zone"
ENDED = ("Failed", "Succeeded")


class Port(NamedTuple):
    """A port of a Service or an endpoint."""

    name: str
    number: int
    protocol: str


class ExpectedEndpoint(NamedTuple):
    """An endpoint at a port (None if it has no ports); for a slice, also the fields that only EndpointSlices have."""

    address: str
    port: Port | None
    ready: bool
    hostname: str
    node: str
    target: tuple[str, str, str]
    """The namespace, name and uid of the pod at the endpoint; the strings are empty if the endpoint has no pod."""
    serving: bool | None = None
    terminating: bool | None = None
    zone: str = ""
    hints: tuple[str, ...] = ()


def selects(service: Fields | None) -> bool:
    """Return whether a controller writes the endpoints of a Service."""
    return service is not None and "selector" in service["spec"] and service["spec"]["type"] != "ExternalName"


def expected_endpoints(service: Fields, pods: Iterable[Fields]) -> set[ExpectedEndpoint]:
    """Return the expected content of the Endpoints of a Service with a selector."""
    family = service["spec"]["ipFamilies"][0]
    publish = service["spec"].get("publishNotReadyAddresses", False)
    said = set()
    for pod in _selected(service, pods):
        address = _address(pod, family)
        if address is None or (_is_terminating(pod) and not publish):
            continue
        for port in _offered(service, pod):
            ready = publish or _is_ready(pod)
            said.add(ExpectedEndpoint(address, port, ready, _hostname(service, pod), _node(pod), _target(pod)))
    if not service["spec"]["ports"]:
        said = {each for each in said if service["spec"].get("clusterIP") == "None"}
    return said


def expected_slices(
    service: Fields, pods: Iterable[Fields], nodes: Sequence[Fields]
) -> dict[str, set[ExpectedEndpoint]]:
    """Return the expected content of the EndpointSlices of a Service with a selector, by address type.

    A pod that has none of the Service's named ports is included without ports.
    """
    zones = {node["metadata"]["name"]: node["metadata"].get("labels", {}).get(ZONE, "") for node in nodes}
    publish = service["spec"].get("publishNotReadyAddresses", False)
    found: dict[str, set[ExpectedEndpoint]] = {family: set() for family in service["spec"]["ipFamilies"]}
    for pod in _selected(service, pods):
        if _node(pod) not in zones and not publish:
            continue
        zone = zones.get(_node(pod), "")
        serving, terminating = _is_ready(pod), _is_terminating(pod)
        ready = publish or (serving and not terminating)
        hints = _hints(service, zone, _node(pod)) if ready else ()
        for family, said in found.items():
            address = _address(pod, family)
            if address is None:
                continue
            for port in _offered_or_none(service, pod):
                target, hostname = _target(pod), _hostname(service, pod)
                said.add(
                    ExpectedEndpoint(
                        address, port, ready, hostname, _node(pod), target, serving, terminating, zone, hints
                    )
                )
    return found


def expected_mirrors(endpoints: Fields | None) -> dict[str, set[ExpectedEndpoint]]:
    """Return the expected content of mirrored slices, by address type; an address is not ready if it is not ready at
    any port.
    """
    found: dict[str, set[ExpectedEndpoint]] = {}
    ready: dict[tuple[str, Port | None], bool] = {}
    pairs = [*said_by_endpoints(endpoints)]
    for each in pairs:
        ready[each.address, each.port] = ready.get((each.address, each.port), True) and each.ready
    for each in pairs:
        family = f"IPv{ipaddress.ip_address(each.address).version}"
        found.setdefault(family, set()).add(each._replace(ready=ready[each.address, each.port]))
    return found


def said_by_endpoints(endpoints: Fields | None) -> Iterator[ExpectedEndpoint]:
    """Yield the content of an Endpoints object."""
    for subset in (endpoints or {}).get("subsets") or ():
        for list_, ready in (("addresses", True), ("notReadyAddresses", False)):
            for address in subset.get(list_) or ():
                for port in _ports(subset):
                    hostname, node = address.get("hostname", ""), address.get("nodeName", "")
                    yield ExpectedEndpoint(address["ip"], port, ready, hostname, node, _reference(address))


def said_by_slice(slice_: Fields) -> Iterator[ExpectedEndpoint]:
    """Yield the content of an EndpointSlice."""
    for each in slice_.get("endpoints") or ():
        conditions, hints = each["conditions"], each.get("hints", {})
        named = [f"{kind}:{hint['name']}" for kind in ("forZones", "forNodes") for hint in hints.get(kind, ())]
        for port in _ports(slice_):
            yield ExpectedEndpoint(
                each["addresses"][0],
                port,
                conditions["ready"],
                each.get("hostname", ""),
                each.get("nodeName", ""),
                _reference(each),
                conditions.get("serving"),
                conditions.get("terminating"),
                each.get("zone", ""),
                tuple(named),
            )


def _selected(service: Fields, pods: Iterable[Fields]) -> Iterator[Fields]:
    """Yield the pods of the namespace that match the selector and have not terminated."""
    selector = service["spec"]["selector"].items()
    for pod in pods:
        same = pod["metadata"]["namespace"] == service["metadata"]["namespace"]
        if same and selector <= pod["metadata"].get("labels", {}).items() and pod["status"]["phase"] not in ENDED:
            yield pod


def _offered(service: Fields, pod: Fields) -> Iterator[Port | None]:
    """Yield the Service's ports for the pod; a port name that no container of the pod declares is omitted."""
    if not service["spec"]["ports"]:
        yield None
    for port in service["spec"]["ports"]:
        target = port.get("targetPort", port["port"])
        declared = [each for container in pod["spec"]["containers"] for each in container["ports"]]
        numbers = [each["containerPort"] for each in declared if each["name"] == target]
        if isinstance(target, int):
            yield Port(port.get("name", ""), target, port["protocol"])
        elif numbers:
            yield Port(port.get("name", ""), numbers[0], port["protocol"])


def _offered_or_none(service: Fields, pod: Fields) -> list[Port | None]:
    return [*_offered(service, pod)] or [None]


def _hints(service: Fields, zone: str, node: str) -> tuple[str, ...]:
    distribution = service["spec"].get("trafficDistribution")
    zones = (f"forZones:{zone}",) if zone and distribution is not None else ()
    return (*zones, f"forNodes:{node}") if distribution == "PreferSameNode" else zones


def _address(pod: Fields, family: str) -> str | None:
    """Return the pod's first address of an IP family."""
    addresses = (each["ip"] for each in pod["status"].get("podIPs", ()))
    return next((each for each in addresses if f"IPv{ipaddress.ip_address(each).version}" == family), None)


def _is_ready(pod: Fields) -> bool:
    return {"type": "Ready", "status": "True"} in pod["status"]["conditions"]


def _is_terminating(pod: Fields) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def _hostname(service: Fields, pod: Fields) -> str:
    """Return the pod's hostname if its subdomain is the name of the Service."""
    named = pod["spec"].get("subdomain") == service["metadata"]["name"]
    return str(pod["spec"].get("hostname", "")) if named else ""


def _node(pod: Fields) -> str:
    return str(pod["spec"].get("nodeName", ""))


def _target(pod: Fields) -> tuple[str, str, str]:
    metadata = pod["metadata"]
    return (metadata["namespace"], metadata["name"], metadata["uid"])


def _reference(endpoint: Fields) -> tuple[str, str, str]:
    found = endpoint.get("targetRef")
    return (found["namespace"], found["name"], found["uid"]) if found else ("", "", "")


def _ports(fields: Fields) -> list[Port | None]:
    """Return the ports of a subset or a slice; a list with None stands for no ports."""
    ports = fields.get("ports") or ()
    return [Port(each.get("name") or "", each["port"], each["protocol"]) for each in ports] or [None]
