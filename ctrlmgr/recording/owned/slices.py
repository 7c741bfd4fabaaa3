"""EndpointSlices in a replay: what those of one service say, however it is spread over slices.

Names are random, and how endpoints are packed follows from which changes a controller happened to see at once. So what
is compared is, for each service, who keeps its slices, and the set of endpoints of each address type and set of ports.

A recording that shows no slice at all does not have the kind, and then nothing is compared.

Whatever the recorded controllers keep (a slice's label says so) is expected, and never an input: they put right at
once what others do to such a slice, so it makes no difference at a checkpoint. All other slices are inputs.

Our controller acts at checkpoints, and before a service changes if the recorded one has written its slices since: one
that loses its selector leaves behind what there is.

Nodes. Slices tell of the nodes of their endpoints, and a recording need not hold Nodes. Where it holds none, there are
those that the recorded slices name, each in the zone that is told first: that a node exists and where it is cannot be
verified then, but that every endpoint on it says the same is.
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
from ctrlmgr.controllers.endpointslice.nodes import ZONE
from ctrlmgr.controllers.endpointslice.objects import MANAGER as KEEPER
from ctrlmgr.controllers.endpointslice_mirroring.controller import CONTROLLER_NAME as MIRRORING_CONTROLLER
from ctrlmgr.controllers.endpointslice_mirroring.controller import MANAGER as MIRROR
from ctrlmgr.eventlog import Event, EventType
from ctrlmgr.informer import Change as StoreChange
from ctrlmgr.recording.every_write import WriteTracker, Written
from ctrlmgr.recording.format import Change
from ctrlmgr.recording.report import Unjudged
from ctrlmgr.recording.stage import Stage

MANAGERS: Mapping[str, str] = {SLICE_CONTROLLER: KEEPER, MIRRORING_CONTROLLER: MIRROR}
"""What the label of the slices says that a controller keeps, by the controller's name."""

_BY_SERVICE = "service"


