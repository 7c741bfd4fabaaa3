"""Compares in a replay the endpoints of each Service's EndpointSlices, regardless of their distribution to slices.

The names of slices are random, and the packing depends on the changes that a controller processed together. Therefore,
for each Service, managing controller, address type and set of ports, the set of endpoints is compared. If a recording
has no slices, nothing is compared.

EndpointSlices whose label names a recorded controller are expected and never inputs. These controllers revert other
clients' changes at once, so such changes have no effect at a checkpoint. All other EndpointSlices are inputs.

Our controller acts on EndpointSlices at checkpoints. The controller also acts before a Service changes, if the recorded
controller has written the Service's slices since our controller last acted. The controller must act before the Service
changes, because a Service that loses its selector keeps its last slices.

EndpointSlices refer to the nodes of their endpoints, but a recording may contain no Nodes. For a recording without
Nodes, the replay creates the nodes that recorded slices name, each in the first zone that is recorded for the node. The
comparison then only verifies that all endpoints on a node have the same zone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from ctrlmgr.api.core import Service
from ctrlmgr.api.discovery import MANAGED_BY, SERVICE_NAME, EndpointSlice
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import ENDPOINT_SLICES, NODES, SERVICES, Key, Revision
from ctrlmgr.controllers.endpointslice.controller import CONTROLLER_NAME as SLICE_CONTROLLER
from ctrlmgr.controllers.endpointslice.node_topology import ZONE
from ctrlmgr.controllers.endpointslice.slice_objects import MANAGER as KEEPER
from ctrlmgr.controllers.endpointslice_mirroring.controller import CONTROLLER_NAME as MIRRORING_CONTROLLER
from ctrlmgr.controllers.endpointslice_mirroring.controller import MANAGER as MIRROR
from ctrlmgr.eventlog import Event, EventType
from ctrlmgr.informer import Change as StoreChange
from ctrlmgr.recording.format import Change
from ctrlmgr.recording.replay_stage import ReplayStage
from ctrlmgr.recording.report import UncomparedCounts
from ctrlmgr.recording.write_pairing import WriteState, WriteTracker

MANAGERS: Mapping[str, str] = {SLICE_CONTROLLER: KEEPER, MIRRORING_CONTROLLER: MIRROR}
"""The value of the managing label on each controller's slices, by the controller's name."""

_BY_SERVICE = "service"


class OwnedSlices:
    """The slices of the recording and of our log, by Service."""

    resource = ENDPOINT_SLICES
    is_shared = False
    expects_others = False

    def __init__(self, stage: ReplayStage, controllers: Collection[str]) -> None:
        """Expect the recorded writes of `controllers`, which are keys of `MANAGERS`.

        The instance must be created before `stage` starts.
        """
        informer = stage.informer(ENDPOINT_SLICES)
        self._stage = stage
        self._controllers = controllers
        self._managers = frozenset(MANAGERS[name] for name in controllers)
        self._recorded = _Slices()
        self._shown = False  # whether the recording has any slices
        self._nodes: set[str] | None = set()  # the nodes that recorded slices name; None if Nodes are recorded
        self._changed: set[Key] = set()
        # Services whose slices the recorded controller has written since our controllers last acted on them.
        self._behind: set[Key] = set()
        self._tracker: WriteTracker | None = None
        informer.add_index(_BY_SERVICE, self._services_of)
        informer.add_handler(self._on_change)
        self._lister = informer.lister
        self._services = stage.informer(SERVICES).lister

    def track(self, tracker: WriteTracker) -> Collection[str]:
        """From now on, report each write."""
        self._tracker = tracker
        ours = _Slices()

        def states(event: Event) -> Sequence[tuple[Key, Any]]:
            gone = event.type is EventType.DELETED or not self._is_kept(event.object)
            return _changed_endpoints(ours, event.object, gone=gone)

        tracker.follow(ENDPOINT_SLICES, states)
        return self._controllers

    def act_on(self, subject: Key) -> None:
        """Let our controllers act on a Service, if they are triggered."""
        service = Key(subject.namespace, subject.name.partition(" ")[0])
        for controller in self._controllers:
            self._stage.act(controller, service)

    def foresee(self, change: Change) -> None:
        """Create the nodes that a later slice names, because our controllers may need these nodes earlier."""
        obj = change.object
        if obj.resource == ENDPOINT_SLICES and change.type is not EventType.DELETED:
            self._learn_nodes_of(obj)

    def _services_of(self, obj: Object) -> Iterable[str]:
        return (str(service_of(obj)),) if self._is_kept(obj) else ()

    def _on_change(self, change: StoreChange) -> None:
        self._changed.update(service_of(obj) for obj in (change.old, change.new) if obj is not None)

    def _is_kept(self, obj: Object) -> bool:
        return obj.labels.get(MANAGED_BY) in self._managers

    @property
    def subjects(self) -> Collection[Key]:
        """The Services that have slices in the recording or in our log."""
        if not self._shown:
            return ()
        ours = {service_of(obj) for obj in self._lister.list() if self._is_kept(obj)}
        return self._recorded.by_service.keys() | ours

    @property
    def changed(self) -> Iterable[Key]:
        """The Services whose slices have changed since the last checkpoint."""
        return self._changed if self._shown else ()

    def compare(self, subject: Key) -> tuple[Any, Any]:
        """Return the recorded endpoints of a Service, and the endpoints in the replay's log."""
        ours = self._lister.by_index(_BY_SERVICE, str(subject))
        return said(self._recorded.of(subject)), said(ours)

    def observe(self, change: Change) -> None:
        """Before a Service changes, let our controller act if the recorded controller has written its objects.

        The method also notes whether the recording contains Nodes.
        """
        obj = change.object
        if obj.resource == NODES:
            self._nodes = None
        elif obj.resource == SERVICES and obj.key in self._behind:
            self._behind.discard(obj.key)
            self._learn_nodes([obj.key])
            for controller in self._controllers:
                self._stage.act(controller, obj.key)

    def expects(self, change: Change) -> bool:
        """Return False, because changes of other kinds are inputs."""
        return False

    def take(self, change: Change) -> bool:
        """Record the recorded controllers' writes; return False for slices of other writers, which are inputs."""
        obj = change.object
        self._shown = True
        known = self._recorded.get(obj.key)
        if known is None and not self._is_kept(obj):
            return False
        for each in (known, obj):
            if each is not None:
                self._behind.add(service_of(each))
                self._changed.add(service_of(each))
        gone = change.type is EventType.DELETED or not self._is_kept(obj)
        endpoints = _changed_endpoints(self._recorded, obj, gone=gone)
        if self._tracker is not None:
            self._learn_nodes([service_of(obj)])
            for key, state in endpoints:
                self._tracker.recorded((ENDPOINT_SLICES, key), WriteState(obj.revision, change.line, state))
        return True

    def take_past(self, change: Change) -> bool:
        """Record a slice from before the start of the recording."""
        obj = change.object
        self._shown = True
        self._changed.add(service_of(obj))
        self._recorded.put(obj.key, None if change.type is EventType.DELETED or not self._is_kept(obj) else obj)
        return False

    def prepare(self) -> None:
        """Create the nodes that recorded slices name."""
        self._learn_nodes(self._changed)

    def passed(self, revision: Revision) -> None:
        """Reset the recorded state after a checkpoint."""
        if self._shown:
            self._changed.clear()
        self._behind.clear()

    def unjudged(self) -> Iterable[UncomparedCounts]:
        """Return no counts of uncompared writes, because the replay compares all EndpointSlices."""
        return ()

    def _learn_nodes(self, services: Iterable[Key]) -> None:
        if self._nodes is None:
            return
        self._stage.follow()
        for service in sorted(services):
            for obj in self._recorded.of(service):
                self._learn_nodes_of(obj)

    def _learn_nodes_of(self, obj: Object) -> None:
        if self._nodes is None or obj.labels.get(MANAGED_BY) != KEEPER:
            return
        for endpoint in obj.view(EndpointSlice).endpoints or ():
            # If not-ready addresses are published, pods on missing nodes are published too, without a zone.
            name = endpoint.node_name
            if name and name not in self._nodes and (endpoint.zone or not self._publishes(service_of(obj))):
                self._nodes.add(name)
                self._stage.append(EventType.ADDED, _node(name, endpoint.zone or ""))

    def _publishes(self, service: Key) -> bool:
        obj = self._services.get(service)
        return obj is None or obj.view(Service).spec.publish_not_ready_addresses


