"""Simulated kubelets: registers nodes, renews their leases and statuses, and reports the state of their pods.

Guarantees:
- The controller changes only nodes with the simulation's label, and pods on such nodes. The controller executes no
  commands.
- Each write is made in the name of the node's user, `system:node:NAME`.
- `simulation.kubelet_status.desired_status` computes a pod's status. This controller writes the status of a pod
  whenever the status changes. The controller derives all state from the objects, so a new process continues where the
  last process stopped.

A key with only a name stands for a node, and a key with a namespace and a name stands for a pod. The key `*` stands for
the renewal of the leases that are due.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from threading import Lock
from typing import Any, Final

import structlog

from ctrlmgr.api.core import Node, ObjectReference, Pod
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import ENDPOINT_SLICES, LEASES, NODES, PODS, SERVICES, Key
from ctrlmgr.client import EngineClient
from ctrlmgr.clock import Clock, format_time_seconds, parse_time
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.descriptor import ControllerContext
from ctrlmgr.controllers.events.recorder import WARNING, Recorder
from ctrlmgr.controllers.persistentvolume_attach_detach.attachable import CLAIMS
from ctrlmgr.controllers.pods_of_nodes import index_by_node, pods_of_node
from ctrlmgr.controllers.simulated_nodes import DESCRIPTOR, Options
from ctrlmgr.controllers.simulated_nodes.behaviour_rules import Rules, read_behaviour
from ctrlmgr.controllers.simulated_nodes.cluster_services import SeenServices, Services
from ctrlmgr.controllers.simulated_nodes.csi_nodes import CSI_NODES, CsiNodes, csi_node_keys
from ctrlmgr.controllers.simulated_nodes.kubelet_events import kubelet_events, unknown_commands
from ctrlmgr.controllers.simulated_nodes.node_leases import Renewals
from ctrlmgr.controllers.simulated_nodes.pod_volumes import PodVolumes
from ctrlmgr.controllers.simulated_nodes.published_slices import RESOURCE_SLICES, ResourceSlices, slice_keys
from ctrlmgr.controllers.simulated_nodes.shared_files import SharedFiles
from ctrlmgr.controllers.simulated_nodes.simulated_time import PodTime, asked_of, ips_of, misunderstood, taken_at
from ctrlmgr.errors import AlreadyExists, NotFound
from ctrlmgr.informer import Change, Lister
from ctrlmgr.manager import Controller, Result, Watch
from ctrlmgr.scheduling.cluster_model import NodeInfo, PodInfo
from ctrlmgr.scheduling.filters import PORTS_TAKEN
from ctrlmgr.scheduling.resource_amounts import shortages
from ctrlmgr.simulation.kubelet_status import Place, desired_status, rejected
from ctrlmgr.simulation.nodes import (
    ADDRESSES,
    MARK,
    Template,
    free_address,
    is_lost,
    new_node,
    node_status,
    problems,
    templates,
)
from ctrlmgr.simulation.pod_lifecycle import live
from ctrlmgr.simulation.simulated_files import is_sharing

log = structlog.get_logger(__name__)

_GROUPS: Final = ("system:nodes", "system:authenticated")
_LEASES: Final = Key("", "*")
_LOOK: Final = 10.0
"""The number of seconds until a node's status is corrected after another client has changed the status."""
_REPORT: Final = 300.0
"""The number of seconds after which an unchanged status of a node is written again."""
_MOMENT: Final = 0.25
_SOON: Final = 0.01
"""The minimum wait until the next reconcile, in seconds."""
_REJECTS_AFTER: Final = 1.0
"""The number of seconds between a pod's creation timestamp and its rejection by a node."""
_SECOND: Final = 1_000_000
_WORKERS: Final = 8
"""The number of nodes and pods that are reconciled concurrently. The workers wait for the log most of the time."""
_ENDED: Final = ("Succeeded", "Failed")


