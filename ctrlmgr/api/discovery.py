"""Typed views of group `discovery.k8s.io`: what an EndpointSlice is made of, read and written.

Guarantees: everything here decodes what any client may have written, and encodes in Go's field order with Go's
`omitempty`; None is Go's nil pointer, which "" and False are not.

Rules come from Kubernetes' `staging/src/k8s.io/api/discovery/v1`.
"""

from __future__ import annotations

import msgspec

from ctrlmgr.api.core import ObjectReference

SERVICE_NAME = "kubernetes.io/service-name"
"""The label that names the service which a slice belongs to."""

MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
"""The label that names who keeps a slice."""

SKIP_MIRROR = "endpointslice.kubernetes.io/skip-mirror"
"""The label that, being `true`, keeps an Endpoints object from being mirrored."""


class EndpointConditions(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """v1 EndpointConditions."""

    ready: bool | None = None
    serving: bool | None = None
    terminating: bool | None = None


class ForZone(msgspec.Struct, frozen=True, gc=False):
    """v1 ForZone."""

    name: str = ""


class ForNode(msgspec.Struct, frozen=True, gc=False):
    """v1 ForNode."""

    name: str = ""


class EndpointHints(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """v1 EndpointHints: whose clients should use an endpoint."""

    for_zones: list[ForZone] | None = None
    for_nodes: list[ForNode] | None = None


class Endpoint(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """v1 Endpoint."""

    addresses: list[str]
    conditions: EndpointConditions = msgspec.field(default_factory=EndpointConditions)
    hostname: str | None = None
    target_ref: ObjectReference | None = None
    deprecated_topology: dict[str, str] | None = None
    node_name: str | None = None
    zone: str | None = None
    hints: EndpointHints | None = None

    @property
    def is_ready(self) -> bool:
        """Whether it is said to be ready; not to say counts as not ready here, as with `EndpointReady`."""
        return self.conditions.ready is True


class EndpointPort(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """v1 EndpointPort of `discovery.k8s.io`, which is not the one of Endpoints."""

    name: str | None = None
    protocol: str | None = None
    port: int | None = None
    app_protocol: str | None = None


class EndpointSlice(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What is read of a v1 EndpointSlice."""

    address_type: str = ""
    endpoints: list[Endpoint] | None = None
    ports: list[EndpointPort] | None = None
