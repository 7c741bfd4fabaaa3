"""Simulates the network for containers on simulated nodes: names, Services, and the results of connections.

Guarantees: a Service accepts a connection to a port if the Service has the port, and a ready endpoint for the port.
Names are resolved with the same search domains as in a pod (`pkg/kubelet/network/dns`). No data is transferred, so
every response is empty. Hosts outside the cluster exist and accept every connection.

Times are in seconds of the pod's life.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

DOMAIN: Final = "cluster.local"
ELSEWHERE: Final = "192.0.2.1"
"""The address of every host outside the cluster; RFC 5737 reserves it for examples."""
LOCALHOST: Final = "127.0.0.1"

UNKNOWN_HOST: Final = "unknown host"
REFUSED: Final = "connection refused"
TIMEOUT: Final = "connection timed out"


class Answer(NamedTuple):
    """The result of a connection, or of the resolution of a name."""

    address: str = ELSEWHERE
    problem: str = ""
    """The error of the connection; empty if the connection succeeded."""


class Network(Protocol):
    """The simulated network during the life of a pod."""

    def connect(self, host: str, port: int | None, at: float) -> Answer:
        """Connect to a port of a host; if no port is given, only resolve the host's name."""

    def next_change(self, after: float) -> float | None:
        """Return the next time at which a host that the pod has used changes; None if the time is not known."""


class Open:
    """A network in which every host exists and accepts connections."""

    def connect(self, host: str, port: int | None, at: float) -> Answer:
        """Accept every connection."""
        return Answer(LOCALHOST if is_local(host) else ELSEWHERE)

    def next_change(self, after: float) -> None:
        """Return None, because this network never changes."""


OPEN: Final = Open()


class Slice(NamedTuple):
    """The ready endpoints of an EndpointSlice."""

    ports: frozenset[str] = frozenset()
    """The names of the ports that have ready endpoints."""
    address: str = ""
    """The address of one of the ready endpoints."""
    hosts: tuple[tuple[str, str], ...] = ()
    """The host names of ready endpoints, with their addresses."""

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Slice:
        """Return the ready endpoints of an EndpointSlice; endpoints without conditions count as ready."""
        found = [
            each for each in fields.get("endpoints") or () if (each.get("conditions") or {}).get("ready") is not False
        ]
        ready = [each for each in found if each.get("addresses")]
        hosts = [(each["hostname"], each["addresses"][0]) for each in ready if each.get("hostname")]
        names = [each.get("name") or "" for each in fields.get("ports") or ()]
        return cls(frozenset(names if ready else ()), ready[0]["addresses"][0] if ready else "", tuple(hosts))


class ServiceState(NamedTuple):
    """The state of a Service at one time."""

    address: str = ""
    """The cluster IP of the Service; empty for a headless Service."""
    external: str = ""
    """The external name of the Service; empty if the Service has none."""
    ports: tuple[tuple[int, bool], ...] = ()
    """The ports of the Service; for each port, whether the port has ready endpoints."""
    is_ready: bool = False
    """Whether the Service has at least one ready endpoint."""
    endpoint: str = ""
    """The address of a ready endpoint; only headless Services need this field."""
    hosts: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, fields: Mapping[str, Any], slices: Sequence[Slice]) -> ServiceState:
        """Return the state of a Service, given its EndpointSlices."""
        spec = fields.get("spec") or {}
        ready = frozenset[str]().union(*(each.ports for each in slices))
        address = spec.get("clusterIP") or ""
        addresses = [each.address for each in slices if each.address]
        is_headless = address in ("", "None")
        return cls(
            "" if is_headless else address,
            (spec.get("externalName") or "") if spec.get("type") == "ExternalName" else "",
            tuple((each["port"], (each.get("name") or "") in ready) for each in spec.get("ports") or ()),
            bool(addresses),
            addresses[0] if addresses and is_headless else "",
            tuple(host for each in slices for host in each.hosts),
        )

    def connect(self, port: int | None) -> Answer:
        """Connect to a port of the Service; if no port is given, only resolve the Service's name."""
        if self.external:
            return Answer()
        if not self.address:  # The Service is headless, so its name resolves to its ready endpoints.
            return Answer(self.endpoint) if self.is_ready else Answer("", UNKNOWN_HOST)
        if port is None:
            return Answer(self.address)
        if port not in dict(self.ports):
            return Answer(self.address, TIMEOUT)
        return Answer(self.address, "" if dict(self.ports)[port] else REFUSED)

    def connect_host(self, host: str) -> Answer:
        """Connect to the endpoint of the Service that has this host name."""
        address = dict(self.hosts).get(host)
        return Answer(address) if address else Answer("", UNKNOWN_HOST)


class ServiceName(NamedTuple):
    """A Service, or one of its endpoints, to which a name may refer."""

    namespace: str
    name: str
    host: str = ""
    """The host name of the endpoint; empty if the name refers to the Service itself."""


def is_local(host: str) -> bool:
    """Return whether a host name or address refers to the pod itself."""
    return host.lower() in ("localhost", "::1") or host.startswith("127.")


def is_address(host: str) -> bool:
    """Return whether a host is an IP address."""
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def candidates(host: str, namespace: str) -> Iterator[ServiceName]:
    """Yield the Services to which a name may refer in a pod, in the order of search domains."""
    whole = host.lower()
    if whole.endswith("."):
        domains: Iterable[str] = ("",)
    else:
        domains = (f".{namespace}.svc.{DOMAIN}", f".svc.{DOMAIN}", f".{DOMAIN}", "")
    for domain in domains:
        labels = f"{whole.rstrip('.')}{domain}".split(".")
        if labels[-3:] == ["svc", *DOMAIN.split(".")] and 5 <= len(labels) <= 6:
            *first, name, within = labels[:-3]
            yield ServiceName(within, name, "".join(first))


def is_of_cluster(host: str, namespaces: Iterable[str]) -> bool:
    """Return whether a name can only belong to the cluster; if no Service has such a name, the name is unknown."""
    labels = host.lower().rstrip(".").split(".")
    is_domain = labels[-1] == "svc" or labels[-2:] == DOMAIN.split(".")
    return len(labels) == 1 or is_domain or (len(labels) <= 3 and labels[-1] in namespaces)