class SimulatedNodes:
    """The reconciler of simulated nodes and their pods."""

    def __init__(
        self,
        nodes: Lister,
        pods: Lister,
        leases: Lister,
        slices: ResourceSlices,
        csi_nodes: CsiNodes,
        volumes: PodVolumes,
        services: Services,
        recorder: Recorder,
        desired: Sequence[Template],
        rules: Rules,
        speed: float,
        *,
        clock: Clock,
    ) -> None:
        """Create a reconciler that reads objects from these caches.

        The informer of pods has an index by node. The reconciler creates the nodes in `desired`.
        """
        self._nodes = nodes
        self._pods = pods
        self._renewals = Renewals(nodes, leases, clock=clock)
        self._slices = slices
        self._csi_nodes = csi_nodes
        self._volumes = volumes
        self._services = services
        self._recorder = recorder
        self._wanted = {each.name: each for each in desired}
        self._rules = rules
        self._speed = speed
        self._clock = clock
        self._reported: dict[str, float] = {}
        self._addresses: dict[str, str] = {}
        # The errors in the annotations of each node for which an Event was recorded.
        self._misunderstood: dict[str, list[str]] = {}
        # The addresses of accepted pods that the cache may not contain yet. For pods on the host's network, there are
        # no addresses.
        self._given: dict[Key, tuple[str, ...]] = {}
        # Three values for each pod: the pod's revision at its last reconcile, the number of changes of its Services,
        # and the time (monotonic seconds) until which it needs no reconcile. With these values, the controller ignores
        # its own writes.
        self._looked_at: dict[Key, tuple[tuple[int, int], float]] = {}
        self._shared = SharedFiles()
        # A worker holds this lock while it assigns addresses or accepts a pod.
        self._giving = Lock()

    def on_start(self) -> Iterator[Key]:
        """Reset all state; yield the keys of all wanted and all simulated nodes, and of the pods on these nodes."""
        self._reported.clear()
        self._renewals.restart()
        self._looked_at.clear()
        self._shared = SharedFiles()
        marked = [node for node in self._nodes.list() if is_marked(node)]
        self._addresses = {node.name: address for node in marked for address in _addresses(node)}
        self._gather_files(marked)
        for name in dict.fromkeys([*self._wanted, *(node.name for node in marked)]):
            yield Key("", name)
            yield from (pod.key for pod in pods_of_node(self._pods, name))
        yield _LEASES

    def _gather_files(self, nodes: Sequence[Object]) -> None:
        """Compute which files the pods have changed in shared volumes, beginning with the oldest pods."""
        found = [(pod.to_dict(), node) for node in nodes for pod in pods_of_node(self._pods, node.name)]
        sharing = [each for each in found if taken_at(each[0]) and is_sharing(each[0])]
        now = self._clock.now()
        for fields, node in sorted(sharing, key=lambda each: taken_at(each[0])):
            time, uid = PodTime.of(fields, now, self._speed), fields["metadata"]["uid"]
            asked, seen = asked_of(fields, self._rules, node.annotations), self._shared.seen_by(uid, time, None)
            life = live(
                fields, asked, time.seconds(now), time.end(fields), seen, self._network(fields, time, ips_of(fields))
            )
            self._shared.note(uid, time, now, life.told)

    def reconcile(self, key: Key, client: EngineClient) -> Result | None:
        """Reconcile a node, a pod, or the leases, depending on the key."""
        if key == _LEASES:
            return self._renew(client)
        return self._pod(key, client) if key.namespace else self._node(key, client)

    # The following methods handle nodes.

    def _node(self, key: Key, client: EngineClient) -> Result | None:
        name = key.name
        node = self._nodes.get(key)
        acting = _as_node(client, name)
        if node is None or not is_marked(node) or is_lost(node.annotations):
            self._renewals.drop(name)
            if node is None:
                self._shared.drop(f"node/{name}")
            return self._register(name, acting) if node is None else None
        self._report(node, acting)
        self._slices.publish(node, acting)
        self._csi_nodes.register(node, acting)
        self._volumes.report(node, acting)
        self._tell_problems(node)
        self._renewals.begin(node, acting)
        reported = self._reported.get(name, -_REPORT)
        return Result(requeue_after=max(reported + _REPORT - self._clock.monotonic(), _LOOK))

    def _renew(self, client: EngineClient) -> Result:
        return Result(requeue_after=self._renewals.renew(client, lambda name: _as_node(client, name)))

    def _register(self, name: str, client: EngineClient) -> Result | None:
        """Create a wanted node that has not existed since the start; a deleted node is not created again."""
        if name not in self._wanted or name in self._addresses:
            return None
        try:
            client.create(Object.from_dict(new_node(self._wanted[name])))
        except AlreadyExists:
            log.debug("node already exists", node=name)
        return None  # The creation of the node triggers the next reconcile.

    def _report(self, node: Object, client: EngineClient) -> None:
        now = self._clock.monotonic()
        beats = now - self._reported.get(node.name, -_REPORT) >= _REPORT
        fields = node.to_dict()
        address = self._address(node.name, fields)
        status = node_status(fields, address, format_time_seconds(self._clock.now()), beats=beats)
        if status == fields.get("status"):
            return
        client.update(Object.from_dict({**fields, "status": status}), "status")
        if beats:
            self._reported[node.name] = now

    def _tell_problems(self, node: Object) -> None:
        """Record an Event for each error in a node's annotations, once for each error."""
        found = problems(node.annotations)
        for problem in found if self._misunderstood.get(node.name) != found else ():
            subject = ObjectReference("Node", name=node.name, uid=node.uid, api_version="v1")
            self._recorder.event(subject, WARNING, "SimulatedBehaviour", problem)
        self._misunderstood[node.name] = found

    def _address(self, name: str, fields: Mapping[str, Any]) -> str:
        """Return a node's address: its current address, or the lowest free address."""
        with self._giving:
            if name not in self._addresses:
                own = [each["address"] for each in (fields.get("status") or {}).get("addresses") or ()]
                self._addresses[name] = own[0] if own else free_address(ADDRESSES, self._addresses.values(), skip=2)
            return self._addresses[name]

    # The following methods handle pods.

    def _pod(self, key: Key, client: EngineClient) -> Result | None:
        pod = self._pods.get(key)
        if pod is None:
            self._given.pop(key, None)
            self._looked_at.pop(key, None)
            self._services.forget(key)
            self._volumes.forget(key)
            return None
        node = self._nodes.get(Key("", pod.view(Pod).spec.node_name))
        if node is None or not is_marked(node) or is_lost(node.annotations):
            return None
        known, state = self._looked_at.get(key), (pod.revision, self._services.changes(key))
        if known is not None and known[0] == state and (left := known[1] - self._clock.monotonic()) > _SOON:
            return None if left == inf else Result(requeue_after=left)
        acting = _as_node(client, node.name)
        fields = pod.to_dict()
        if (fields.get("status") or {}).get("phase") in _ENDED:
            self._services.forget(key)
            if pod.is_terminating:
                self._delete(pod, acting)
            return None
        try:
            return self._live(pod, fields, node, acting)
        except NotFound:
            return None

    def _live(self, pod: Object, fields: dict[str, Any], node: Object, client: EngineClient) -> Result | None:
        changes = self._services.changes(pod.key)
        now = self._clock.now()
        time = PodTime.of(fields, now, self._speed)
        is_new = not taken_at(fields)
        with self._giving:
            refusal = self._refusal(pod, node) if is_new else None
            place = self._place(pod, fields, node) if refusal is None else None
        if refusal is not None:
            # If pods were rejected at once, controllers that recreate failed pods would loop without a delay.
            wait = _REJECTS_AFTER - (now - parse_time(pod.metadata.creation_timestamp or "")) / _SECOND
            if wait > 0:
                return Result(requeue_after=wait)
            self._reject(pod, fields, *refusal, time.write(0.0), client)
            return None
        if place is None:
            return Result(requeue_after=_MOMENT)
        end = time.end(fields)
        waits = self._volumes.wait(pod, node) if is_new and end is None else None
        if waits is not None:
            self._create_containers(pod, fields, node, place, time, client)
            return Result(requeue_after=waits)
        for problem in misunderstood(fields, self._rules) if is_new else ():
            self._recorder.event(pod, WARNING, "SimulatedBehaviour", problem)
        seconds = time.seconds(now)
        seen = self._shared.seen_by(pod.uid, time, now) if is_sharing(fields) else None
        asked = asked_of(fields, self._rules, node.annotations)
        network = self._network(fields, time, place.pod_ips)
        desired = desired_status(fields, asked, place, seconds, end, time.write, seen, network)
        self._shared.note(pod.uid, time, now, desired.life.told)
        if end is not None and is_new:
            self._delete(pod, client)
            return None
        if desired.status != fields.get("status"):
            updated = client.update(Object.from_dict({**fields, "status": desired.status}), "status")
            self._tell(pod, fields, desired.status)
            for each in unknown_commands(desired.life):
                self._recorder.event(pod, each.type, each.reason, each.message)
            pod = updated
        if end is not None and desired.stopped:
            self._delete(pod, client)
            return None
        if desired.changes_in is None:
            self._looked_at[pod.key] = (pod.revision, changes), inf
            return None
        wait = max(desired.changes_in / self._speed, _SOON)
        self._looked_at[pod.key] = (pod.revision, changes), self._clock.monotonic() + wait
        return Result(requeue_after=wait)

    def _create_containers(
        self, pod: Object, fields: dict[str, Any], node: Object, place: Place, time: PodTime, client: EngineClient
    ) -> None:
        """Report that the containers of a pod cannot start yet; the pod has no start time and no addresses."""
        asked = asked_of(fields, self._rules, node.annotations)
        status = desired_status(fields, asked, Place(place.host_ips, ()), 0.0, None, time.write).status
        del status["startTime"]
        if status != fields.get("status"):
            client.update(Object.from_dict({**fields, "status": status}), "status")

    def _network(self, fields: Mapping[str, Any], time: PodTime, own: Sequence[str]) -> SeenServices:
        meta = fields["metadata"]
        return self._services.seen_by(Key(meta["namespace"], meta["name"]), time, own)

    def _tell(self, pod: Object, fields: Mapping[str, Any], status: Mapping[str, Any]) -> None:
        for each in kubelet_events(fields, status):
            subject = ObjectReference("Pod", pod.namespace, pod.name, pod.uid, "v1", field_path=each.field_path)
            self._recorder.event(subject, each.type, each.reason, each.message)

    def _delete(self, pod: Object, client: EngineClient) -> None:
        try:
            client.delete(pod, grace=0)
        except NotFound:
            log.debug("pod already deleted", pod=str(pod.key))
        self._given.pop(pod.key, None)

    def _refusal(self, pod: Object, node: Object) -> tuple[str, str] | None:
        """Return the reason and the message with which a kubelet would reject a pod that names its node."""
        others = NodeInfo.of(node)
        for each in pods_of_node(self._pods, node.name):
            info = PodInfo.of(each)
            is_taken = info.view.status.start_time is not None or each.key in self._given
            if each.key != pod.key and not info.has_ended and is_taken:
                others.add(info)
        info = PodInfo.of(pod)
        if any(port.clashes(taken) for port in info.host_ports for taken in others.ports):
            return "NodePorts", f"Predicate NodePorts failed: {PORTS_TAKEN}"
        reasons, _ = shortages(info.requests, others.allocatable, others.used, len(others.pods))
        if not reasons:
            return None
        name = "pods" if reasons[0] == "Too many pods" else reasons[0].removeprefix("Insufficient ")
        asked = 1 if name == "pods" else info.requests[name]
        used = len(others.pods) if name == "pods" else others.used.get(name, 0)
        message = (
            f"Node didn't have enough resource: {name}, requested: {asked}, used: {used}, "
            f"capacity: {others.allocatable.get(name, 0)}"
        )
        return f"OutOf{name}", message

    def _reject(
        self, pod: Object, fields: dict[str, Any], reason: str, message: str, at: str, client: EngineClient
    ) -> None:
        status = rejected(fields, reason, message, at)
        client.update(Object.from_dict({**fields, "status": status}), "status")
        self._recorder.event(pod, WARNING, reason, message)

    def _place(self, pod: Object, fields: Mapping[str, Any], node: Object) -> Place | None:
        """Return the addresses of a pod and of its node; None if the addresses are not assigned yet."""
        hosts = tuple(_addresses(node))
        if not hosts:
            return None
        spec = fields["spec"]
        if spec.get("hostNetwork"):
            if not taken_at(fields):
                self._given[pod.key] = ()
            return Place(hosts, hosts)
        own = tuple(ips_of(fields))
        if own:
            self._given.pop(pod.key, None)
            return Place(hosts, own)
        if self._given.get(pod.key):
            return Place(hosts, self._given[pod.key])
        ranges = node.to_dict()["spec"].get("podCIDRs") or ()
        others = pods_of_node(self._pods, node.name)
        taken = {ip for each in others for ip in (*each.view(Pod).ips, *self._given.get(each.key, ()))}
        found = tuple(free_address(ipaddress.ip_network(each), taken, skip=2) for each in ranges)
        if not found or not all(found):
            return None
        self._given[pod.key] = found
        return Place(hosts, found)

    # The following methods map changes to the keys of reconciles.

    def node_keys(self, change: Change) -> Iterator[Key]:
        """Yield the key of a node that was created or deleted, or whose annotations or labels changed.

        If a node was created again, the keys of its pods are yielded, too.
        """
        new, old = change.new, change.old
        if not is_marked(change.object):
            return
        if new is None:
            yield change.object.key
        elif old is None or old.annotations != new.annotations or old.labels != new.labels:
            yield new.key
            if old is None or is_lost(old.annotations):
                yield from (pod.key for pod in pods_of_node(self._pods, new.name))

    def status_keys(self, change: Change) -> Iterator[Key]:
        """Yield the key of a node whose conditions have changed.

        Another client may have changed the conditions.
        """
        new, old = change.new, change.old
        if new is None or old is None or not is_marked(new):
            return
        if _heartbeat_facts(old) != _heartbeat_facts(new):
            yield new.key


