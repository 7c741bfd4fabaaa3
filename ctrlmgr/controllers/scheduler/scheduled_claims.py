"""Handles the resource claims of pods: their existence, node requirements, allocation and reservation.

Guarantees, as in Kubernetes (`pkg/scheduler/framework/plugins/dynamicresources`, and `resourceclaim` of
`dynamic-resource-allocation`):
- A pod with a missing claim is not queued (`PreEnqueue`): it stays pending, without a condition or an Event, until all
  its claims exist.
- A pod is bound only to a node that can access the devices of all its claims, and only after the claims are allocated
  and reserved for the pod.
- If no suitable node for a pod can reach the devices of a claim, and no other pod uses the claim, the claim is
  deallocated.

This module does not allocate extended resources of device classes, and binding does not wait for binding conditions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple, Protocol

import structlog

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.client import EngineClient
from ctrlmgr.controllers.scheduler.claim_allocations import AllocatedDevices, ClaimFields, classes_of
from ctrlmgr.engine.features.gates import is_on
from ctrlmgr.errors import Conflict, CtrlmgrError
from ctrlmgr.scheduling.cluster_model import PodInfo
from ctrlmgr.scheduling.dynamic_resources import IN_USE, NO_DEVICES, Allocated, Allocating, Devices, SliceIndex
from ctrlmgr.scheduling.scheduling_view import PodClaimView
from ctrlmgr.scheduling.structured.allocator import Claim
from ctrlmgr.scheduling.structured.pools import Fields, NodePlace, Slice
from ctrlmgr.scheduling.structured.results import allocations
from ctrlmgr.scheduling.structured.tainting_rules import DEVICE_TAINT_RULES, GATE, in_order, with_rules

log = structlog.get_logger(__name__)

RESOURCE_CLAIMS: Final = Resource("resource.k8s.io", "resourceclaims")
DEVICE_CLASSES: Final = Resource("resource.k8s.io", "deviceclasses")
RESOURCE_SLICES: Final = Resource("resource.k8s.io", "resourceslices")
MOST_CONSUMERS: Final = 256
"""The maximum number of pods that share a claim (`ResourceClaimReservedForMaxSize`)."""
FINALIZER: Final = "resource.kubernetes.io/delete-protection"
"""The finalizer of claims that are allocated."""


class Reservation(NamedTuple):
    """A claim to reserve for a pod, and its new allocation.

    The allocation is None if the claim is allocated already.
    """

    claim: Object
    allocation: dict[str, Any] | None = None


class _MissingError(Exception):
    """Raised if a claim of a pod cannot be used; the message contains the reason."""


class Listed(Protocol):
    """The interface of a lister of one resource."""

    def get(self, key: Key) -> Object | None:
        """Return the object with the given key; None if no object has the key."""

    def list(self, namespace: str | None = None) -> Sequence[Object]:
        """Return the objects of one namespace; None means all namespaces."""


class DeviceClaims:
    """Finds, allocates and reserves the resource claims of pods."""

    def __init__(self, listing: Callable[[Resource], Listed]) -> None:
        """Create an instance that reads the listers that the function `listing` returns for each resource."""
        self._claims = listing(RESOURCE_CLAIMS)
        self._classes = listing(DEVICE_CLASSES)
        self._slices = listing(RESOURCE_SLICES)
        self._rules = listing(DEVICE_TAINT_RULES) if is_on(GATE) else None
        self._allocated: AllocatedDevices | None = None
        self._index: SliceIndex | None = None

    def follow(self) -> None:
        """Start keeping the state of ResourceClaims, ResourceSlices and DeviceTaintRules.

        The caller must call `note` for each change of a claim, slice or rule.
        """
        self._allocated, self._index = AllocatedDevices(), None

    def note(self, obj: Object, *, is_deleted: bool) -> None:
        """Update the state with a changed claim, slice or rule."""
        if self._allocated is None:
            return
        if obj.resource in (RESOURCE_SLICES, DEVICE_TAINT_RULES):
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
        problem = next(filter(None, (self._problem(each, pod) for each in claims)), "")
        if problem:
            return Devices(problem=problem)
        waiting = [_claim_of(each) for each in claims if each.view(ClaimFields).status.allocation is None]
        found = tuple(_allocated(each, pod) for each in claims if each.view(ClaimFields).status.allocation is not None)
        return Devices(found, self._allocating(waiting) if waiting else None)

    def reserve(
        self, pod: PodInfo, node: NodePlace, devices: Devices, new_id: Callable[[], str]
    ) -> tuple[Reservation, ...]:
        """Return the writes that allocate and reserve the pod's claims for a node; count their devices from now on.

        Raises `Conflict` if a claim is unusable.
        """
        try:
            claims = [*self._of(pod)]
        except _MissingError as problem:
            raise Conflict(str(problem)) from problem
        results = self._results(node, devices, new_id)
        found = [Reservation(each, results.get(str(each.key))) for each in claims]
        for each in found:
            if each.allocation is not None and self._allocated is not None:
                self._allocated.assume(_with_allocation(each.claim, each.allocation))
        return tuple(each for each in found if each.allocation or not _is_reserved(each.claim.view(ClaimFields), pod))

    def settle(self, reservations: Sequence[Reservation], written: Sequence[Object]) -> None:
        """Record the claims that were written, and stop counting the devices of reservations that were not written."""
        for each in written:
            self._written(each)
        for reserved in reservations:
            if self._allocated is not None:
                self._allocated.settle(reserved.claim.key)

    def deallocate(self, key: Key, client: EngineClient) -> None:
        """Remove the allocation of a claim; raises the errors of `client` if the write fails."""
        claim = self._newest(self._claims.get(key))
        if claim is None or claim.view(ClaimFields).status.allocation is None:
            return
        status = {**claim.to_dict()["status"]}
        for each in ("reservedFor", "allocation", "devices"):
            status.pop(each, None)
        self._written(client.update(claim.with_field("status", status), "status"))

    def unreserve(self, pod: PodInfo, client: EngineClient) -> None:
        """Remove the pod from the claims that are reserved for it (`Unreserve`); a failed write is not retried."""
        try:
            claims = [*self._of(pod)]
        except _MissingError:
            return
        entry = {"$patch": "delete", "uid": pod.uid}
        for claim in claims:
            if claim.view(ClaimFields).status.allocation is None or not _is_reserved(claim.view(ClaimFields), pod):
                continue
            try:
                patch = {"metadata": {"uid": claim.uid}, "status": {"reservedFor": [entry]}}
                self._written(client.patch(claim, patch, "status"))
            except CtrlmgrError as error:
                log.info("removing reservation failed", claim=str(claim.key), error=str(error))

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
        rules = in_order(self._rules.list()) if self._rules is not None else ()
        slices = (Slice(each.name, each.to_dict()["spec"]) for each in self._slices.list())
        return SliceIndex([with_rules(each, rules) for each in slices])

    def _class(self, name: str) -> Fields | None:
        found = self._classes.get(Key("", name))
        return None if found is None else found.to_dict()

    def _problem(self, obj: Object, pod: PodInfo) -> str:
        claim = obj.view(ClaimFields)
        status = claim.status
        if status.allocation is not None:
            is_full = len(status.reserved_for or ()) >= MOST_CONSUMERS
            return IN_USE if is_full and not _is_reserved(claim, pod) else ""
        if self._allocated is not None and self._allocated.is_pending(obj):
            return f"resource claim {obj.key} is in the process of being allocated"
        for name, class_ in classes_of(claim):
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
    status = claim.view(ClaimFields).status
    selector = status.allocation.node_selector if status.allocation is not None else None
    return Allocated(claim.key, selector, all(each.uid == pod.uid for each in status.reserved_for or ()))


def write_reservation(reservation: Reservation, pod: PodInfo, client: EngineClient, now: str) -> Object:
    """Write a claim: set its new allocation, if there is one, and add the pod to the users of the claim.

    `now` is the current time in the format of RFC 3339. Return the stored claim. Raises the errors of `client` if a
    write fails.
    """
    claim = reservation.claim
    consumer = {"resource": "pods", "name": pod.key.name, "uid": pod.uid}
    if reservation.allocation is not None:
        return _with_consumer(_allocated_claim(claim, reservation.allocation, client, now), consumer, client)
    try:
        return _with_consumer(claim, consumer, client)
    except Conflict:  # Another pod reserved the claim meanwhile; this patch applies to every revision.
        patch = {"metadata": {"uid": claim.uid}, "status": {"reservedFor": [consumer]}}
        return client.patch(claim, patch, "status")


def _allocated_claim(claim: Object, allocation: dict[str, Any], client: EngineClient, now: str) -> Object:
    """Return a claim with an allocation in its status; the status is not written yet.

    If the claim lacks the finalizer, the finalizer is written.
    """
    if FINALIZER not in (claim.metadata.finalizers or ()):
        claim = client.update(claim.with_metadata(finalizers=[*(claim.metadata.finalizers or ()), FINALIZER]))
    return _with_allocation(claim, {"allocationTimestamp": now, **allocation})


def _with_consumer(claim: Object, consumer: dict[str, Any], client: EngineClient) -> Object:
    status = {**(claim.to_dict().get("status") or {})}
    status["reservedFor"] = [*(status.get("reservedFor") or ()), consumer]
    return client.update(claim.with_field("status", status), "status")


def _with_allocation(claim: Object, allocation: dict[str, Any]) -> Object:
    return claim.with_field("status", {**(claim.to_dict().get("status") or {}), "allocation": allocation})


def _name(pod: PodInfo, reference: PodClaimView) -> str | None:
    """Return the name of the claim for an entry in a pod; None if no claim was needed (`Name` in `resourceclaim`)."""
    if reference.resource_claim_name is not None:
        return reference.resource_claim_name
    for each in pod.view.status.resource_claim_statuses or ():
        if each.name == reference.name:
            return each.resource_claim_name
    raise _MissingError(f'pod "{pod.namespace}/{pod.key.name}": ResourceClaim not created yet')


def _is_of(claim: Object, pod: PodInfo) -> bool:
    return any(each.controller and each.uid == pod.uid for each in claim.metadata.owner_references or ())


def _is_reserved(claim: ClaimFields, pod: PodInfo) -> bool:
    return any(each.uid == pod.uid for each in claim.status.reserved_for or ())
