"""The endpoints controller: keeps the Endpoints object of every Service that has a selector.

Guarantees, all as in Kubernetes 1.36 (`pkg/controller/endpoint/endpoints_controller.go`):

- The Endpoints contain the subsets that `desired_subsets` returns, within the capacity (`truncate`). The Endpoints have
  the labels of the Service and the label `endpoints.kubernetes.io/managed-by`. If the Service has no cluster IP,
  `service.kubernetes.io/headless` is added to the labels of the Endpoints. Annotations of Endpoints are kept, except
  the last trigger time and the over-capacity mark.
- If the subsets, the labels and the over-capacity mark are correct, nothing is written. Therefore the trigger time
  changes only together with another field, and annotations that a client adds are kept.
- The controller ignores Services without a selector, Services of type ExternalName, and the Endpoints of these
  Services. The annotation `service.alpha.kubernetes.io/tolerate-unready-endpoints` has no effect. The field
  `spec.publishNotReadyAddresses` replaces this annotation. Whether a pod has ended depends on its phase, and not on its
  restart policy.
- The Endpoints of a deleted Service are deleted. Deleted Endpoints of an existing Service are created again at once. A
  client's edits of Endpoints stay until the Service or one of its pods changes, because the controller watches only
  deletions of Endpoints.

If the cache does not contain the controller's own last writes, the controller uses its own last writes instead of the
cached objects (`OwnWrites`). Kubernetes' `staleEndpointsTracker` waits for the cache instead. If another client has
written meanwhile, the conditional write fails (`Conflict`, `AlreadyExists`, `NotFound`) and is retried.
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
"""The value of the label `endpoints.kubernetes.io/managed-by`; Kubernetes uses the same value."""
MAX_RETRIES = 15
"""The number of times that a failing Service is retried before the controller drops it. The first retry is after 5 ms,
and the delay doubles up to 82 s (`maxRetries`).
"""

MANAGED_BY = "endpoints.kubernetes.io/managed-by"
HEADLESS = "service.kubernetes.io/headless"
TRIGGER_TIME = "endpoints.kubernetes.io/last-change-trigger-time"
OVER_CAPACITY = "endpoints.kubernetes.io/over-capacity"
LEADER = "control-plane.alpha.kubernetes.io/leader"
"""The annotation of an Endpoints object that is a leader election lock."""

_OURS = frozenset((MANAGED_BY, HEADLESS))
"""The labels of Endpoints that are not copied from the Service."""


class _Parts(msgspec.Struct):
    """The fields of an Endpoints object; the values are not decoded."""

    metadata: msgspec.Raw
    subsets: msgspec.Raw = msgspec.Raw(b"[]")


_HEAD = b'{"kind":"Endpoints","apiVersion":"v1","metadata":'
_take_apart = msgspec.json.Decoder(_Parts).decode
_decode_subsets = msgspec.json.Decoder(list[EndpointSubset] | None).decode
_encode = msgspec.json.Encoder().encode


def desired_endpoints(
    service: Object, pods: Iterable[Pod], current: Object | None, trigger_time: int | None = None
) -> Object | None:
    """Return the Endpoints object to write for `service`, or None if no write is needed.

    `pods` are all pods that the Service selects, in any order. `current` is the Service's existing Endpoints object;
    the result has the revision of that object. If the Service has no Endpoints object, the revision of the result is 0,
    and the caller must create the result. The argument `trigger_time` comes from `TriggerTimes`, and is in microseconds
    since 1970.
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
    # If the capacity is exceeded, Kubernetes compares with the subsets before truncation. Therefore Kubernetes writes
    # the Endpoints in every reconcile.
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
    """Return the labels of a Service's Endpoints, sorted by key; `service` contains the Service's own labels."""
    labels = {**service, MANAGED_BY: MANAGER, HEADLESS: ""}
    if not is_headless:
        del labels[HEADLESS]
    return dict(sorted(labels.items()))


