"""Allocates the addresses and node ports of Services, and releases unused addresses and ports.

Guarantees:

- The append that stores a Service also adds the claims on its new addresses and ports, and deletes the claims on
  released addresses and ports. An update that changes neither addresses nor ports changes no claim.
- Errors have Kubernetes' messages and status codes. The status code is 422 if a requested value is not available, and
  500 if a range is full.

The steps of an allocation have the same order as in `pkg/registry/core/service/storage/alloc.go`. The changes of claims
are computed from the difference between the old and the new Service, so that no claim can leak and no value has two
owners.
"""

from __future__ import annotations

from collections.abc import Sequence

from ctrlmgr.api.field import Path, errors_of, invalid, refuse
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.strategy import Context
from ctrlmgr.engine.validation.name_formats import path_segment_name
from ctrlmgr.errors import ApiError, InternalError, StatusCause, StatusDetails
from ctrlmgr.kinds.allocators.allocation import FULL, Allocator
from ctrlmgr.kinds.allocators.allocation_claims import NOTHING, exchange, service_parent
from ctrlmgr.kinds.allocators.service_ranges import IP_ADDRESSES
from ctrlmgr.kinds.core.service.families import init_families, keeps_dual_stack
from ctrlmgr.kinds.core.service.spec import (
    EXTERNAL_NAME,
    NONE,
    allocates_node_ports,
    has_address,
    has_node_ports,
    holdings,
    items,
    needs_health_check,
    node_ports,
)
from ctrlmgr.kinds.networking.ip_address import validate_parent

_ADDRESSES = Path("spec.clusterIPs")
_PORTS = Path("spec.ports")


def allocate_for_create(ctx: Context, service: Unstructured, allocator: Allocator) -> None:
    """Set the allocated fields of a new Service; raises `ApiError` if an allocation fails."""
    _Request(ctx, service, None, allocator).fill()


def allocate_for_update(ctx: Context, new: Unstructured, old: Unstructured, allocator: Allocator) -> None:
    """Set the allocated fields of an updated Service, and release unused values.

    Raises `ApiError` if an allocation fails.
    """
    _Request(ctx, new, old, allocator).fill()


def release_all(ctx: Context, service: Unstructured) -> None:
    """Release all addresses and ports of a deleted Service."""
    exchange(ctx, service_parent(service), holdings(service), NOTHING)


