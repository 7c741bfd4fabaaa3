"""The endpoints controller: keeps the Endpoints object of every service that has a selector.

Guarantees, all of them Kubernetes 1.36's (`pkg/controller/endpoint/endpoints_controller.go`):
- The subsets are those of `desired_subsets`, within the capacity (`truncate`). The labels are the service's plus
  `endpoints.kubernetes.io/managed-by` and, without a cluster IP, `service.kubernetes.io/headless`. Annotations stay,
  but for the last change's trigger time and a mark on an object from which addresses were left out.
- Nothing is written when subsets, labels and that mark are right already. So the trigger time changes only together
  with something else, and what a client adds to the annotations stands.
- A service without a selector, or an ExternalName, is left alone: its Endpoints are another's, or were left
  behind when it became so. The annotation `service.alpha.kubernetes.io/tolerate-unready-endpoints` means nothing any
  more; `spec.publishNotReadyAddresses` does. A pod's restart policy plays no part, only its phase.
- The Endpoints of a service that is gone go too. One that is deleted comes back at once. One that a client edits
  stands as edited until its service or one of its pods changes: Endpoints are watched for deletions only.

What the cache does not show yet of the controller's own writes is laid over it (`OwnWrites`), where Kubernetes has its
`staleEndpointsTracker` wait. What it does not show of others' writes comes out when the write is refused, because it is
conditional on the revision that was read: a lost race (`Conflict`, `AlreadyExists`, `NotFound`), tried again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec
import structlog
from msgspec.structs import replace

from ctrlmgr.api.core import EndpointAddress, EndpointSubset, Pod, Service
from ctrlmgr.api.object import Object, ObjectMeta
from ctrlmgr.api.resource import ENDPOINTS, PODS, SERVICES, Key, Revision
from ctrlmgr.client import Client
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.descriptor import ControllerContext
from ctrlmgr.controllers.endpoints import DESCRIPTOR, Options
from ctrlmgr.controllers.endpoints.pod_changes import pod_changes, stops_being_ready
from ctrlmgr.controllers.endpoints.subsets import desired_subsets, truncate
from ctrlmgr.controllers.endpoints.trigger_time import TriggerTimes, format_trigger_time
from ctrlmgr.controllers.events.recorder import SILENT, Recorder, failures_told
from ctrlmgr.controllers.own_writes import OwnWrites
from ctrlmgr.errors import NamespaceTerminating
from ctrlmgr.eventlog.event import EventType
from ctrlmgr.informer import Change, Lister
from ctrlmgr.manager import Controller, Result, Watch, own_key

log = structlog.get_logger(__name__)

CONTROLLER_NAME = DESCRIPTOR.name
MANAGER = "endpoint-controller"
"""What Kubernetes' controller says of itself in the label `endpoints.kubernetes.io/managed-by`."""
MAX_RETRIES = 15
"""How often a service that fails is tried again before it is dropped: 5 ms, doubling, up to 82 s (`maxRetries`)."""

MANAGED_BY = "endpoints.kubernetes.io/managed-by"
HEADLESS = "service.kubernetes.io/headless"
TRIGGER_TIME = "endpoints.kubernetes.io/last-change-trigger-time"
OVER_CAPACITY = "endpoints.kubernetes.io/over-capacity"
LEADER = "control-plane.alpha.kubernetes.io/leader"
"""Marks an Endpoints object that is a leader election lock."""

_OURS = frozenset((MANAGED_BY, HEADLESS))
"""The labels that Endpoints have beyond their service's."""


class _Parts(msgspec.Struct):
    """An Endpoints body, taken apart but not decoded."""

    metadata: msgspec.Raw
    subsets: msgspec.Raw = msgspec.Raw(b"[]")


_HEAD = b'{"kind":"Endpoints","apiVersion":"v1","metadata":'
_take_apart = msgspec.json.Decoder(_Parts).decode
_decode_subsets = msgspec.json.Decoder(list[EndpointSubset] | None).decode
_encode = msgspec.json.Encoder().encode


