"""Decodes ResourceClaims, and counts the devices that are allocated to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.quantity import parse
from ctrlmgr.api.resource import Key
from ctrlmgr.scheduling.node_selection import NodeSelector
from ctrlmgr.scheduling.structured.allocator import UsedDevices
from ctrlmgr.scheduling.structured.pools import DeviceID


class _Exactly(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    device_class_name: str = ""


class _Alternative(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    name: str = ""
    device_class_name: str = ""


class _Request(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    name: str = ""
    exactly: _Exactly | None = None
    first_available: list[_Alternative] | None = None


class _DeviceClaim(msgspec.Struct, frozen=True, gc=False):
    requests: list[_Request] | None = None


class _ClaimSpec(msgspec.Struct, frozen=True, gc=False):
    devices: _DeviceClaim = _DeviceClaim()


class DeviceResult(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The fields of a v1 DeviceRequestAllocationResult that scheduling uses."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool = False
    share_id: str | None = msgspec.field(default=None, name="shareID")
    consumed_capacity: dict[str, str] | None = None

    @property
    def id(self) -> DeviceID:
        """Return the identity of an allocated device."""
        return DeviceID(self.driver, self.pool, self.device)


class _Results(msgspec.Struct, frozen=True, gc=False):
    results: list[DeviceResult] | None = None


class _Allocation(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    node_selector: NodeSelector | None = None
    devices: _Results = _Results()


class _Consumer(msgspec.Struct, frozen=True, gc=False):
    uid: str = ""


class _ClaimStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    allocation: _Allocation | None = None
    reserved_for: list[_Consumer] | None = None


class ClaimFields(msgspec.Struct, frozen=True, gc=False):
    """The fields of a v1 ResourceClaim that scheduling uses."""

    spec: _ClaimSpec = _ClaimSpec()
    status: _ClaimStatus = _ClaimStatus()

    @property
    def results(self) -> Sequence[DeviceResult]:
        """The devices that the allocation makes unavailable; devices with admin access stay available."""
        allocation = self.status.allocation
        found = (allocation.devices.results or ()) if allocation is not None else ()
        return [each for each in found if not each.admin_access]


class AllocatedDevices:
    """The devices that are allocated to claims; this state is updated with each change of a claim."""

    def __init__(self) -> None:
        """Create the state without any claims."""
        self.taken = UsedDevices()
        # The last known state of each claim.
        self._known: dict[Key, Object] = {}
        # Claims with the allocations that are being written.
        self._pending: dict[Key, Object] = {}

    def newest(self, claim: Object) -> Object:
        """Return the newest known state of a claim, given its state in a cache."""
        known = self._known.get(claim.key)
        return known if known is not None and known.uid == claim.uid and known.revision > claim.revision else claim

    def put(self, claim: Object) -> None:
        """Record the state of a claim, unless a newer state is already recorded."""
        known = self._known.get(claim.key)
        if known is not None and known.uid == claim.uid and known.revision >= claim.revision:
            return
        self.drop(claim.key)
        if claim.view(ClaimFields).status.allocation is not None:
            self.settle(claim.key)
        self._known[claim.key] = claim
        self._count(claim, 1)

    def drop(self, key: Key) -> None:
        """Remove a claim and its devices from the state."""
        known = self._known.pop(key, None)
        if known is not None:
            self._count(known, -1)

    def assume(self, claim: Object) -> None:
        """Count the devices of a claim whose allocation is being written."""
        self.settle(claim.key)
        self._pending[claim.key] = claim
        self._count(claim, 1)

    def settle(self, key: Key) -> None:
        """Stop counting the devices of an allocation that is no longer being written."""
        pending = self._pending.pop(key, None)
        if pending is not None:
            self._count(pending, -1)

    def is_pending(self, claim: Object) -> bool:
        """Return whether an allocation of the claim is being written."""
        pending = self._pending.get(claim.key)
        return pending is not None and pending.uid == claim.uid

    def _count(self, claim: Object, sign: int) -> None:
        for each in claim.view(ClaimFields).results:
            self.taken.add(each.id, _portions(each), sign)


def _portions(result: DeviceResult) -> dict[str, int] | None:
    if result.share_id is None:
        return None
    return {name: parse(amount) for name, amount in (result.consumed_capacity or {}).items()}


def classes_of(claim: ClaimFields) -> Iterator[tuple[str, str]]:
    """Yield the requests of a claim, each with the name of its device class."""
    for request in claim.spec.devices.requests or ():
        if request.exactly is not None:
            yield request.name, request.exactly.device_class_name
        for each in request.first_available or ():
            yield f"{request.name}/{each.name}", each.device_class_name
