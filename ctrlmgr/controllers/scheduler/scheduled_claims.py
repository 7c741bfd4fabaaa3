"""Handles the resource claims of pods: their existence, node requirements, allocation and reservation.

Guarantees, as in Kubernetes (`pkg/scheduler/framework/plugins/dynamicresources`, and `resourceclaim` of
`dynamic-resource-allocation`):
- A pod with a missing claim is not queued (`PreEnqueue`): it stays pending, without a condition or an Event, until all
  its claims exist.
- A pod is bound only to a node that can access the devices of all its claims, and only after the claims are allocated
  and reserved for the pod.
- A claim whose devices no node of its pod can reach is deallocated if no other pod uses it.

Extended resources of device classes are not allocated by this module, and binding does not wait for binding conditions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Protocol

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.quantity import parse
from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.client import EngineClient
from ctrlmgr.errors import Conflict, NotFound
from ctrlmgr.scheduling.cluster_model import PodInfo
from ctrlmgr.scheduling.dynamic_resources import IN_USE, NO_DEVICES, Allocated, Allocating, Devices, SliceIndex
from ctrlmgr.scheduling.node_selection import NodeSelector
from ctrlmgr.scheduling.scheduling_view import PodClaimView
from ctrlmgr.scheduling.structured.allocator import Claim, UsedDevices
from ctrlmgr.scheduling.structured.pools import DeviceID, Fields, NodePlace, Slice
from ctrlmgr.scheduling.structured.results import allocations

RESOURCE_CLAIMS: Final = Resource("resource.k8s.io", "resourceclaims")
DEVICE_CLASSES: Final = Resource("resource.k8s.io", "deviceclasses")
RESOURCE_SLICES: Final = Resource("resource.k8s.io", "resourceslices")
MOST_CONSUMERS: Final = 256
"""The maximum number of pods that share a claim (`ResourceClaimReservedForMaxSize`)."""
FINALIZER: Final = "resource.kubernetes.io/delete-protection"
"""The finalizer of claims that are allocated."""


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


class _Result(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool = False
    share_id: str | None = msgspec.field(default=None, name="shareID")
    consumed_capacity: dict[str, str] | None = None

    @property
    def id(self) -> DeviceID:
        return DeviceID(self.driver, self.pool, self.device)


class _Results(msgspec.Struct, frozen=True, gc=False):
    results: list[_Result] | None = None


class _Allocation(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    node_selector: NodeSelector | None = None
    devices: _Results = _Results()


class _Consumer(msgspec.Struct, frozen=True, gc=False):
    uid: str = ""


class _ClaimStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    allocation: _Allocation | None = None
    reserved_for: list[_Consumer] | None = None


class _Claim(msgspec.Struct, frozen=True, gc=False):
    spec: _ClaimSpec = _ClaimSpec()
    status: _ClaimStatus = _ClaimStatus()

    @property
    def results(self) -> Sequence[_Result]:
        """The allocated devices, except those with admin access, which do not make a device unavailable."""
        allocation = self.status.allocation
        found = (allocation.devices.results or ()) if allocation is not None else ()
        return [each for each in found if not each.admin_access]


class _MissingError(Exception):
    """Raised if a claim of a pod cannot be used; the message contains the reason."""


class Listed(Protocol):
    """The interface of a lister of one resource."""

    def get(self, key: Key) -> Object | None:
        """Return the object with this key; None if it does not exist."""

    def list(self, namespace: str | None = None) -> Sequence[Object]:
        """Return the objects of one namespace; None means all namespaces."""


class AllocatedDevices:
    """The devices that are allocated to claims; this state is updated with each change of a claim."""

    def __init__(self) -> None:
        """Create the state without any claims."""
        self.taken = UsedDevices()
        # The last known state of each claim.
        self._known: dict[Key, Object] = {}

    def newest(self, claim: Object) -> Object:
        """Return the newest known state of a claim, given its state in a cache."""
        known = self._known.get(claim.key)
        return known if known is not None and known.uid == claim.uid and known.revision > claim.revision else claim

    def put(self, claim: Object) -> None:
        """Replace the recorded state of a claim, unless a newer state is known."""
        known = self._known.get(claim.key)
        if known is not None and known.uid == claim.uid and known.revision >= claim.revision:
            return
        self.drop(claim.key)
        self._known[claim.key] = claim
        for each in claim.view(_Claim).results:
            self.taken.add(each.id, _portions(each), 1)

    def drop(self, key: Key) -> None:
        """Remove a claim and its devices from the state."""
        known = self._known.pop(key, None)
        for each in known.view(_Claim).results if known is not None else ():
            self.taken.add(each.id, _portions(each), -1)


def _portions(result: _Result) -> dict[str, int] | None:
    if result.share_id is None:
        return None
    return {name: parse(amount) for name, amount in (result.consumed_capacity or {}).items()}


class DeviceClaims:
    """Finds, allocates and reserves the resource claims of pods."""

    def __init__(self, listing: Callable[[Resource], Listed]) -> None:
        """Create an instance that reads the listers that the function `listing` returns for each resource."""
        self._claims = listing(RESOURCE_CLAIMS)
        self._classes = listing(DEVICE_CLASSES)
        self._slices = listing(RESOURCE_SLICES)
        self._allocated: AllocatedDevices | None = None
        self._index: SliceIndex | None = None

    def follow(self) -> None:
        """Start to keep the state of ResourceClaims and ResourceSlices.

        The caller must call `note` for each change of a claim or slice.
        """
        self._allocated, self._index = AllocatedDevices(), None

    def note(self, obj: Object, *, is_deleted: bool) -> None:
        """Update the state with a changed claim or slice."""
        if self._allocated is None:
            return
        if obj.resource == RESOURCE_SLICES:
            self._index = None
        elif obj.resource == RESOURCE_CLAIMS and is_deleted:
            self._allocated.drop(obj.key)
        elif obj.resource == RESOURCE_CLAIMS:
            self._allocated.put(obj)

    def missing(self, pod: PodInfo) -> str:
        """Return the reason why a pod cannot be queued yet; "" if all its claims exist and belong to the pod."""
        try:
            for _ in self._of(pod):
                pass
        except _MissingError as problem:
            return str(problem)
        return ""

    def of(self, pod: PodInfo) -> Devices:
        """Return the node requirements of a pod's claims, or the problem with these claims."""
        if not pod.view.spec.resource_claims:
            return NO_DEVICES
        try:
            claims = [*self._of(pod)]
        except _MissingError as missing:
            return Devices(problem=str(missing))
        problem = next(filter(None, (self._problem(each.view(_Claim), pod) for each in claims)), "")
        if problem:
            return Devices(problem=problem)
        waiting = [_claim_of(each) for each in claims if each.view(_Claim).status.allocation is None]
        found = tuple(_allocated(each, pod) for each in claims if each.view(_Claim).status.allocation is not None)
        return Devices(found, self._allocating(waiting) if waiting else None)

    def reserve(
        self, pod: PodInfo, node: NodePlace, devices: Devices, client: EngineClient, now: str, new_id: Callable[[], str]
    ) -> None:
        """Allocate the pod's claims for a node with the devices that were chosen, and reserve these claims.

        `now` is RFC 3339. Raises `Conflict` if a claim is unusable, and the errors of `client` if a write fails.
        """
        try:
            claims = [*self._of(pod)]
        except _MissingError as problem:
            raise Conflict(str(problem)) from problem
        results = self._results(node, devices, new_id)
        for claim in claims:
            result = results.get(str(claim.key))
            if result is not None or not _is_reserved(claim.view(_Claim), pod):
                self._written(_reserve(claim, pod, result, client, now))

    def deallocate(self, key: Key, client: EngineClient) -> None:
        """Remove the allocation of a claim; raises the errors of `client` if the write fails."""
        claim = self._newest(self._claims.get(key))
        if claim is None or claim.view(_Claim).status.allocation is None:
            return
        status = {**claim.to_dict()["status"]}
        for each in ("reservedFor", "allocation", "devices"):
            status.pop(each, None)
        self._written(client.update(claim.with_field("status", status), "status"))

    def _results(self, node: NodePlace, devices: Devices, new_id: Callable[[], str]) -> dict[str, dict[str, Any]]:
        """Return the possible allocations of devices on a node, by claim."""
        if devices.allocating is None:
            return {}
        claims = devices.allocating.claims
        solution = devices.allocating.on(node.name, node.labels)
        if isinstance(solution, str):
            raise Conflict(solution)
        return dict(zip([each.name for each in claims], allocations(claims, solution, node.name, new_id), strict=True))

    def _written(self, claim: Object) -> None:
        if self._allocated is not None:
            self._allocated.put(claim)

    def _newest(self, claim: Object | None) -> Object | None:
        return claim if claim is None or self._allocated is None else self._allocated.newest(claim)

    def _allocating(self, claims: Sequence[Claim]) -> Allocating:
        if self._allocated is not None:
            self._index = self._index or self._indexed()
            return Allocating(claims, self._index, self._class, self._allocated.taken)
        allocated = AllocatedDevices()
        for each in self._claims.list():
            allocated.put(each)
        return Allocating(claims, self._indexed(), self._class, allocated.taken)

    def _indexed(self) -> SliceIndex:
        return SliceIndex([Slice(each.name, each.to_dict()["spec"]) for each in self._slices.list()])

    def _class(self, name: str) -> Fields | None:
        found = self._classes.get(Key("", name))
        return None if found is None else found.to_dict()

    def _problem(self, claim: _Claim, pod: PodInfo) -> str:
        status = claim.status
        if status.allocation is not None:
            is_full = len(status.reserved_for or ()) >= MOST_CONSUMERS
            return IN_USE if is_full and not _is_reserved(claim, pod) else ""
        for name, class_ in _classes_of(claim):
            if self._classes.get(Key("", class_)) is None:
                return f"request {name}: device class {class_} does not exist"
        return ""

    def _of(self, pod: PodInfo) -> Iterator[Object]:
        """Yield the resource claims of a pod.

        Raises `_MissingError` if a claim does not exist or belongs to another pod.
        """
        for each in pod.view.spec.resource_claims or ():
            name = _name(pod, each)
            if name is None:
                continue  # No claim was created from the template, which is allowed.
            claim = self._newest(self._claims.get(Key(pod.namespace, name)))
            if claim is None:
                raise _MissingError(f'could not find claim "{pod.namespace}/{name}"')
            if claim.is_terminating:
                raise _MissingError(f'resourceclaim "{name}" is being deleted')
            if each.resource_claim_name is None and not _is_of(claim, pod):
                where = f"was not created for pod {pod.namespace}/{pod.key.name} (pod is not owner)"
                raise _MissingError(f"ResourceClaim {pod.namespace}/{name} {where}")
            yield claim