def desired_endpoints(
    service: Object, pods: Iterable[Pod], current: Object | None, trigger_time: int | None = None
) -> Object | None:
    """Return the Endpoints object to write for `service`, or None when there is nothing to write.

    `pods` are all the pods that the service selects, in any order; `current` is its Endpoints object as it stands,
    whose revision the result has (0 if there is none: it is to be created). `trigger_time` is what `TriggerTimes`
    said, in microseconds since 1970.
    """
    view = service.view(Service)
    if not view.selects_endpoints:
        return None
    all_subsets = desired_subsets(view, pods)
    subsets = truncate(all_subsets)
    is_over = subsets is not all_subsets
    encoded = _encode(subsets)
    labels = desired_labels(service.labels, is_headless=view.is_headless)
    if current is None:
        annotations = desired_annotations({}, trigger_time, is_over=is_over)
        metadata = ObjectMeta(name=service.name, namespace=service.namespace, labels=labels, annotations=annotations)
        return Object(ENDPOINTS, _body(_encode(metadata), encoded))
    parts = _take_apart(current.body)
    # Over the capacity, Kubernetes compares with what it was before truncation, and so writes every time.
    if (
        not is_over
        and OVER_CAPACITY not in current.annotations
        and labels_are_right(current.labels, service.labels)
        and _same_subsets(parts.subsets, subsets, encoded)
    ):
        return None
    annotations = desired_annotations(current.annotations, trigger_time, is_over=is_over)
    return _changed(current, parts, labels, annotations, encoded)


def desired_labels(service: Mapping[str, str], *, is_headless: bool) -> dict[str, str]:
    """Return the labels of the Endpoints of a service with the labels `service`, in the order of their keys."""
    labels = {**service, MANAGED_BY: MANAGER, HEADLESS: ""}
    if not is_headless:
        del labels[HEADLESS]
    return dict(sorted(labels.items()))


def labels_are_right(endpoints: Mapping[str, str], service: Mapping[str, str]) -> bool:
    """Say whether `endpoints` has the label of its manager and, beyond that and `HEADLESS`, just those of `service`.

    Whether it should have `HEADLESS` is not looked at: a service's cluster IP does not come or go while it has one.
    """
    if endpoints.get(MANAGED_BY) != MANAGER:
        return False
    return {label: value for label, value in endpoints.items() if label not in _OURS} == service


def desired_annotations(
    current: Mapping[str, str], trigger_time: int | None, *, is_over: bool
) -> dict[str, str] | None:
    """Return `current` with the trigger time (None: without) and, when `is_over`, the mark of the capacity."""
    annotations = {key: value for key, value in current.items() if key not in (TRIGGER_TIME, OVER_CAPACITY)}
    if trigger_time is not None:
        annotations[TRIGGER_TIME] = format_trigger_time(trigger_time)
    if is_over:
        annotations[OVER_CAPACITY] = "truncated"
    return dict(sorted(annotations.items())) or None


def _same_subsets(current: msgspec.Raw, subsets: list[EndpointSubset], encoded: bytes) -> bool:
    """Compare subsets of any origin: not by their bytes alone, and not by the versions of the pods they name."""
    if encoded == bytes(current):
        return True
    return [_canonical(subset) for subset in _decode_subsets(current) or ()] == subsets


def _canonical(subset: EndpointSubset) -> EndpointSubset:
    return EndpointSubset(
        [_without_pod_version(address) for address in subset.addresses or ()] or None,
        [_without_pod_version(address) for address in subset.not_ready_addresses or ()] or None,
        subset.ports or None,
    )


def _without_pod_version(address: EndpointAddress) -> EndpointAddress:
    target = address.target_ref
    if target is None or not target.resource_version:
        return address
    return replace(address, target_ref=replace(target, resource_version=""))


def _changed(
    current: Object, parts: _Parts, labels: dict[str, str], annotations: dict[str, str] | None, subsets: bytes
) -> Object | None:
    """Return `current` with these labels, annotations and subsets; None if it has them, byte for byte."""
    metadata = current.metadata
    if metadata.labels != labels or metadata.annotations != annotations:
        metadata = replace(metadata, labels=labels, annotations=annotations)
        parts = _take_apart(current.with_metadata(labels=labels, annotations=annotations).body)
    body = _body(parts.metadata, subsets)
    return None if body == current.body else Object(ENDPOINTS, body, current.revision, metadata)


