"""The EndpointSlice controller: keeps the slices of every Service that has a selector.

Guarantees, all as in Kubernetes 1.36 (`pkg/controller/endpointslice/endpointslice_controller.go`):

- `desired_changes` decides which EndpointSlices a Service has; these slices have this controller's label and the
  Service's name. Correct slices are not written, so the trigger time changes only together with another field.
- The controller ignores Services without a selector, Services of type ExternalName, and the slices of these Services.
- No slice is created for a Service that is being deleted, nor in a namespace that is being deleted.
- A slice that a client edits or deletes is corrected at once. If a client changes the label that contains the manager
  or the Service of a slice, the controller creates a slice in its place. Slices that are being deleted are ignored.
- The slices of a deleted Service are deleted, unless a client has removed their owner reference (orphaned them). In
  Kubernetes, the garbage collector deletes the slices. In ctrlmgr, either the garbage collector or this controller
  deletes the slices.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from ctrlmgr.api.core import Pod, Service
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import ENDPOINT_SLICES, NODES, PODS, SERVICES, Key
from ctrlmgr.client import Client
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.descriptor import ControllerContext
from ctrlmgr.controllers.endpoints.pod_changes import pod_changes, stops_being_ready
from ctrlmgr.controllers.endpoints.trigger_time import TriggerTimes
from ctrlmgr.controllers.endpointslice import DESCRIPTOR, Options
from ctrlmgr.controllers.endpointslice.managed_slices import OwnSlices
from ctrlmgr.controllers.endpointslice.node_topology import NodeChanges, Zones
from ctrlmgr.controllers.endpointslice.slice_changes import desired_changes
from ctrlmgr.controllers.endpointslice.slice_objects import MANAGER, appearance_of
from ctrlmgr.controllers.endpointslice.slice_writer import SliceWriter
from ctrlmgr.controllers.events.recorder import SILENT, Recorder, failures_told
from ctrlmgr.informer import Lister
from ctrlmgr.manager import Controller, Result, Watch, own_key

CONTROLLER_NAME = DESCRIPTOR.name
MAX_RETRIES = 15
"""The number of times that a failing Service is retried before the controller drops it. The first retry is after 5 ms,
and the delay doubles up to 82 s (`maxRetries`).
"""


class EndpointSliceReconciler:
    """Reconciles the EndpointSlices of one Service with `desired_changes`."""

    def __init__(
        self,
        services: Lister,
        pods: Lister,
        slices: OwnSlices,
        zones: Zones,
        *,
        random: Random,
        capacity: int,
        recorder: Recorder = SILENT,
    ) -> None:
        """Create a reconciler that reads objects from these caches.

        `capacity` is the maximum number of endpoints of a slice, `random` generates names of slices, and `recorder`
        records failures as Events.
        """
        self._recorder = recorder
        self._services = services
        self._pods = pods
        self._slices = slices
        self._zones = zones
        self._capacity = capacity
        self._writer = SliceWriter(slices, random)
        self._trigger_times = TriggerTimes()

    def reconcile(self, key: Key, client: Client) -> Result | None:
        """Write the changes to the EndpointSlices of the Service `key`.

        Raises the errors of `client` if a write fails.
        """
        service = self._services.get(key)
        if service is None:
            self._trigger_times.forget(key)
            self._writer.delete(key, filter(_is_owned_by(key), self._slices.list(key)), client)
        elif service.view(Service).selects_endpoints:
            self._write(service, client)
        return None

    def _write(self, service: Object, client: Client) -> None:
        view = service.view(Service)
        pods = [pod.view(Pod) for pod in self._pods.list(service.namespace, view.spec.selector)]
        # The reconciler calls this method even if it writes nothing, because the next call compares the times with this
        # call. Kubernetes' controller also compares the times in every sync.
        trigger_time = self._trigger_times.observe(service.key, view.created_at, pods)
        existing = self._slices.list(service.key)
        zone_of = _remembering(self._zones.of)
        changes = desired_changes(
            service, pods, existing, zone_of=zone_of, shares=self._zones.shares, capacity=self._capacity
        )
        if changes.create or changes.update or changes.delete:
            appearance = appearance_of(service, trigger_time)
            message = f"Error updating Endpoint Slices for Service {service.key}"
            with failures_told(self._recorder, service, "FailedToUpdateEndpointSlices", message):
                self._writer.write(service.key, changes, appearance, client, may_create=not service.is_terminating)


def _is_owned_by(key: Key) -> Callable[[Object], bool]:
    """Return a function that returns whether a slice is owned by the Service in the slice's label.

    For orphaned slices, the function returns False.
    """
    return lambda obj: any(
        (owner.kind, owner.name) == ("Service", key.name) for owner in obj.metadata.owner_references or ()
    )


def _remembering(zone_of: Callable[[str], str | None]) -> Callable[[str], str | None]:
    """Return a memoized version of the function for one reconcile, because many pods are on the same node."""
    known: dict[str, str | None] = {}

    def zone(node: str) -> str | None:
        if node not in known:
            known[node] = zone_of(node)
        return known[node]

    return zone


def build(context: ControllerContext, options: Options) -> Controller:
    """Build the controller from its context and options."""
    informers = context.informers
    services, pods, nodes = (informers.informer(resource) for resource in (SERVICES, PODS, NODES))
    slices = informers.informer(ENDPOINT_SLICES)
    pods.add_label_index()
    own = OwnSlices(slices, MANAGER, lambda: informers.revision)
    concerned = pod_changes(services)
    reconciler = EndpointSliceReconciler(
        services.lister,
        pods.lister,
        own,
        Zones(nodes),
        random=context.random,
        capacity=options.max_endpoints_per_slice,
        recorder=context.recorder(DESCRIPTOR),
    )
    return assemble(
        DESCRIPTOR,
        context,
        reconciler,
        [
            Watch(services, own_key, after_sync=True),
            Watch(pods, concerned, options.endpointslice_updates_batch_period, is_urgent=stops_being_ready),
            Watch(nodes, NodeChanges(nodes, pods, services, concerned)),
            Watch(slices, own.keys),
        ],
        workers=options.concurrent_service_endpoint_syncs,
        max_retries=MAX_RETRIES,
        canonical=True,
    )