class OwnedSlices:
    """What is recorded of slices, and what our log has, by service."""

    resource = ENDPOINT_SLICES
    is_shared = False
    expects_others = False

    def __init__(self, stage: Stage, controllers: Collection[str]) -> None:
        """Expect of `controllers`, some of `MANAGERS`, what the recorded ones did; ask before `stage` starts."""
        informer = stage.informer(ENDPOINT_SLICES)
        self._stage = stage
        self._controllers = controllers
        self._managers = frozenset(MANAGERS[name] for name in controllers)
        self._recorded = _Slices()
        self._shown = False  # whether the recording has slices at all
        self._nodes: set[str] | None = set()  # those of which recorded slices told; None when Nodes are recorded
        self._changed: set[Key] = set()
        self._behind: set[Key] = set()  # services whose slices were written since ours acted on them
        self._tracker: WriteTracker | None = None
        informer.add_index(_BY_SERVICE, self._services_of)
        informer.add_handler(self._on_change)
        self._lister = informer.lister
        self._services = stage.informer(SERVICES).lister

    def track(self, tracker: WriteTracker) -> Collection[str]:
        """Tell of each write from now on."""
        self._tracker = tracker
        ours = _Slices()

        def states(event: Event) -> Sequence[tuple[Key, Any]]:
            gone = event.type is EventType.DELETED or not self._is_kept(event.object)
            return _told(ours, event.object, gone=gone)

        tracker.follow(ENDPOINT_SLICES, states)
        return self._controllers

    def act_on(self, subject: Key) -> None:
        """Let our controllers act on a service that they have a reason to look at."""
        service = Key(subject.namespace, subject.name.partition(" ")[0])
        for controller in self._controllers:
            self._stage.act(controller, service)

    def foresee(self, change: Change) -> None:
        """See to it that there are the nodes that a slice names which comes later: ours may tell of them before."""
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
        """Every service that has slices on either side."""
        if not self._shown:
            return ()
        ours = {service_of(obj) for obj in self._lister.list() if self._is_kept(obj)}
        return self._recorded.by_service.keys() | ours

    @property
    def changed(self) -> Iterable[Key]:
        """Services of which slices have changed since the last checkpoint."""
        return self._changed if self._shown else ()

    def compare(self, subject: Key) -> tuple[Any, Any]:
        """Return what the slices of a service say."""
        ours = self._lister.by_index(_BY_SERVICE, str(subject))
        return said(self._recorded.of(subject)), said(ours)

    def observe(self, change: Change) -> None:
        """Let our controller act before a service changes, if the recorded one had; notice Nodes."""
        obj = change.object
        if obj.resource == NODES:
            self._nodes = None
        elif obj.resource == SERVICES and obj.key in self._behind:
            self._behind.discard(obj.key)
            self._learn_nodes([obj.key])
            for controller in self._controllers:
                self._stage.act(controller, obj.key)

    def expects(self, change: Change) -> bool:
        """Return False: of other kinds everything is input."""
        return False

    def take(self, change: Change) -> bool:
        """Note what the recorded controllers wrote; anything else is an input."""
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
        told = _told(self._recorded, obj, gone=gone)
        if self._tracker is not None:
            self._learn_nodes([service_of(obj)])
            for key, state in told:
                self._tracker.recorded((ENDPOINT_SLICES, key), Written(obj.revision, change.line, state))
        return True

    def take_past(self, change: Change) -> bool:
        """Note a slice of the past."""
        obj = change.object
        self._shown = True
        self._changed.add(service_of(obj))
        self._recorded.put(obj.key, None if change.type is EventType.DELETED or not self._is_kept(obj) else obj)
        return False

    def prepare(self) -> None:
        """See to it that the nodes are there of which recorded slices tell."""
        self._learn_nodes(self._changed)

    def passed(self, revision: Revision) -> None:
        """Forget what was before the checkpoint."""
        if self._shown:
            self._changed.clear()
        self._behind.clear()

    def unjudged(self) -> Iterable[Unjudged]:
        """Return nothing: all of it can be compared."""
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
            # Where addresses that are not ready are published, pods on missing nodes are too, without a zone.
            name = endpoint.node_name
            if name and name not in self._nodes and (endpoint.zone or not self._publishes(service_of(obj))):
                self._nodes.add(name)
                self._stage.append(EventType.ADDED, _node(name, endpoint.zone or ""))

    def _publishes(self, service: Key) -> bool:
        obj = self._services.get(service)
        return obj is None or obj.view(Service).spec.publish_not_ready_addresses


class _Slices:
    """Slices by name and by service."""

    def __init__(self) -> None:
        self._objects: dict[Key, Object] = {}
        self.by_service: dict[Key, set[Key]] = {}

    def get(self, key: Key) -> Object | None:
        return self._objects.get(key)

    def of(self, service: Key) -> list[Object]:
        return [self._objects[key] for key in sorted(self.by_service.get(service, ()))]

    def put(self, key: Key, obj: Object | None) -> None:
        """Put `obj` at `key`; None takes away what is there."""
        old = self._objects.pop(key, None)
        if old is not None:
            others = self.by_service[service_of(old)]
            others.discard(key)
            if not others:
                del self.by_service[service_of(old)]
        if obj is not None:
            self._objects[key] = obj
            self.by_service.setdefault(service_of(obj), set()).add(key)


def _told(slices: _Slices, obj: Object, *, gone: bool) -> list[tuple[Key, Any]]:
    """Put a slice among others, or take it away, and return what those with its ports and addresses say then.

    Slices with others may be written before or after it: in which order does not matter.
    """
    service = service_of(obj)
    known = slices.get(obj.key)
    places = {place for each in (known, obj) if each is not None for place in said([each]) or ()}
    slices.put(obj.key, None if gone else obj)
    after = said(slices.of(service)) or {}
    return [(Key(service.namespace, f"{service.name} {place}"), after.get(place)) for place in sorted(places)]


def service_of(obj: Object) -> Key:
    """Return the key of the service that a slice is for; its name is empty if the slice does not say."""
    return Key(obj.namespace, obj.labels.get(SERVICE_NAME, ""))


def said(slices: Iterable[Object]) -> dict[str, list[Any]] | None:
    """Return the endpoints of each keeper, address type and set of ports, sorted; None if there is no slice.

    A slice without endpoints counts: it says that there are none.
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