def _claim_of(claim: Object) -> Claim:
    return Claim(str(claim.key), claim.to_dict()["spec"])


def _allocated(claim: Object, pod: PodInfo) -> Allocated:
    status = claim.view(_Claim).status
    selector = status.allocation.node_selector if status.allocation is not None else None
    return Allocated(claim.key, selector, all(each.uid == pod.uid for each in status.reserved_for or ()))


def _reserve(claim: Object, pod: PodInfo, result: dict[str, Any] | None, client: EngineClient, now: str) -> Object:
    """Write a claim with its new allocation, if there is a new allocation, and with the pod as a user.

    Return the stored claim.
    """
    if result is not None and FINALIZER not in (claim.metadata.finalizers or ()):
        claim = client.update(claim.with_metadata(finalizers=[*(claim.metadata.finalizers or ()), FINALIZER]))
    status = {**(claim.to_dict().get("status") or {})}
    if result is not None:
        status["allocation"] = {"allocationTimestamp": now, **result}
    elif "allocation" not in status:
        raise NotFound(f"claim {claim.key} got deallocated elsewhere in the meantime")
    consumer = {"resource": "pods", "name": pod.key.name, "uid": pod.uid}
    status["reservedFor"] = [*(status.get("reservedFor") or ()), consumer]
    return client.update(claim.with_field("status", status), "status")


def _name(pod: PodInfo, reference: PodClaimView) -> str | None:
    """Return the name of the claim for an entry of a pod; None if no claim was needed (`Name` of `resourceclaim`)."""
    if reference.resource_claim_name is not None:
        return reference.resource_claim_name
    for each in pod.view.status.resource_claim_statuses or ():
        if each.name == reference.name:
            return each.resource_claim_name
    raise _MissingError(f'pod "{pod.namespace}/{pod.key.name}": ResourceClaim not created yet')


def _is_of(claim: Object, pod: PodInfo) -> bool:
    return any(each.controller and each.uid == pod.uid for each in claim.metadata.owner_references or ())


def _is_reserved(claim: _Claim, pod: PodInfo) -> bool:
    return any(each.uid == pod.uid for each in claim.status.reserved_for or ())


def _classes_of(claim: _Claim) -> Iterator[tuple[str, str]]:
    """Yield the requests of a claim, each with the name of its device class."""
    for request in claim.spec.devices.requests or ():
        if request.exactly is not None:
            yield request.name, request.exactly.device_class_name
        for each in request.first_available or ():
            yield f"{request.name}/{each.name}", each.device_class_name