class _Request:
    """A create or update of a Service; `old` is None for a create."""

    def __init__(self, ctx: Context, service: Unstructured, old: Unstructured | None, allocator: Allocator) -> None:
        self.ctx = ctx
        self.service = service
        self.spec: Unstructured = service["spec"]
        self.old = old
        self.was: Unstructured | None = None if old is None else old["spec"]
        self.families = allocator.ranges.families
        self.allocation = allocator.begin(ctx)
        self.parent = service_parent(service)

    def fill(self) -> None:
        """Determine the IP families before the allocations, because all allocations depend on the IP families."""
        if errors := errors_of(lambda: init_families(self.spec, self.was, self.families)):
            raise refuse("Service", "", self.parent.name, errors)
        self.fill_addresses()
        self.fill_ports()
        self.fill_health_check_port()
        if not self.ctx.dry_run:
            before = NOTHING if self.old is None else holdings(self.old)
            exchange(self.ctx, self.parent, before, holdings(self.service))

    def fill_addresses(self) -> None:
        """Allocate all addresses of a Service that has none.

        If a Service becomes dual-stack, allocate its second address.
        """
        spec, was = self.spec, self.was
        if spec.get("type") == EXTERNAL_NAME or items(spec, "clusterIPs")[:1] == [NONE]:
            return
        if was is None or not has_address(was):
            self.allocate_addresses(0)
        elif items(was, "clusterIPs")[:1] == [NONE] or keeps_dual_stack(spec, was):
            return
        elif len(items(was, "ipFamilies")) == 1 and len(items(spec, "ipFamilies")) == 2:
            self.allocate_addresses(1)

    def allocate_addresses(self, first: int) -> None:
        """Allocate an address for each IP family from index `first` on: the requested address, or any free address."""
        families = self.spec["ipFamilies"]
        addresses = list(items(self.spec, "clusterIPs"))
        addresses += [""] * (len(families) - len(addresses))
        for index in range(first, len(families)):
            addresses[index] = self.allocate_address(families[index], addresses[index], addresses)
        self.spec["clusterIPs"] = addresses
        self.spec["clusterIP"] = addresses[0]

    def allocate_address(self, family: str, requested: str, addresses: Sequence[str]) -> str:
        """Return the address `requested`, or any free address if `requested` is empty; errors show `addresses`."""
        if requested:
            problem = self.allocation.address_problem(family, requested)
            address: str | None = requested
        else:
            problem, address = "", self.allocation.next_address(family)
        if address is None:
            raise _no_address()
        problem = problem or self.claim_problem(address)
        if problem:
            what = f"IP {requested}" if requested else "IP"
            raise self.refuse(_ADDRESSES, list(addresses), f"failed to allocate {what}: {problem}")
        return address

    def claim_problem(self, address: str) -> str:
        """Return the reason why a Service cannot have claims.

        The name of the Service must be valid, because claims refer to it.
        """
        name = self.parent.name
        if self.ctx.dry_run or (name and not path_segment_name(name)):
            return ""
        return str(refuse("IPAddress", IP_ADDRESSES.group, address, validate_parent(self.parent)))

    def fill_ports(self) -> None:
        """Allocate the node ports of a Service.

        When a Service is created, ports with the same number share one node port, for example a TCP port and a UDP
        port.
        """
        if not has_node_ports(self.spec):
            return
        kept = set(node_ports(self.was)) if self.was is not None and has_node_ports(self.was) else set()
        shared: dict[int, int] = {}
        for index, port in enumerate(items(self.spec, "ports")):
            if port.get("nodePort") or allocates_node_ports(self.spec):
                if self.was is None:
                    self.share_port(index, port, shared)
                else:
                    self.change_port(index, port, kept)

    def share_port(self, index: int, port: Unstructured, shared: dict[int, int]) -> None:
        """Allocate the node port of one port of a new Service (`initNodePorts`).

        If another port with the same number requests a node port, allocate that node port. If no other port with the
        same number requests a node port, allocate any free node port.
        """
        number, requested = port.get("port") or 0, port.get("nodePort") or 0
        if known := shared.get(number):
            if requested and requested != known:
                self.take_port(index, requested)
            port["nodePort"] = requested or known
            return
        ports = items(self.spec, "ports")
        wanted = next((each["nodePort"] for each in ports if each.get("nodePort") and each.get("port") == number), 0)
        if wanted:
            self.take_port(index, wanted)
        port["nodePort"] = shared[number] = wanted or self.next_port()

    def change_port(self, index: int, port: Unstructured, kept: set[int]) -> None:
        """Allocate the node port of one port of an updated Service (`updateNodePorts`).

        The argument `kept` contains the node ports that the Service already has.
        """
        requested = port.get("nodePort")
        if not requested:
            requested = port["nodePort"] = self.next_port()
        elif requested not in kept:
            self.take_port(index, requested)
        kept.add(requested)

    def take_port(self, index: int, port: int) -> None:
        """Claim the requested node port of the port at `index`.

        Raises `ApiError` if the node port is not available.
        """
        if problem := self.allocation.claim_port(port):
            raise self.refuse(_PORTS.at(index).child("nodePort"), port, problem)

    def next_port(self) -> int:
        """Allocate any free node port; raises `ApiError` if the range is full."""
        port = self.allocation.next_port()
        if port is None:
            raise _internal_error(f"failed to allocate a nodePort: {FULL}")
        return port

    def fill_health_check_port(self) -> None:
        """Allocate the node port for health checks if the Service now needs one."""
        if not needs_health_check(self.spec) or (self.was is not None and needs_health_check(self.was)):
            return
        if requested := self.spec.get("healthCheckNodePort"):
            if problem := self.allocation.claim_port(requested):
                raise _internal_error(f"failed to allocate requested HealthCheck NodePort {requested}: {problem}")
        elif (port := self.allocation.next_port()) is not None:
            self.spec["healthCheckNodePort"] = port
        else:
            raise _internal_error(f"failed to allocate a HealthCheck NodePort 0: {FULL}")

    def refuse(self, path: Path, value: object, detail: str) -> ApiError:
        """Return the 422 error for one invalid value."""
        return refuse("Service", "", self.parent.name, [invalid(path, value, detail)])


def _no_address() -> InternalError:
    return _internal_error(f"failed to allocate a serviceIP: {FULL}")


def _internal_error(problem: str) -> InternalError:
    """Return the error for a problem that has no specific error code (`errors.NewInternalError`)."""
    return InternalError(
        f"Internal error occurred: {problem}", details=StatusDetails(causes=(StatusCause(message=problem),))
    )