class _Slices:
    """EndpointSlices, by name and by Service."""

    def __init__(self) -> None:
        self._objects: dict[Key, Object] = {}
        self.by_service: dict[Key, set[Key]] = {}

    def get(self, key: Key) -> Object | None:
        return self._objects.get(key)

    def of(self, service: Key) -> list[Object]:
        return [self._objects[key] for key in sorted(self.by_service.get(service, ()))]

    def put(self, key: Key, obj: Object | None) -> None:
        """Store `obj` at `key`; None removes the stored slice."""
        old = self._objects.pop(key, None)
        if old is not None:
            others = self.by_service[service_of(old)]
            others.discard(key)
            if not others:
                del self.by_service[service_of(old)]
        if obj is not None:
            self._objects[key] = obj
            self.by_service.setdefault(service_of(obj), set()).add(key)


def _changed_endpoints(slices: _Slices, obj: Object, *, gone: bool) -> list[tuple[Key, Any]]:
    """Add or remove a slice, and return the endpoints of all slices with the same ports and address type.

    The order of writes to slices with different ports does not matter.
    """
    service = service_of(obj)
    known = slices.get(obj.key)
    places = {place for each in (known, obj) if each is not None for place in said([each]) or ()}
    slices.put(obj.key, None if gone else obj)
    after = said(slices.of(service)) or {}
    return [(Key(service.namespace, f"{service.name} {place}"), after.get(place)) for place in sorted(places)]


def service_of(obj: Object) -> Key:
    """Return the key of a slice's Service; the Service's name is empty if the slice has no label for it."""
    return Key(obj.namespace, obj.labels.get(SERVICE_NAME, ""))


def said(slices: Iterable[Object]) -> dict[str, list[Any]] | None:
    """Return the sorted endpoints for each manager, address type and set of ports; None if there are no slices.

    A slice without endpoints results in an empty list.
    """
    found: dict[str, list[Any]] = {}
    for obj in slices:
        view = obj.view(EndpointSlice)
        ports = sorted(map(_port, msgspec.to_builtins(view.ports or [])))
        place = f"{obj.labels.get(MANAGED_BY)} {view.address_type} {', '.join(ports) or 'no ports'}"
        found.setdefault(place, []).extend(msgspec.to_builtins(view.endpoints or []))
    for endpoints in found.values():
        endpoints.sort(key=_encode)
    return found or None


_encode: Callable[[Any], bytes] = msgspec.json.Encoder(order="deterministic").encode


def _port(port: Mapping[str, Any]) -> str:
    protocol = f"{port.get('name') or ''}:{port.get('port')}/{port.get('protocol')}"
    return f"{protocol} {port['appProtocol']}" if port.get("appProtocol") else protocol


def _node(name: str, zone: str) -> Object:
    labels = {ZONE: zone} if zone else {}
    return Object.from_dict({"kind": "Node", "apiVersion": "v1", "metadata": {"name": name, "labels": labels}})