def _heartbeat_facts(node: Object) -> list[tuple[str, str]]:
    return [(each.type, each.status) for each in node.view(Node).status.conditions or ()]


def pod_keys(change: Change) -> Iterator[Key]:
    """Yield the key of a pod that is bound to a node."""
    if change.object.view(Pod).spec.node_name:
        yield change.object.key


def is_marked(node: Object) -> bool:
    """Return whether a node has the label of simulated nodes."""
    return node.labels.get(MARK) == "true"


def _addresses(node: Object) -> Iterator[str]:
    for each in (node.to_dict().get("status") or {}).get("addresses") or ():
        if each["type"] == "InternalIP":
            yield each["address"]


def _as_node(client: EngineClient, name: str) -> EngineClient:
    return client.acting_as(f"system:node:{name}", _GROUPS)


def build(context: ControllerContext, options: Options) -> Controller:
    """Build the controller from its context and options; raises `SettingsError` if a file of the options has errors."""
    nodes, pods, leases = (context.informers.informer(each) for each in (NODES, PODS, LEASES))
    index_by_node(pods)
    services, endpoint_slices = (context.informers.informer(each) for each in (SERVICES, ENDPOINT_SLICES))
    devices, csi_nodes = (context.informers.informer(each) for each in (RESOURCE_SLICES, CSI_NODES))
    claims, recorder = context.informers.informer(CLAIMS), context.recorder(DESCRIPTOR)
    volumes = PodVolumes(context.informers, recorder, clock=context.clock)
    desired = templates(options.nodes)
    network = Services(context.clock)
    # These handlers must be registered before the watches. The handlers record what pods have seen, and a standby
    # process also needs these records.
    services.add_handler(network.note_service, name=DESCRIPTOR.name)
    endpoint_slices.add_handler(network.note_slice, name=DESCRIPTOR.name)
    reconciler = SimulatedNodes(
        nodes.lister,
        pods.lister,
        leases.lister,
        ResourceSlices(devices.lister, {each.name: each.devices for each in desired}),
        CsiNodes(csi_nodes.lister),
        volumes,
        network,
        recorder,
        desired,
        read_behaviour(options),
        options.simulated_speed,
        clock=context.clock,
    )
    watches = [
        Watch(nodes, reconciler.node_keys),
        Watch(nodes, reconciler.status_keys, delay=_LOOK),
        Watch(pods, pod_keys),
        Watch(devices, slice_keys),
        Watch(csi_nodes, csi_node_keys),
        Watch(claims, volumes.keys_of_claim),
        Watch(nodes, volumes.keys_of_node),
        Watch(pods, volumes.keys_of_pod),
        Watch(services, network.askers),
        Watch(endpoint_slices, network.askers_of_slice),
    ]
    return assemble(DESCRIPTOR, context, reconciler, watches, workers=_WORKERS)
