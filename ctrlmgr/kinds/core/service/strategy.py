"""The strategy of Services; their fields depend on each other, on the Service type, and on other objects.

Guarantees: responses, including those to dry runs, are the same as in Kubernetes 1.36. The append that stores a Service
also creates its claims on addresses and ports. The append that removes a Service also releases its claims.

The strategy calls other modules. The module `defaults` sets the defaults. The modules `families` and
`service_allocation` allocate values. The modules `validation`, `address_validation` and `status` validate, and
`warnings` warns.

Source: Kubernetes `pkg/registry/core/service`.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ctrlmgr.api.field import FieldError
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import ENDPOINTS
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.strategy import Context, Strategy
from ctrlmgr.engine.validation.name_formats import label_name
from ctrlmgr.eventlog.event import EventType, Proposal
from ctrlmgr.kinds.allocators.allocation import Allocator
from ctrlmgr.kinds.allocators.service_ranges import DEFAULT_RANGES, Ranges
from ctrlmgr.kinds.core.service.defaults import (
    drop_foreign_fields,
    drop_unused_policy,
    keep_allocated,
    link_addresses,
    set_defaults,
)
from ctrlmgr.kinds.core.service.service_allocation import allocate_for_create, allocate_for_update, release_all
from ctrlmgr.kinds.core.service.spec import LOAD_BALANCER
from ctrlmgr.kinds.core.service.status import validate_status
from ctrlmgr.kinds.core.service.validation import validate_change, validate_service
from ctrlmgr.kinds.core.service.warnings import service_warnings, status_warnings


class _Spec(msgspec.Struct, rename="camel"):
    cluster_ip: str = msgspec.field(name="clusterIP", default="")
    type: str = ""


class _Selectable(msgspec.Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)


class ServiceStrategy(Strategy):
    """The strategy of Services, with the ranges from which addresses and ports are allocated."""

    allow_create_on_update = True
    returns_deleted = True
    revalidates = 0  # names and labels that were valid when the object was created are not validated again
    name_check = staticmethod(label_name)
    fields = ("spec.clusterIP", "spec.type")

    def __init__(self, ranges: Ranges = DEFAULT_RANGES) -> None:
        """Create the strategy with these ranges of addresses and node ports."""
        self.allocator = Allocator(ranges)

    def default(self, obj: Unstructured) -> None:
        """Set the defaults that depend only on the Service."""
        set_defaults(obj)

    def begin_create(self, ctx: Context, obj: Unstructured) -> None:
        """Allocate addresses and node ports for a new Service."""
        link_addresses(obj["spec"], None)
        allocate_for_create(ctx, obj, self.allocator)

    def begin_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> None:
        """Allocate the addresses and ports that the update needs, and release unused addresses and ports."""
        if ctx.subresource:
            return
        keep_allocated(new["spec"], old["spec"])
        link_addresses(new["spec"], old["spec"])
        allocate_for_update(ctx, new, old, self.allocator)

    def prepare_for_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> None:
        """Clear fields, including the load balancer's status, that Services of the new type do not have."""
        if ctx.subresource:
            return
        drop_foreign_fields(new["spec"], old["spec"])
        new["status"] = old.get("status") or {}
        if new["spec"].get("type") != LOAD_BALANCER:
            new["status"] = {**new["status"], "loadBalancer": {}}

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate the update and the Service; invalid values are allowed if the old Service contained them."""
        if ctx.subresource:
            return []
        changes = [] if ctx.old is None else validate_change(obj["spec"], ctx.old["spec"])
        return changes + validate_service(obj, ctx.old)

    def validate_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> list[FieldError]:
        """Validate the new status of a Service."""
        return validate_status(new, old) if ctx.subresource else []

    def warnings(self, ctx: Context, obj: Unstructured, old: Unstructured | None) -> list[str]:
        """Return the warnings for the Service or its status."""
        return status_warnings(obj) if ctx.subresource == "status" else service_warnings(obj)

    def conceal(self, obj: Unstructured) -> None:
        """Clear the internal traffic policy of a Service without a clusterIP.

        A Service without a clusterIP has no traffic inside the cluster.
        """
        drop_unused_policy(obj["spec"])

    def begin_delete(self, ctx: Context, obj: Object) -> None:
        """Release the addresses and ports.

        Delete the Endpoints, so that a new Service of the same name has no old Endpoints.
        """
        release_all(ctx, obj.to_dict())
        endpoints = ctx.view.get(ENDPOINTS, obj.key)
        if endpoints is not None and not endpoints.metadata.finalizers:
            ctx.companions.append(Proposal(EventType.DELETED, endpoints, endpoints.revision))

    def selectable(self, obj: Object) -> Mapping[str, str]:
        """Return the clusterIP and the type of a Service, for field selectors."""
        spec = obj.view(_Selectable).spec
        return {"spec.clusterIP": spec.cluster_ip, "spec.type": spec.type}
