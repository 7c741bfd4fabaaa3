"""Typed views of the group `discovery.k8s.io`: an EndpointSlice and its parts, which controllers read and write.

Guarantees: the views can decode every object that a client was able to write, and they encode objects in Go's field
order with Go's `omitempty`. A field that is None stands for Go's nil pointer, which differs from "" and False.

Rules come from Kubernetes' `staging/src/k8s.io/api/discovery/v1`.
"""

from __future__ import annotations

import msgspec

from ctrlmgr.api.core import ObjectReference

SERVICE_NAME = "kubernetes.io/service-name"
"""The label that contains the name of a slice's service."""

MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
"""The label that contains the name of the controller that manages a slice."""

SKIP_MIRROR = "endpointslice.kubernetes.io/skip-mirror"
"""The label that excludes an Endpoints object from mirroring if its value is `true`."""


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
    """v1 EndpointHints: the zones and nodes whose clients should use an endpoint."""

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
        """Return whether the endpoint's `ready` condition is true.

        As in `EndpointReady`, the result is False if the condition is missing.
        """
        return self.conditions.ready is True


class EndpointPort(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """v1 EndpointPort of `discovery.k8s.io`, which differs from the EndpointPort of Endpoints."""

    name: str | None = None
    protocol: str | None = None
    port: int | None = None
    app_protocol: str | None = None


class EndpointSlice(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The fields of a v1 EndpointSlice that controllers read."""

    address_type: str = ""
    endpoints: list[Endpoint] | None = None
    ports: list[EndpointPort] | None = None
