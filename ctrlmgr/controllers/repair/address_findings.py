"""Finds inconsistencies between Services' ClusterIPs and IPAddress objects.

Guarantees: reasons and messages are the same as in Kubernetes 1.36's `ipallocator/controller/repairip.go`. Only the
reason ServiceCIDRFull comes from `repair.go`, the controller before 1.36's. If the allocator did not create an
IPAddress and no Service uses its address, the IPAddress is ignored. Every address in a Service's spec counts as used,
whether it is valid or not.

In Kubernetes, ServiceCIDRFull cannot occur, because the allocation of a specific address never reports that the range
is full. In ctrlmgr, ServiceCIDRFull is reported if a Service needs another address and no address is free.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple, TypeAlias

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.controllers.repair.repair_findings import (
    Action,
    Finding,
    FindingTexts,
    ServiceValue,
    find_misheld,
    parent_of,
)
from ctrlmgr.engine.validation.ip_validation import parse_ip
from ctrlmgr.kinds.allocators.allocation_claims import (
    ALLOCATOR,
    LABEL_FAMILY,
    LABEL_MANAGED_BY,
    Claim,
    ParentReference,
)
from ctrlmgr.kinds.allocators.service_cidrs import networks
from ctrlmgr.kinds.allocators.service_ranges import IP_ADDRESSES, IPV4, IPV6, AddressRange, Ranges

_Ranges: TypeAlias = Sequence[AddressRange]

_NOT_ALLOCATED = "ClusterIPNotAllocated"
_NONE = "None"


class _Spec(msgspec.Struct, rename="camel", gc=False):
    type: str = ""
    cluster_ip: str = msgspec.field(name="clusterIP", default="")
    cluster_ips: list[str] | None = msgspec.field(name="clusterIPs", default=None)


class _Service(msgspec.Struct, gc=False):
    spec: _Spec = msgspec.field(default_factory=_Spec)


class _Checked(NamedTuple):
    """The ClusterIPs that Services use."""

    held: list[ServiceValue]
    """The valid ClusterIPs within the ranges, each with the Service that uses it."""
    used: set[str]
    """All ClusterIPs in the specs of Services, in canonical form."""
    holders: set[ParentReference]
    """All existing Services."""
    findings: list[Finding]
    """The findings about ClusterIPs that are invalid or outside of the ranges."""


def find_address_findings(
    services: Iterable[Object], addresses: Sequence[Object], configured: Ranges, service_cidrs: Iterable[Object] = ()
) -> list[Finding]:
    """Return the findings about ClusterIPs; `addresses` are the IPAddress objects.

    A ClusterIP may come from the `configured` ranges and from every ServiceCIDR, in any state.
    """
    ranges = _ranges(configured, service_cidrs)
    checked = _check(services, ranges)
    claims = {claim.name: claim for claim in addresses}
    findings = checked.findings
    findings += find_misheld(checked.held, claims, _WORDS)
    findings += _full(findings, {use.value for use in checked.held}.union(claims), ranges)
    unused = (claim for claim in addresses if _is_ours(claim) and claim.name not in checked.used)
    findings += [_leak(claim, checked.holders) for claim in unused]
    return findings


def _ranges(configured: Ranges, service_cidrs: Iterable[Object]) -> _Ranges:
    found = {each.network: each for each in configured.addresses}
    for service_cidr in service_cidrs:
        for network in networks(service_cidr):
            found.setdefault(network, AddressRange(network, reserved=0))
    return tuple(found.values())


def _check(services: Iterable[Object], ranges: _Ranges) -> _Checked:
    checked = _Checked([], set(), set(), [])
    for service in services:
        checked.holders.add(parent_of(service))
        for text in _addresses(service):
            use = _use(text, service, ranges)
            if use is None:
                checked.findings.append(_invalid(service, text))
                continue
            checked.used.add(use.value)
            if _is_in_range(use.value, ranges):
                checked.held.append(use)
            else:
                checked.findings.append(_out_of_range(use))
    return checked


def _use(text: str, service: Object, ranges: _Ranges) -> ServiceValue | None:
    """Return the use of an address by a Service, with the address in canonical form.

    The result is None if the address is invalid.
    """
    if _is_in_range(text, ranges):
        return ServiceValue(text, service)
    address = parse_ip(text)
    return None if address is None else ServiceValue(str(address), service)


def _is_in_range(text: str, ranges: _Ranges) -> bool:
    """Return whether `text` is an address within a range, and has the canonical form of the names of IPAddresses."""
    return any((index := each.index(text)) is not None and each[index] == text for each in ranges)


def _addresses(service: Object) -> Sequence[str]:
    """Return the ClusterIPs in a Service's spec (`helper.IsServiceIPSet`)."""
    spec = service.view(_Service).spec
    if spec.type == "ExternalName" or spec.cluster_ip in ("", _NONE):
        return ()
    return spec.cluster_ips or (spec.cluster_ip,)


