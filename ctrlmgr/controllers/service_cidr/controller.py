"""The ServiceCIDR controller: keeps the condition Ready, and delays deletion while Services use the addresses.

Guarantees:
- A ServiceCIDR that is not being deleted has the finalizer and the condition Ready.
- The finalizer of a ServiceCIDR that is being deleted is removed when no address depends on that ServiceCIDR alone. The
  finalizer is removed at the earliest `GRACE` seconds after the deletion, because after this time no process allocates
  addresses from the range. As long as a ServiceCIDR cannot be deleted, its condition Ready contains the reason.
- If another ServiceCIDR also contains an address, the address does not depend on one ServiceCIDR alone. The other
  ServiceCIDR does not count if it is being deleted and its range is not larger.

Source: Kubernetes' `pkg/controller/servicecidrs/servicecidrs_controller.go`. The controller differs from Kubernetes in
one case: if two equal ranges are deleted at the same time, Kubernetes removes both finalizers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import structlog

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key
from ctrlmgr.client import Client
from ctrlmgr.clock import Clock, format_time_seconds, parse_time
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.descriptor import ControllerContext, NoOptions
from ctrlmgr.controllers.events.recorder import Recorder, failures_told
from ctrlmgr.controllers.service_cidr import DESCRIPTOR
from ctrlmgr.eventlog import EventType
from ctrlmgr.informer import Change, Lister
from ctrlmgr.kinds.allocators.allocation_claims import ALLOCATOR, LABEL_MANAGED_BY
from ctrlmgr.kinds.allocators.service_cidrs import READY, SERVICE_CIDRS, Condition, ServiceCIDR, networks
from ctrlmgr.kinds.allocators.service_ranges import IP_ADDRESSES, AddressRange, Network
from ctrlmgr.manager import Controller, Result, Watch

log = structlog.get_logger(__name__)

FINALIZER: Final = "networking.k8s.io/service-cidr-finalizer"
GRACE: Final = 10.0
"""The number of seconds after a ServiceCIDR's deletion by which every process has read it (`deletionGracePeriod`)."""
MAX_RETRIES: Final = 15

IS_READY: Final = Condition(READY, "True", "", "Kubernetes Service CIDR is ready")
TERMINATING: Final = Condition(
    READY,
    "False",
    "Terminating",
    "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR",
)


def is_needed(service_cidr: Object, others: Iterable[Object], addresses: Iterable[Object]) -> bool:
    """Return whether an allocated address is in `service_cidr` and in no range of the `others`."""
    own = networks(service_cidr)
    remaining = [network for other in others for network in networks(other) if _stays(other, network, own)]
    if all(any(_contains(each, network) for each in remaining) for network in own):
        return False
    ours, theirs = ([AddressRange(network, reserved=0) for network in each] for each in (own, remaining))
    return any(
        claim.labels.get(LABEL_MANAGED_BY) == ALLOCATOR and _is_of(claim.name, ours) and not _is_of(claim.name, theirs)
        for claim in addresses
    )


def _stays(other: Object, network: Network, own: Iterable[Network]) -> bool:
    """Return whether another range will remain: it is not being deleted, or is larger than a range of `own`."""
    return not other.is_terminating or any(_contains(network, each) and network != each for each in own)


def _contains(network: Network, other: Network) -> bool:
    return network.version == other.version and network.prefixlen <= other.prefixlen and network.overlaps(other)


def _is_of(address: str, ranges: Sequence[AddressRange]) -> bool:
    return any(each.index(address) is not None for each in ranges)