def _body(metadata: bytes | msgspec.Raw, subsets: bytes) -> bytes:
    rest = b"" if subsets == b"[]" else b',"subsets":' + subsets
    return b"".join((_HEAD, metadata, rest, b"}"))


class EndpointsReconciler:
    """Makes the Endpoints of one service what `desired_endpoints` says."""

    def __init__(
        self,
        services: Lister,
        pods: Lister,
        endpoints: Lister,
        seen: Callable[[], Revision],
        recorder: Recorder = SILENT,
    ) -> None:
        """Read from these caches, which show everything up to what `seen` returns; `recorder` is told of failures."""
        self._recorder = recorder
        self._services = services
        self._pods = pods
        self._endpoints = endpoints
        self._seen = seen
        self._trigger_times = TriggerTimes()
        self._writes = OwnWrites()

    def on_start(self) -> Iterator[Key]:
        """Yield what may have been left over while no controller ran: every Endpoints object but election locks."""
        for endpoints in self._endpoints.list():
            if LEADER not in endpoints.annotations:
                yield endpoints.key

    def reconcile(self, key: Key, client: Client) -> Result | None:
        """Create, update or delete the Endpoints of the service `key`, or leave them; raises what `client` raises."""
        current = self._current(key)
        service = self._services.get(key)
        if service is None:
            self._trigger_times.forget(key)
            if current is not None:
                self._writes.delete(key, current, client)
        elif service.view(Service).selects_endpoints:
            self._write(service, current, client)
        return None

    def keys(self, change: Change) -> Iterable[Key]:
        """Return whose Endpoints to look at after some have changed: those that another client has deleted."""
        is_own = self._writes.is_own(change.object.key, change)
        return own_key(change) if change.type is EventType.DELETED and not is_own else ()

    def _current(self, key: Key) -> Object | None:
        seen = self._seen()  # before the cache is read, which can only be newer then
        cached = self._endpoints.get(key)
        found = {} if cached is None else {key: cached}
        self._writes.lay_over(key, found, seen)
        return found.get(key)

    def _write(self, service: Object, current: Object | None, client: Client) -> None:
        view = service.view(Service)
        pods = [pod.view(Pod) for pod in self._pods.list(service.namespace, view.spec.selector)]
        # Asked even if nothing is written after all, so that the next call tells from now on, as in Kubernetes.
        trigger_time = self._trigger_times.observe(service.key, view.created_at, pods)
        wanted = desired_endpoints(service, pods, current, trigger_time)
        if wanted is None:
            return
        if current is not None:
            message = f"Failed to update endpoint {service.key}"
            with failures_told(self._recorder, wanted, "FailedToUpdateEndpoint", message):
                self._writes.update(service.key, wanted, client)
            return
        message = f"Failed to create endpoint for service {service.key}"
        try:
            with failures_told(self._recorder, wanted, "FailedToCreateEndpoint", message):
                self._writes.create(service.key, wanted, client)
        except NamespaceTerminating:
            log.debug("endpoints not created, their namespace is terminating", key=str(service.key))


def build(context: ControllerContext, options: Options) -> Controller:
    """Build it from what its descriptor declares."""
    informers = context.informers
    services, pods, endpoints = (informers.informer(resource) for resource in (SERVICES, PODS, ENDPOINTS))
    pods.add_label_index()
    reconciler = EndpointsReconciler(
        services.lister,
        pods.lister,
        endpoints.lister,
        lambda: informers.revision,
        context.recorder(DESCRIPTOR),
    )
    return assemble(
        DESCRIPTOR,
        context,
        reconciler,
        [
            Watch(services, own_key, after_sync=True),
            Watch(pods, pod_changes(services), options.endpoint_updates_batch_period, is_urgent=stops_being_ready),
            Watch(endpoints, reconciler.keys),
        ],
        workers=options.concurrent_endpoint_syncs,
        max_retries=MAX_RETRIES,
        canonical=True,
    )
