"""The EndpointSlice mirroring controller: keeps slices for Endpoints that no controller manages.

Guarantees, all as in Kubernetes 1.36 (`pkg/controller/endpointslicemirroring`):

- Endpoints are mirrored if a Service with the same name exists and has no selector. Endpoints with the label
  `endpointslice.kubernetes.io/skip-mirror: "true"` and leader election locks are not mirrored. Slices of Endpoints that
  are not mirrored are deleted.
- For each IP family and set of ports that `mirrored_groups` returns, there is one slice. A set of ports without
  endpoints has no slice.
- A slice has the labels and annotations of its Endpoints, except the trigger time and `kubectl apply`'s annotation.
- EndpointSlices with the label of this controller and the Endpoints' name are adopted, and surplus slices are deleted.
  A slice that a client edits or deletes is corrected at once.
- Mirrored slices that are correct are not written. No slice is created for Endpoints that are being deleted, nor in a
  namespace that is being deleted.

If Endpoints are deleted and created again with the same name, the new Endpoints become the owner of the existing
slices. In Kubernetes, the owner changes only if another part of the slice also changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random

from ctrlmgr.api.core import Endpoints, Service
from ctrlmgr.api.discovery import MANAGED_BY, SERVICE_NAME, SKIP_MIRROR, Endpoint
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import ENDPOINT_SLICES, ENDPOINTS, SERVICES, Key
from ctrlmgr.client import Client
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.descriptor import ControllerContext
from ctrlmgr.controllers.endpoints.controller import LEADER, TRIGGER_TIME
from ctrlmgr.controllers.endpointslice.endpoint_groups import Identity, PortSet, identity
from ctrlmgr.controllers.endpointslice.managed_slices import OwnSlices
from ctrlmgr.controllers.endpointslice.slice_objects import Appearance, name_prefix, owner
from ctrlmgr.controllers.endpointslice.slice_packing import Changes, Draft, is_same, recycle
from ctrlmgr.controllers.endpointslice.slice_writer import SliceWriter
from ctrlmgr.controllers.endpointslice_mirroring import DESCRIPTOR, Options
from ctrlmgr.controllers.endpointslice_mirroring.mirrored_subsets import (
    mirrored_groups,
    skipped_addresses,
)
from ctrlmgr.controllers.events.recorder import SILENT, WARNING, Recorder, failures_told
from ctrlmgr.informer import Change, Lister
from ctrlmgr.manager import Controller, Result, Watch

CONTROLLER_NAME = DESCRIPTOR.name
MANAGER = "endpointslicemirroring-controller.k8s.io"
"""The value of the label `MANAGED_BY` on mirrored slices."""

MAX_RETRIES = 15
"""The number of times that failing Endpoints are retried before the controller drops them (`maxRetries`)."""

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def is_for_mirroring(endpoints: Object) -> bool:
    """Return whether the labels and annotations of Endpoints allow mirroring (`shouldMirror`)."""
    return endpoints.labels.get(SKIP_MIRROR) != "true" and LEADER not in endpoints.annotations


def desired_mirrors(endpoints: Object, existing: Iterable[Object], maximum: int) -> Changes:
    """Return the changes that turn the `existing` slices into a mirror of `endpoints`.

    At most `maximum` addresses of each subset are mirrored.
    """
    appearance = appearance_of(endpoints)
    drafts: dict[str, dict[PortSet, list[Draft]]] = {}
    for current in existing:
        draft = Draft.of(current)
        drafts.setdefault(draft.address_type, {}).setdefault(frozenset(draft.ports), []).append(draft)
    changes = Changes()
    for address_type, groups in mirrored_groups(endpoints.view(Endpoints).subsets or (), maximum).items():
        found = Changes()
        by_ports = drafts.pop(address_type, {})
        for ports, group in groups.items():
            _mirror(found, by_ports.pop(ports, []), Draft(address_type, group.ports, []), group.endpoints, appearance)
        for others in by_ports.values():
            found.delete += others
        recycle(found, lambda _: True)
        changes.add(found)
    for unknown in drafts.values():
        changes.delete += [draft for others in unknown.values() for draft in others]
    return changes


def appearance_of(endpoints: Object) -> Appearance:
    """Return the shared metadata of the slices that mirror `endpoints`."""
    labels = {**endpoints.labels, SERVICE_NAME: endpoints.name, MANAGED_BY: MANAGER}
    left_out = (TRIGGER_TIME, _LAST_APPLIED)
    annotations = {key: value for key, value in endpoints.annotations.items() if key not in left_out}
    return Appearance(
        endpoints.namespace,
        name_prefix(endpoints.name),
        dict(sorted(labels.items())),
        dict(sorted(annotations.items())),
        owner("Endpoints", endpoints),
    )


def _mirror(
    changes: Changes, existing: list[Draft], new: Draft, desired: dict[Identity, Endpoint], appearance: Appearance
) -> None:
    """Update the first slice of one IP family and set of ports to `desired`, or create it; delete the other slices."""
    if not existing:
        new.endpoints = [*desired.values()]
        changes.create.append(new)
        return
    kept, *others = existing
    changes.delete += others
    if _is_right(kept, desired, appearance):
        changes.unchanged.append(kept)
        return
    kept.endpoints = [*desired.values()]
    kept.renew = True
    changes.update.append(kept)


def _is_right(draft: Draft, desired: dict[Identity, Endpoint], appearance: Appearance) -> bool:
    current = draft.current
    return (
        current is not None
        and current.labels == appearance.labels
        and current.annotations == appearance.annotations
        and appearance.owner in (current.metadata.owner_references or ())
        and len(draft.endpoints) == len(desired)
        and all((found := desired.get(identity(each))) is not None and is_same(found, each) for each in draft.endpoints)
    )


class MirroringReconciler:
    """Reconciles the mirrored slices of one Endpoints object with `desired_mirrors`."""

    def __init__(
        self,
        endpoints: Lister,
        services: Lister,
        slices: OwnSlices,
        *,
        random: Random,
        maximum: int,
        recorder: Recorder = SILENT,
    ) -> None:
        """Create a reconciler that reads objects from these caches.

        At most `maximum` addresses of each subset are mirrored. `random` generates names of slices, and `recorder`
        records Events.
        """
        self._recorder = recorder
        self._endpoints = endpoints
        self._services = services
        self._slices = slices
        self._maximum = maximum
        self._writer = SliceWriter(slices, random)

    def reconcile(self, key: Key, client: Client) -> Result | None:
        """Mirror the Endpoints `key`, or delete their slices; raises the errors of `client` if a write fails."""
        existing = self._slices.list(key)
        endpoints = self._endpoints.get(key)
        if endpoints is None or not is_for_mirroring(endpoints) or not self._has_service_without_selector(key):
            self._writer.delete(key, existing, client)
            return None
        self._tell_of_skipped(endpoints)
        changes = desired_mirrors(endpoints, existing, self._maximum)
        if changes.create or changes.update or changes.delete:
            appearance = appearance_of(endpoints)
            message = f"Error updating Endpoint Slices for Endpoints {key}"
            with failures_told(self._recorder, endpoints, "FailedToUpdateEndpointSlices", message):
                self._writer.write(key, changes, appearance, client, may_create=not endpoints.is_terminating)
        return None

    def _tell_of_skipped(self, endpoints: Object) -> None:
        skipped, invalid = skipped_addresses(endpoints.view(Endpoints).subsets or (), self._maximum)
        if invalid:
            message = f"Skipped {invalid} invalid IP addresses when mirroring to EndpointSlices"
            self._recorder.event(endpoints, WARNING, "InvalidIPAddress", message)
        if skipped > invalid:
            message = (
                f"A max of {self._maximum} addresses can be mirrored to EndpointSlices per Endpoints subset. "
                f"{skipped} addresses were skipped"
            )
            self._recorder.event(endpoints, WARNING, "TooManyAddressesToMirror", message)

    def _has_service_without_selector(self, key: Key) -> bool:
        service = self._services.get(key)
        return service is not None and _has_no_selector(service)


def _has_no_selector(service: Object) -> bool:
    return service.view(Service).spec.selector is None


def _service_keys(change: Change) -> Iterable[Key]:
    """Return the key of a changed Service that has no selector, or had no selector before the change."""
    return {service.key for service in (change.old, change.new) if service is not None and _has_no_selector(service)}


def _endpoints_keys(services: Lister) -> Callable[[Change], Iterable[Key]]:
    """Return a function that maps a change to the Endpoints to enqueue.

    The function returns Endpoints that are mirrored, or were mirrored before the change.

    Endpoints of a Service with a selector change often and are not enqueued. When a Service gets a selector, the change
    of the Service enqueues its Endpoints.
    """

    def keys(change: Change) -> Iterable[Key]:
        found = [each for each in (change.old, change.new) if each is not None and is_for_mirroring(each)]
        if not found:
            return ()
        service = services.get(found[0].key)
        return (found[0].key,) if service is None or _has_no_selector(service) else ()

    return keys


def build(context: ControllerContext, options: Options) -> Controller:
    """Build the controller from its context and options."""
    informers = context.informers
    endpoints, services = informers.informer(ENDPOINTS), informers.informer(SERVICES)
    slices = informers.informer(ENDPOINT_SLICES)
    own = OwnSlices(slices, MANAGER, lambda: informers.revision)
    reconciler = MirroringReconciler(
        endpoints.lister,
        services.lister,
        own,
        random=context.random,
        maximum=options.mirroring_max_endpoints_per_subset,
        recorder=context.recorder(DESCRIPTOR),
    )
    return assemble(
        DESCRIPTOR,
        context,
        reconciler,
        [
            Watch(endpoints, _endpoints_keys(services.lister)),
            Watch(services, _service_keys, after_sync=True),
            Watch(slices, own.keys, options.mirroring_endpointslice_updates_batch_period),
        ],
        workers=options.mirroring_concurrent_service_endpoint_syncs,
        max_retries=MAX_RETRIES,
        canonical=True,
    )
