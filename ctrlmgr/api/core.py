"""Typed views of the core kinds: the fields that controllers read, and values derived from them.

Guarantees:
- A view is decoded from an object's body (`Object.view(Pod)`). Controllers never encode a view back into the body, so
  the body keeps the fields that the view lacks. The only exception is the view `Endpoints` with its parts, which is
  encoded in Go's field order and with Go's `omitempty`.
- A null list is decoded as an empty list. If a field for which the API server has a default is missing, the view
  contains the default.
- Values derived from a pod (readiness, addresses, named ports) are computed once per view, and therefore once for each
  version of the pod.

Rules come from Kubernetes' `pkg/api/v1/pod/util.go`, `pkg/apis/core/v1/{defaults,conversion}.go` and
`k8s.io/endpointslice/util`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from ctrlmgr.api import quantity
from ctrlmgr.caches.properties import cached_property
from ctrlmgr.clock import parse_time

IPV4 = "IPv4"
IPV6 = "IPv6"
CLUSTER_IP_NONE = "None"


def ip_family(address: str) -> str:
    """Return `IPv6` if the string is an IPv6 address, otherwise `IPv4`, as `utilnet.IsIPv6String` decides.

    An IPv4-mapped IPv6 address counts as IPv4, and so does an address with a zone, because Go cannot parse zones.
    """
    if ":" not in address or "%" in address:
        return IPV4
    try:
        return IPV4 if ipaddress.IPv6Address(address).ipv4_mapped else IPV6
    except ValueError:
        return IPV4


class ObjectReference(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """v1 ObjectReference."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    resource_version: str = ""
    field_path: str = ""