class ServiceCIDRReconciler:
    """Reconciles a ServiceCIDR, whose name is the key."""

    def __init__(self, service_cidrs: Lister, addresses: Lister, recorder: Recorder, *, clock: Clock) -> None:
        """Create a reconciler that reads objects from these caches; `recorder` records failures as Events."""
        self._service_cidrs = service_cidrs
        self._addresses = addresses
        self._recorder = recorder
        self._clock = clock

    def reconcile(self, key: Key, client: Client) -> Result | None:
        """Perform the next step for the ServiceCIDR; raises the errors of `client` if a write fails."""
        service_cidr = self._service_cidrs.get(key)
        if service_cidr is None:
            return None
        if service_cidr.is_terminating:
            return self._let_go(service_cidr, client)
        finalizers = service_cidr.metadata.finalizers or ()
        if FINALIZER not in finalizers:
            service_cidr = client.update(_with_finalizers(service_cidr, (*finalizers, FINALIZER)))
        with failures_told(
            self._recorder,
            service_cidr,
            "KubernetesServiceCIDRError",
            "The ServiceCIDR Status can not be set to Ready=True",
        ):
            self._say(service_cidr, IS_READY, client)
        return None

    def _let_go(self, service_cidr: Object, client: Client) -> Result | None:
        finalizers = service_cidr.metadata.finalizers or ()
        if FINALIZER not in finalizers:
            return None
        others = (each for each in self._service_cidrs.list() if each.key != service_cidr.key)
        if is_needed(service_cidr, others, self._addresses.list()):
            self._say(service_cidr, TERMINATING, client)
            return None
        since = self._clock.now() - parse_time(service_cidr.metadata.deletion_timestamp or "")
        if (wait := GRACE - since / 1_000_000) > 0:
            return Result(requeue_after=wait)
        client.update(_with_finalizers(service_cidr, [each for each in finalizers if each != FINALIZER]))
        return None

    def _say(self, service_cidr: Object, condition: Condition, client: Client) -> None:
        """Set the condition Ready if the condition has changed."""
        known = service_cidr.view(ServiceCIDR).ready
        if known == condition:
            return
        fields: dict[str, Any] = service_cidr.to_dict()
        conditions = (fields.get("status") or {}).get("conditions") or ()
        reported = {
            "type": READY,
            "status": condition.status,
            "lastTransitionTime": format_time_seconds(self._clock.now()),
            "reason": condition.reason,
            "message": condition.message,
        }
        status = {"conditions": [*(each for each in conditions if each["type"] != READY), reported]}
        client.update(Object.from_dict({**fields, "status": status}), "status")


def _with_finalizers(service_cidr: Object, finalizers: Sequence[str]) -> Object:
    fields: dict[str, Any] = service_cidr.to_dict()
    return Object.from_dict({**fields, "metadata": {**fields["metadata"], "finalizers": list(finalizers)}})


def _keys(service_cidrs: Lister) -> Callable[[Change], Iterable[Key]]:
    """Return a function that maps a changed ServiceCIDR to its key and the keys of all terminating ServiceCIDRs."""
    return lambda change: {change.object.key, *_terminating(service_cidrs)}


def _keys_of_address(service_cidrs: Lister) -> Callable[[Change], Iterable[Key]]:
    """Return a function that maps a created or deleted IPAddress to the keys of all terminating ServiceCIDRs."""
    return lambda change: () if change.type is EventType.MODIFIED else _terminating(service_cidrs)


def _terminating(service_cidrs: Lister) -> list[Key]:
    return [each.key for each in service_cidrs.list() if each.is_terminating]


def build(context: ControllerContext, options: NoOptions) -> Controller:
    """Build the controller from its context and options."""
    service_cidrs, addresses = context.informers.informer(SERVICE_CIDRS), context.informers.informer(IP_ADDRESSES)
    recorder = context.recorder(DESCRIPTOR)
    reconciler = ServiceCIDRReconciler(service_cidrs.lister, addresses.lister, recorder, clock=context.clock)
    watches = [
        Watch(service_cidrs, _keys(service_cidrs.lister), after_sync=True),
        Watch(addresses, _keys_of_address(service_cidrs.lister)),
    ]
    return assemble(DESCRIPTOR, context, reconciler, watches, max_retries=MAX_RETRIES)
