"""Finds inconsistencies between Services' node ports and the claims on ports.

Guarantees: reasons and messages are the same as in Kubernetes' `portallocator/controller/repair.go`. The node ports of
a Service are the ports in its spec and the port of its health check, regardless of its type. Every node port in a
Service's spec counts as used.

Claims on node ports are in the log, but not in the API. Therefore a leaked claim on a node port is logged and not
recorded as an Event. Kubernetes also only logs leaked node ports, because it stores the claims as bits in a bitmap. In
Kubernetes, PortRangeFull cannot occur. In ctrlmgr, PortRangeFull is reported if a Service needs another port and no
port is free.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import INTERNAL_API_VERSION
from ctrlmgr.controllers.repair.repair_findings import (
    Action,
    Finding,
    FindingTexts,
    ServiceValue,
    find_misheld,
    parent_of,
)
from ctrlmgr.kinds.allocators.allocation_claims import Claim, ParentReference
from ctrlmgr.kinds.allocators.service_ranges import NODE_PORTS, PortRange

_NOT_ALLOCATED = "PortNotAllocated"
_TCP = "TCP"


class _Port(msgspec.Struct, rename="camel", gc=False):
    protocol: str = _TCP
    node_port: int = 0


class _Spec(msgspec.Struct, rename="camel", gc=False):
    ports: list[_Port] | None = None
    health_check_node_port: int = 0


class _Service(msgspec.Struct, gc=False):
    spec: _Spec = msgspec.field(default_factory=_Spec)


def find_port_findings(services: Iterable[Object], claims: Sequence[Object], ports: PortRange) -> list[Finding]:
    """Return the findings about node ports; `claims` are the claims on node ports, and `ports` is the allowed range."""
    held, used, findings = list[ServiceValue](), set[str](), list[Finding]()
    for service in services:
        for port in collect_ports(service):
            use = ServiceValue(str(port), service)
            used.add(use.value)
            if port in ports:
                held.append(use)
            else:
                findings.append(_out_of_range(use, ports))
    by_port = {claim.name: claim for claim in claims}
    findings += find_misheld(held, by_port, _WORDS)
    findings += _full(findings, {use.value for use in held}.union(by_port), ports)
    findings += [_leak(claim) for claim in claims if claim.name not in used]
    return findings


def describe_port(port: str) -> str:
    """Return a port in the format of Kubernetes' messages."""
    return f"port {port}"


def collect_ports(service: Object) -> list[int]:
    """Return the node ports of a Service (`collectServiceNodePorts`).

    A port that a Service uses for two protocols is returned once. A port that a Service uses twice for the same
    protocol is returned twice.
    """
    spec = service.view(_Service).spec
    protocols: dict[int, set[str]] = {}
    found: list[int] = []
    for port in spec.ports or ():
        if port.node_port:
            known = protocols.setdefault(port.node_port, set())
            if not known or port.protocol in known:
                found.append(port.node_port)
            known.add(port.protocol)
    health = spec.health_check_node_port
    if health and (health not in protocols or _TCP in protocols[health]):
        found.append(health)
    return found


def port_claim(use: ServiceValue) -> Object:
    """Return a claim on a port as the allocator creates it, without the fields that the server sets."""
    head = {"kind": "NodePort", "apiVersion": INTERNAL_API_VERSION, "metadata": {"name": use.value}}
    return Object(NODE_PORTS, msgspec.json.encode({**head, "spec": {"parentRef": parent_of(use.service)}}))


def _corrected(use: ServiceValue, claim: Object) -> Object:
    return Object.from_dict({**claim.to_dict(), "spec": port_claim(use).to_dict()["spec"]})


def _out_of_range(use: ServiceValue, ports: PortRange) -> Finding:
    message = f"Port {use.value} is not within the port range {ports}; please recreate service"
    return Finding("outOfRange", "PortOutOfRange", use.service, use.value, message)


def _unclaimed(use: ServiceValue) -> Finding:
    message = f"Port {use.value} is not allocated; repairing"
    return Finding("repair", _NOT_ALLOCATED, use.service, use.value, message, Action.CLAIM, port_claim(use))


def _misclaimed(use: ServiceValue, claim: Object) -> Finding:
    return _unclaimed(use)._replace(action=Action.CORRECT, claim=_corrected(use, claim), wrong=claim)


def _blemished(use: ServiceValue, claim: Object) -> None:
    """Return None, because a claim on a port has no other fields that could have a wrong value."""


def _duplicate(use: ServiceValue) -> Finding:
    message = f"Port {use.value} was assigned to multiple services; please recreate service"
    return Finding("duplicate", "PortAlreadyAllocated", use.service, use.value, message)


_WORDS = FindingTexts(_unclaimed, _misclaimed, _blemished, _duplicate)


def _full(findings: Sequence[Finding], taken: set[str], ports: PortRange) -> list[Finding]:
    """Return a finding for each Service that needs another port, if no port is free in the range."""
    if len(taken) < ports.count or sum(ports.index(name) is not None for name in taken) < ports.count:
        return []
    message = f"Port range {ports} is full; you must widen the port range in order to create new services"
    needing = (each for each in findings if each.problem in ("duplicate", "outOfRange"))
    return [Finding("full", "PortRangeFull", each.subject, each.value, message) for each in needing]


def _leak(claim: Object) -> Finding:
    parent = claim.view(Claim).parent or ParentReference()
    message = (
        f"the node port {claim.name} for Service {parent.namespace}/{parent.name} appears to have leaked: cleaning up"
    )
    return Finding("leak", "PortLeaked", claim, claim.name, message, Action.RELEASE, claim, silent=True)