class EndpointAddress(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """v1 EndpointAddress; a `node_name` of None stands for Go's nil pointer, which differs from an empty string."""

    ip: str
    hostname: str = ""
    node_name: str | None = None
    target_ref: ObjectReference | None = None


class EndpointPort(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """v1 EndpointPort."""

    name: str = ""
    port: int = 0
    protocol: str = ""
    app_protocol: str | None = None


class EndpointSubset(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """v1 EndpointSubset; a field that is None stands for an empty list, as in the result of `RepackSubsets`."""

    addresses: list[EndpointAddress] | None = None
    not_ready_addresses: list[EndpointAddress] | None = None
    ports: list[EndpointPort] | None = None


class Endpoints(msgspec.Struct, frozen=True, gc=False):
    """The fields of a v1 Endpoints that controllers read."""

    subsets: list[EndpointSubset] | None = None


class ServicePort(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """v1 ServicePort."""

    name: str = ""
    protocol: str = "TCP"
    app_protocol: str | None = None
    port: int = 0
    target_port: int | str | None = None

    @property
    def target(self) -> int | str:
        """The port of the pods: a number, or the name of a container port.

        If the field is missing, the number is that of the service's own port.
        """
        return self.target_port or self.port


class ServiceSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The fields of a v1 ServiceSpec that controllers read.

    If `selector` is None, the service selects no pods; if `selector` is {}, it selects all pods.
    """

    ports: list[ServicePort] | None = None
    selector: dict[str, str] | None = None
    cluster_ip: str = msgspec.field(default="", name="clusterIP")
    type: str = ""
    ip_families: list[str] | None = None
    publish_not_ready_addresses: bool = False
    traffic_distribution: str = ""


class ServiceMetadata(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The fields of a service's metadata that its view needs."""

    name: str = ""
    creation_timestamp: str | None = None


class Service(msgspec.Struct, frozen=True, dict=True):
    """The fields of a v1 Service that controllers read; the class needs a `__dict__` for cached properties."""

    metadata: ServiceMetadata
    spec: ServiceSpec = ServiceSpec()

    @cached_property
    def created_at(self) -> int | None:
        """The creation time of the service in microseconds since 1970; None if the metadata contains no time."""
        text = self.metadata.creation_timestamp
        return parse_time(text) if text else None

    @property
    def is_headless(self) -> bool:
        """Return whether the service's cluster IP is empty or "None" (the negation of `helper.IsServiceIPSet`)."""
        return self.spec.cluster_ip in ("", CLUSTER_IP_NONE)

    @property
    def selects_endpoints(self) -> bool:
        """Return whether a controller maintains the endpoints of the service.

        The control plane manages the endpoints of a service that has a selector and is not of type ExternalName.
        """
        return self.spec.selector is not None and self.spec.type != "ExternalName"

    @cached_property
    def primary_family(self) -> str | None:
        """The IP family of the service's Endpoints; None if the family depends only on the pods."""
        spec = self.spec
        if spec.ip_families:
            return spec.ip_families[0]
        if spec.cluster_ip and spec.cluster_ip != CLUSTER_IP_NONE:
            return ip_family(spec.cluster_ip)
        return None


class ContainerPort(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """v1 ContainerPort."""

    name: str = ""
    container_port: int = 0
    protocol: str = "TCP"


class Container(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The fields of a v1 Container that controllers read."""

    name: str = ""
    ports: list[ContainerPort] | None = None
    restart_policy: str | None = None


class PodIP(msgspec.Struct, frozen=True, gc=False):
    """v1 PodIP."""

    ip: str = ""


class PodCondition(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The fields of a v1 PodCondition that controllers read."""

    type: str
    status: str = ""
    last_transition_time: str | None = None


class PodSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The fields of a v1 PodSpec that controllers read."""

    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    node_name: str = ""
    hostname: str = ""
    subdomain: str = ""


class ContainerStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The fields of a v1 ContainerStatus that controllers read."""

    name: str = ""
    restart_count: int = 0


class PodStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The fields of a v1 PodStatus that controllers read."""

    phase: str = ""
    conditions: list[PodCondition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    pod_ip: str = msgspec.field(default="", name="podIP")
    pod_ips: list[PodIP] | None = msgspec.field(default=None, name="podIPs")


class PodMetadata(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The fields of a pod's metadata that its view needs."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    deletion_timestamp: str | None = None


class PodAddress(NamedTuple):
    """An address of a pod, and its sort key: the IP address, then the pod's uid.

    Go compares the IP address and the uid byte by byte (`LessEndpointAddress`), which for UTF-8 is the order of
    Python's strings. The sort key contains a NUL between the IP address and the uid, because NUL sorts before all other
    characters.
    """

    order: str
    address: EndpointAddress


class Pod(msgspec.Struct, frozen=True, dict=True):
    """The fields of a v1 Pod that controllers read; the class needs a `__dict__` for cached properties."""

    metadata: PodMetadata
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @cached_property
    def is_terminating(self) -> bool:
        """Return whether the pod's deletion has been requested."""
        return self.metadata.deletion_timestamp is not None

    @cached_property
    def is_terminal(self) -> bool:
        """Return whether all containers of the pod have terminated, according to the pod's phase."""
        return self.status.phase in ("Failed", "Succeeded")

    @cached_property
    def ready_condition(self) -> PodCondition | None:
        """The pod's first condition of type Ready."""
        return next((each for each in self.status.conditions or () if each.type == "Ready"), None)

    @cached_property
    def is_ready(self) -> bool:
        """Return whether the pod's Ready condition is True."""
        return self.ready_condition is not None and self.ready_condition.status == "True"

    @cached_property
    def ready_changed_at(self) -> int | None:
        """The time of the last change of the Ready condition, in microseconds since 1970.

        The value is None if the time is missing.
        """
        text = self.ready_condition and self.ready_condition.last_transition_time
        return parse_time(text) if text else None

    @cached_property
    def restarts(self) -> tuple[int, int]:
        """The highest restart count of the pod's containers, and the highest restart count of its sidecars."""
        sidecars = {each.name for each in self.spec.init_containers or () if each.restart_policy == "Always"}
        containers = self.status.container_statuses or ()
        started = (each for each in self.status.init_container_statuses or () if each.name in sidecars)
        most = max((each.restart_count for each in containers), default=0)
        return most, max((each.restart_count for each in started), default=0)

    @cached_property
    def ips(self) -> tuple[str, ...]:
        """The pod's IP addresses, the primary address first; a pod that sets only `podIP` has one address."""
        listed = tuple(each.ip for each in self.status.pod_ips or () if each.ip)
        return listed or ((self.status.pod_ip,) if self.status.pod_ip else ())

    @cached_property
    def addresses(self) -> Mapping[str, PodAddress]:
        """The pod's first address of each IP family, in the form of an Endpoints address without a hostname.

        In Go, `nodeName` is a pointer to the pod's field. Therefore `node_name` is an empty string for a pod without a
        node, and not None.
        """
        meta = self.metadata
        reference = ObjectReference("Pod", meta.namespace, meta.name, meta.uid)
        found: dict[str, PodAddress] = {}
        for ip in self.ips:
            address = EndpointAddress(ip, node_name=self.spec.node_name, target_ref=reference)
            found.setdefault(ip_family(ip), PodAddress(f"{ip}\0{meta.uid}", address))
        return found

    @cached_property
    def named_ports(self) -> Mapping[tuple[str, str], int]:
        """The container port of each pair of name and protocol, as `FindPort` (`pkg/api/v1/pod/util.go`) finds it.

        If several container ports have the same name and protocol, the first of these ports is used. The ports of
        sidecars (init containers that always restart) follow the ports of containers.
        """
        sidecars = [each for each in self.spec.init_containers or () if each.restart_policy == "Always"]
        found: dict[tuple[str, str], int] = {}
        for container in (*(self.spec.containers or ()), *sidecars):
            for port in container.ports or ():
                found.setdefault((port.name, port.protocol), port.container_port)
        return found


class NodeCondition(msgspec.Struct, frozen=True, gc=False):
    """The fields of a v1 NodeCondition that controllers read."""

    type: str
    status: str = ""


class NodeStatus(msgspec.Struct, frozen=True, gc=False):
    """The fields of a v1 NodeStatus that controllers read."""

    allocatable: dict[str, str] | None = None
    conditions: list[NodeCondition] | None = None


class Node(msgspec.Struct, frozen=True, gc=False):
    """The fields of a v1 Node that controllers read."""

    status: NodeStatus = NodeStatus()

    @property
    def is_ready(self) -> bool:
        """Return whether the node's first condition of type Ready is True."""
        found = next((each.status for each in self.status.conditions or () if each.type == "Ready"), "")
        return found == "True"

    @property
    def cpu(self) -> int:
        """The allocatable CPU of the node in billionths of a CPU; 0 if the node's status contains no such value."""
        return quantity.parse((self.status.allocatable or {}).get("cpu", "0"))


class NamespaceStatus(msgspec.Struct, frozen=True, gc=False):
    """The fields of a v1 NamespaceStatus that controllers read."""

    phase: str = ""


class Namespace(msgspec.Struct, frozen=True, gc=False):
    """The fields of a v1 Namespace that controllers read."""

    status: NamespaceStatus = NamespaceStatus()

    @property
    def is_terminating(self) -> bool:
        """Return whether the namespace's phase is Terminating.

        The admission plugin NamespaceLifecycle refuses new objects in a terminating namespace.
        """
        return self.status.phase == "Terminating"