def address_claim(use: ServiceValue) -> Object:
    """Return an IPAddress for a Service as the allocator creates it, without the fields that the server sets."""
    labels = {LABEL_FAMILY: _family(use.value), LABEL_MANAGED_BY: ALLOCATOR}
    head = {
        "kind": "IPAddress",
        "apiVersion": "networking.k8s.io/v1",
        "metadata": {"name": use.value, "labels": labels},
    }
    return Object(IP_ADDRESSES, msgspec.json.encode({**head, "spec": {"parentRef": parent_of(use.service)}}))


def describe_address(address: str) -> str:
    """Return an address in the format of Kubernetes' messages."""
    return f"ClusterIP [{_family(address)}]: {address}"


def _family(address: str) -> str:
    """Return the IP family of an address in canonical form."""
    return IPV6 if ":" in address else IPV4


def _is_ours(claim: Object) -> bool:
    return claim.labels.get(LABEL_MANAGED_BY) == ALLOCATOR


def _shown(use: ServiceValue, separator: str = ": ") -> str:
    return f"[{_family(use.value)}]{separator}{use.value}"


def _invalid(service: Object, text: str) -> Finding:
    message = f"Cluster IP {text} is not a valid IP; please recreate Service"
    return Finding("invalid", "ClusterIPNotValid", service, text, message)


def _out_of_range(use: ServiceValue) -> Finding:
    message = f"Cluster IP {_shown(use)} is not within any configured Service CIDR; please recreate service"
    return Finding("outOfRange", "ClusterIPOutOfRange", use.service, use.value, message)


def _unclaimed(use: ServiceValue) -> Finding:
    message = f"Cluster IP {_shown(use)} is not allocated; repairing"
    return Finding("repair", _NOT_ALLOCATED, use.service, use.value, message, Action.CLAIM, address_claim(use))


def _misclaimed(use: ServiceValue, claim: Object) -> Finding:
    name = f"{use.service.namespace}/{use.service.name}"
    message = f"the ClusterIP {_shown(use)} for Service {name} has a wrong reference; repairing"
    return _corrected(_NOT_ALLOCATED, use.service, use, message, claim)


def _blemished(use: ServiceValue, claim: Object) -> Finding | None:
    """Return the finding about wrong labels, which Kubernetes corrects without an Event."""
    if _is_ours(claim) and claim.labels.get(LABEL_FAMILY) == _family(use.value):
        return None
    message = f"the labels of IPAddress {use.value} are not the allocator's; repairing"
    return _corrected("IPAddressWrongLabels", claim, use, message, claim)._replace(silent=True)


def _corrected(reason: str, subject: Object, use: ServiceValue, message: str, claim: Object) -> Finding:
    """Return a finding whose correction replaces an IPAddress (`recreateIPAddress`).

    The parent of an IPAddress is immutable, so an update is not possible.
    """
    return Finding("repair", reason, subject, use.value, message, Action.CORRECT, address_claim(use), claim)


def _duplicate(use: ServiceValue) -> Finding:
    message = f"Cluster IP {_shown(use, ':')} was assigned to multiple services; please recreate service"
    return Finding("duplicate", "ClusterIPAlreadyAllocated", use.service, use.value, message)


_WORDS = FindingTexts(_unclaimed, _misclaimed, _blemished, _duplicate)


def _full(findings: Sequence[Finding], taken: set[str], ranges: _Ranges) -> list[Finding]:
    """If all ranges of an IP family are full, return a finding for each Service that needs another address."""
    needing = [each for each in findings if each.problem in ("duplicate", "outOfRange")]
    of_family = {family: [each for each in ranges if each.family == family] for family in (IPV4, IPV6)}
    families = {_family(each.value) for each in needing}
    full = {each for each in families if of_family[each] and all(_is_full(one, taken) for one in of_family[each])}
    return [_no_address_left(each, of_family[family][0]) for each in needing if (family := _family(each.value)) in full]


def _no_address_left(finding: Finding, addresses: AddressRange) -> Finding:
    message = (
        f"Service CIDR {addresses} is full; you must widen the CIDR in order to create new services "
        f"for Cluster IP {_shown(ServiceValue(finding.value, finding.subject), ':')}"
    )
    return Finding("full", "ServiceCIDRFull", finding.subject, finding.value, message)


def _is_full(addresses: AddressRange, taken: set[str]) -> bool:
    count = addresses.count
    return len(taken) >= count and sum(addresses.index(name) is not None for name in taken) >= count


def _leak(claim: Object, holders: Collection[ParentReference]) -> Finding:
    """Return the finding for an IPAddress whose address no Service uses (`syncIPAddress`)."""
    parent = claim.view(Claim).parent or ParentReference()
    holder = f"{parent.namespace}/{parent.name}"
    reason = "IPAddressNotAllocated"
    if parent.group or parent.resource != "services":
        shown = f"&{{{parent.group} {parent.resource} {parent.namespace} {parent.name}}}"
        message = (
            f"IPAddress {claim.name} appears to have been modified, not referencing a Service {shown}: cleaning up"
        )
    elif parent in holders:
        reason = "IPAddressWrongReference"
        message = f"IPAddress: {claim.name} for Service {holder} has a wrong reference; cleaning up"
    else:
        message = f"IPAddress: {claim.name} for Service {holder} appears to have leaked: cleaning up"
    return Finding("leak", reason, claim, claim.name, message, Action.RELEASE, claim)
