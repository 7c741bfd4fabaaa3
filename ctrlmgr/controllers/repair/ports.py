"""Node ports: what is wrong between the Services and the claims on ports.

Guarantees: reasons and messages are those of Kubernetes' `portallocator/controller/repair.go`. What a Service has is
what its ports and its health check say, whatever its type. Every port that a Service names counts as used.

A claim on a port is in the log but not in the API, so a leaked one is told of in the process's log and not by an
Event, as in Kubernetes, where it is a bit in a bitmap. Its PortRangeFull cannot happen there; here it says that a
Service is told to get another port and there is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import INTERNAL_API_VERSION
from ctrlmgr.controllers.repair.findings import Action, Finding, Use, Words, find_misheld, parent_of
from ctrlmgr.kinds.allocators.claims import Claim, ParentReference
from ctrlmgr.kinds.allocators.ranges import NODE_PORTS, PortRange

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
    """Return what is wrong; `claims` are those on node ports, `ports` what they may come from."""
    held, used, findings = list[Use](), set[str](), list[Finding]()
    for service in services:
        for port in collect_ports(service):
            use = Use(str(port), service)
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
    """Name a port as Kubernetes' messages do."""
    return f"port {port}"


def collect_ports(service: Object) -> list[int]:
    """Return the node ports a Service has (`collectServiceNodePorts`).

    A port that it has for two protocols is one, one that it has twice for the same protocol is two.
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


def port_claim(use: Use) -> Object:
    """Return a claim on a port for a Service, as the allocator would make it, without what it is given when created."""
    head = {"kind": "NodePort", "apiVersion": INTERNAL_API_VERSION, "metadata": {"name": use.value}}
    return Object(NODE_PORTS, msgspec.json.encode({**head, "spec": {"parentRef": parent_of(use.service)}}))


def _corrected(use: Use, claim: Object) -> Object:
    return Object.from_dict({**claim.to_dict(), "spec": port_claim(use).to_dict()["spec"]})


def _out_of_range(use: Use, ports: PortRange) -> Finding:
    message = f"Port {use.value} is not within the port range {ports}; please recreate service"
    return Finding("outOfRange", "PortOutOfRange", use.service, use.value, message)


def _unclaimed(use: Use) -> Finding:
    message = f"Port {use.value} is not allocated; repairing"
    return Finding("repair", _NOT_ALLOCATED, use.service, use.value, message, Action.CLAIM, port_claim(use))


def _misclaimed(use: Use, claim: Object) -> Finding:
    return _unclaimed(use)._replace(action=Action.CORRECT, claim=_corrected(use, claim), wrong=claim)


def _blemished(use: Use, claim: Object) -> None:
    """Find nothing: a claim on a port says no more than whose it is."""


def _duplicate(use: Use) -> Finding:
    message = f"Port {use.value} was assigned to multiple services; please recreate service"
    return Finding("duplicate", "PortAlreadyAllocated", use.service, use.value, message)


_WORDS = Words(_unclaimed, _misclaimed, _blemished, _duplicate)


def _full(findings: Sequence[Finding], taken: set[str], ports: PortRange) -> list[Finding]:
    """Return a finding for each Service that needs another port when there is none left."""
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
