"""The resource claims of pods: whether they exist, their node requirements, and their reservations.

Guarantees, Kubernetes' (`pkg/scheduler/framework/plugins/dynamicresources`, and `resourceclaim` of
`dynamic-resource-allocation`):
- A pod with a missing claim is not queued (`PreEnqueue`): it stays pending, without a condition or an Event, until all
  its claims exist.
- A pod is bound only to a node that can access the devices of all its claims, and only after the claims are reserved
  for it.

No claim is allocated here. A claim that is not allocated keeps its pod pending.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.client import EngineClient
from ctrlmgr.errors import Conflict
from ctrlmgr.scheduling.cluster_model import PodInfo
from ctrlmgr.scheduling.dynamic_resources import IN_USE, NO_DEVICES, Devices
from ctrlmgr.scheduling.node_selection import NodeSelector
from ctrlmgr.scheduling.scheduling_view import PodClaimView

RESOURCE_CLAIMS: Final = Resource("resource.k8s.io", "resourceclaims")
DEVICE_CLASSES: Final = Resource("resource.k8s.io", "deviceclasses")
MOST_CONSUMERS: Final = 256
"""Maximum number of pods that share a claim (`ResourceClaimReservedForMaxSize`)."""


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


class _Allocation(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    node_selector: NodeSelector | None = None


class _Consumer(msgspec.Struct, frozen=True, gc=False):
    uid: str = ""


class _ClaimStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    allocation: _Allocation | None = None
    reserved_for: list[_Consumer] | None = None


class _Claim(msgspec.Struct, frozen=True, gc=False):
    spec: _ClaimSpec = _ClaimSpec()
    status: _ClaimStatus = _ClaimStatus()


class _MissingError(Exception):
    """A claim of a pod cannot be used; the text says why."""


class Getting(Protocol):
    """A lister of one resource."""

    def get(self, key: Key) -> Object | None:
        """Return one object, None if it does not exist."""


class DeviceClaims:
    """Finds the resource claims of pods."""

    def __init__(self, listing: Callable[[Resource], Getting]) -> None:
        """Read the listers that `listing` returns for each resource."""
        self._claims = listing(RESOURCE_CLAIMS)
        self._classes = listing(DEVICE_CLASSES)

    def missing(self, pod: PodInfo) -> str:
        """Return why a pod cannot be queued yet, "" if all its claims exist and belong to it."""
        try:
            for _ in self._of(pod):
                pass
        except _MissingError as problem:
            return str(problem)
        return ""

    def of(self, pod: PodInfo) -> Devices:
        """Return the node requirements of a pod's claims, or the problem with them."""
        if not pod.view.spec.resource_claims:
            return NO_DEVICES
        try:
            claims = [*self._of(pod)]
        except _MissingError as missing:
            return Devices(problem=str(missing))
        views = [each.view(_Claim) for each in claims]
        problem = next(filter(None, (self._problem(each, pod) for each in views)), "")
        allocations = [each.status.allocation for each in views]
        selectors = [each.node_selector for each in allocations if each is not None]
        return Devices(tuple(each for each in selectors if each is not None), None not in allocations, problem)

    def reserve(self, pod: PodInfo, client: EngineClient) -> None:
        """Reserve each of the pod's claims; raises `Conflict` for an unusable claim, and the errors of `client`."""
        consumer = {"resource": "pods", "name": pod.key.name, "uid": pod.uid}
        try:
            claims = [*self._of(pod)]
        except _MissingError as problem:
            raise Conflict(str(problem)) from problem
        for claim in claims:
            if not _is_reserved(claim.view(_Claim), pod):
                patch: dict[str, Any] = {"metadata": {"uid": claim.uid}, "status": {"reservedFor": [consumer]}}
                client.patch(claim, patch, "status")

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
        """Yield the claims of a pod; raises `_MissingError` for a missing one, or one of another pod."""
        for each in pod.view.spec.resource_claims or ():
            name = _name(pod, each)
            if name is None:
                continue  # its template created no claim, which is allowed
            claim = self._claims.get(Key(pod.namespace, name))
            if claim is None:
                raise _MissingError(f'could not find claim "{pod.namespace}/{name}"')
            if claim.is_terminating:
                raise _MissingError(f'resourceclaim "{name}" is being deleted')
            if each.resource_claim_name is None and not _is_of(claim, pod):
                where = f"was not created for pod {pod.namespace}/{pod.key.name} (pod is not owner)"
                raise _MissingError(f"ResourceClaim {pod.namespace}/{name} {where}")
            yield claim


def _name(pod: PodInfo, reference: PodClaimView) -> str | None:
    """Return the name of a claim, None if none was needed (`Name` of `resourceclaim`)."""
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
    """Yield the requests of a claim, each with its device class."""
    for request in claim.spec.devices.requests or ():
        if request.exactly is not None:
            yield request.name, request.exactly.device_class_name
        for each in request.first_available or ():
            yield f"{request.name}/{each.name}", each.device_class_name
