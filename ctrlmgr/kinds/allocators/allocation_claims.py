"""Claims are objects in the log that record which Service owns an address or a node port.

Guarantees:
- The name of a claim is the claimed address or port in canonical form. Therefore the log itself refuses a second claim
  on the same value.
- A claim on an address is a networking.k8s.io/v1 `IPAddress`, as in Kubernetes (`ipallocator.k8s.io`). A claim on a
  port is a `NodePort` of an internal group, which is visible in the log and in SQL but not in the API.
- A claim is released only if the releasing Service owns it.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from ctrlmgr.api.object import Object, ObjectMeta
from ctrlmgr.api.resource import INTERNAL_API_VERSION, Key, Resource
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.generated_names import new_uid
from ctrlmgr.engine.strategy import Context, View
from ctrlmgr.engine.validation.ip_validation import is_ipv6
from ctrlmgr.eventlog.event import EventType, Proposal
from ctrlmgr.kinds.allocators.service_ranges import IP_ADDRESSES, IPV4, IPV6, NODE_PORTS

LABEL_FAMILY = "ipaddress.kubernetes.io/ip-family"
LABEL_MANAGED_BY = "ipaddress.kubernetes.io/managed-by"
ALLOCATOR = "ipallocator.k8s.io"
"""The value of the label `LABEL_MANAGED_BY` on IPAddress objects that this server creates."""

_encode = msgspec.json.Encoder().encode


class ParentReference(msgspec.Struct, frozen=True, omit_defaults=True):
    """The reference to the owner of a claim; for claims that this server creates, the owner is a Service."""

    group: str = ""
    resource: str = ""
    namespace: str = ""
    name: str = ""


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    parent_ref: ParentReference | None = None


class Claim(msgspec.Struct, frozen=True):
    """The fields of a claim that identify its owner; `object.view(Claim)` decodes them."""

    spec: _Spec = _Spec()

    @property
    def parent(self) -> ParentReference | None:
        """The owner of the claim; None if the claim has no owner."""
        return self.spec.parent_ref


class ServiceClaims(NamedTuple):
    """The claims of one Service: addresses in canonical form, and node ports."""

    addresses: frozenset[str]
    ports: frozenset[int]


NOTHING = ServiceClaims(frozenset(), frozenset())


def service_parent(service: Unstructured) -> ParentReference:
    """Return the reference to a Service."""
    metadata = service["metadata"]
    return parent_of(Key(metadata.get("namespace") or "", metadata.get("name") or ""))


def parent_of(key: Key) -> ParentReference:
    """Return the reference to the Service with this key."""
    return ParentReference("", "services", key.namespace, key.name)


def is_claimed(view: View, resource: Resource, name: str) -> bool:
    """Return whether there is a claim with the name `name`."""
    return view.get(resource, Key("", name)) is not None


def exchange(ctx: Context, parent: ParentReference, before: ServiceClaims, after: ServiceClaims) -> None:
    """Add proposals to the write; in the same append, they replace the claims `before` by the claims `after`."""
    companions = ctx.companions
    for address in sorted(after.addresses - before.addresses):
        companions.append(Proposal(EventType.ADDED, _claim_address(ctx, parent, address), 0))
    for port in sorted(after.ports - before.ports):
        companions.append(Proposal(EventType.ADDED, _claim_port(ctx, parent, port), 0))
    for address in sorted(before.addresses - after.addresses):
        companions += _released(ctx.view, parent, IP_ADDRESSES, address)
    for port in sorted(before.ports - after.ports):
        companions += _released(ctx.view, parent, NODE_PORTS, str(port))


def _released(view: View, parent: ParentReference, resource: Resource, name: str) -> list[Proposal]:
    claim = view.get(resource, Key("", name))
    if claim is None or claim.view(Claim).parent != parent:
        return []
    return [Proposal(EventType.DELETED, claim, claim.revision)]


def _claim_address(ctx: Context, parent: ParentReference, address: str) -> Object:
    labels = {LABEL_FAMILY: IPV6 if is_ipv6(address) else IPV4, LABEL_MANAGED_BY: ALLOCATOR}
    metadata = ObjectMeta(name=address, uid=new_uid(ctx.random), creation_timestamp=ctx.now, labels=labels)
    return _claim(IP_ADDRESSES, "IPAddress", "networking.k8s.io/v1", metadata, parent)


def _claim_port(ctx: Context, parent: ParentReference, port: int) -> Object:
    metadata = ObjectMeta(name=str(port), uid=new_uid(ctx.random), creation_timestamp=ctx.now)
    return _claim(NODE_PORTS, "NodePort", INTERNAL_API_VERSION, metadata, parent)


def _claim(resource: Resource, kind: str, api_version: str, metadata: ObjectMeta, parent: ParentReference) -> Object:
    spec = {"parentRef": parent}
    body = _encode({"kind": kind, "apiVersion": api_version, "metadata": metadata, "spec": spec})
    return Object(resource, body, 0, metadata)