def labels_are_right(endpoints: Mapping[str, str], service: Mapping[str, str]) -> bool:
    """Return whether the labels `endpoints`, except `HEADLESS`, equal the labels `service` with the manager's label.

    The comparison ignores `HEADLESS`, because a Service with a cluster IP never becomes headless, and a headless
    Service never gets a cluster IP.
    """
    if endpoints.get(MANAGED_BY) != MANAGER:
        return False
    return {label: value for label, value in endpoints.items() if label not in _OURS} == service


def desired_annotations(
    current: Mapping[str, str], trigger_time: int | None, *, is_over: bool
) -> dict[str, str] | None:
    """Return `current` with the trigger time and, if `is_over` is set, the over-capacity mark.

    If the trigger time is None, its annotation is removed.
    """
    annotations = {key: value for key, value in current.items() if key not in (TRIGGER_TIME, OVER_CAPACITY)}
    if trigger_time is not None:
        annotations[TRIGGER_TIME] = format_trigger_time(trigger_time)
    if is_over:
        annotations[OVER_CAPACITY] = "truncated"
    return dict(sorted(annotations.items())) or None


def _same_subsets(current: msgspec.Raw, subsets: list[EndpointSubset], encoded: bytes) -> bool:
    """Return whether two encoded lists of subsets are equal, without the resource versions of the pods."""
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
    """Return `current` with these labels, annotations and subsets.

    Return None if the encoded result equals `current` byte for byte.
    """
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
    """Reconciles the Endpoints of one Service with `desired_endpoints`."""

    def __init__(
        self,
        services: Lister,
        pods: Lister,
        endpoints: Lister,
        seen: Callable[[], Revision],
        recorder: Recorder = SILENT,
    ) -> None:
        """Create a reconciler that reads objects from these caches, whose revision is at least `seen()`.

        `recorder` records failures as Events.
        """
        self._recorder = recorder
        self._services = services
        self._pods = pods
        self._endpoints = endpoints
        self._seen = seen
        self._trigger_times = TriggerTimes()
        self._writes = OwnWrites()

    def on_start(self) -> Iterator[Key]:
        """Yield all Endpoints except leader election locks, because their Services may have been deleted meanwhile."""
        for endpoints in self._endpoints.list():
            if LEADER not in endpoints.annotations:
                yield endpoints.key

    def reconcile(self, key: Key, client: Client) -> Result | None:
        """Create, update or delete the Endpoints of the Service `key` so that they have the desired state.

        Raises the errors of `client` if a write fails.
        """
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
        """Return the keys of Endpoints that another client has deleted."""
        is_own = self._writes.is_own(change.object.key, change)
        return own_key(change) if change.type is EventType.DELETED and not is_own else ()

    def _current(self, key: Key) -> Object | None:
        seen = self._seen()  # Call this before the cache is read; the cache can then only be newer.
        cached = self._endpoints.get(key)
        found = {} if cached is None else {key: cached}
        self._writes.overlay(key, found, seen)
        return found.get(key)

    def _write(self, service: Object, current: Object | None, client: Client) -> None:
        view = service.view(Service)
        pods = [pod.view(Pod) for pod in self._pods.list(service.namespace, view.spec.selector)]
        # The reconciler calls this method even if it writes nothing, because the next call compares the times with this
        # call. Kubernetes' controller also compares the times in every sync.
        trigger_time = self._trigger_times.observe(service.key, view.created_at, pods)
        desired = desired_endpoints(service, pods, current, trigger_time)
        if desired is None:
            return
        if current is not None:
            message = f"Failed to update endpoint {service.key}"
            with failures_told(self._recorder, desired, "FailedToUpdateEndpoint", message):
                self._writes.update(service.key, desired, client)
            return
        message = f"Failed to create endpoint for service {service.key}"
        try:
            with failures_told(self._recorder, desired, "FailedToCreateEndpoint", message):
                self._writes.create(service.key, desired, client)
        except NamespaceTerminating:
            log.debug("endpoints not created, their namespace is terminating", key=str(service.key))


def build(context: ControllerContext, options: Options) -> Controller:
    """Build the controller from its context and options."""
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
