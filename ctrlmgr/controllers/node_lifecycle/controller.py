"""The node lifecycle controller: checks all nodes every few seconds, and each node when the node changes.

The modules `decide` and `zones` state the guarantees of the controller. The controller has one worker, so its state
needs no lock. A failed write is retried in the next round.

The controller has three kinds of keys. The key `*` stands for the round over all nodes. A name without a namespace
stands for a node, and a namespace and name stand for a pod that was bound to a node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import structlog

from ctrlmgr.api.core import ObjectReference, Pod
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import LEASES, NODES, PODS, Key
from ctrlmgr.client import EngineClient
from ctrlmgr.clock import Clock, format_time_seconds
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.descriptor import ControllerContext
from ctrlmgr.controllers.events.recorder import NORMAL, WARNING, Recorder
from ctrlmgr.controllers.node_lifecycle import DESCRIPTOR, Options
from ctrlmgr.controllers.node_lifecycle.decide import (
    GracePeriods,
    Health,
    NodeCheck,
    TaintChange,
    condition_taint_change,
    judge,
    label_changes,
    with_taints,
)
from ctrlmgr.controllers.node_lifecycle.view import HealthLease, HealthNode
from ctrlmgr.controllers.node_lifecycle.zones import Rates, TaintQueue, ZoneState, passage, zone_state
from ctrlmgr.controllers.pods_of_nodes import index_by_node, pods_of_node
from ctrlmgr.controllers.workloads.status_conditions import condition_of
from ctrlmgr.errors import ApiError, NotFound
from ctrlmgr.informer import Change, Lister
from ctrlmgr.manager import Controller, Result, Watch
from ctrlmgr.scheduling.taints import NO_EXECUTE, NOT_READY, UNREACHABLE

log = structlog.get_logger(__name__)

_ROUND: Final = Key("", "*")
_LEASES: Final = "kube-node-lease"
_EXCLUDED: Final = "node.kubernetes.io/exclude-disruption"
_GONE: Final = {
    "False": ((NOT_READY, NO_EXECUTE), (UNREACHABLE, NO_EXECUTE)),
    "Unknown": ((UNREACHABLE, NO_EXECUTE), (NOT_READY, NO_EXECUTE)),
}
"""The taint that evicts pods for each status of Ready, and the opposite taint, which must be removed."""


class NodeLifecycle:
    """Reconciles three kinds of keys; the module's docstring lists them."""

    def __init__(
        self, nodes: Lister, pods: Lister, leases: Lister, recorder: Recorder, options: Options, *, clock: Clock
    ) -> None:
        """Create a reconciler that reads objects from these caches; `pods` is indexed by node."""
        self._nodes = nodes
        self._pods = pods
        self._leases = leases
        self._recorder = recorder
        self._options = options
        self._grace = GracePeriods(options.node_monitor_grace_period, options.node_startup_grace_period)
        self._rates = Rates(
            options.node_eviction_rate, options.secondary_node_eviction_rate, options.large_cluster_size_threshold
        )
        self._clock = clock
        self._next_look = 0.0
        self._known: dict[str, str] = {}  # The uid of each known node, by its name.
        self._health: dict[str, Health] = {}
        self._zones: dict[str, ZoneState] = {}
        self._queues: dict[str, TaintQueue] = {}
        self._unmarked: set[str] = set()  # The names of nodes with pods that could not be marked as not ready.

    def on_start(self) -> Iterator[Key]:
        """Reset all state, because the state may be outdated, and yield the key of a round over all nodes."""
        for kept in (self._known, self._health, self._zones, self._queues):
            kept.clear()
        self._unmarked.clear()
        self._next_look = 0.0
        yield _ROUND

    def reconcile(self, key: Key, client: EngineClient) -> Result | None:
        """Reconcile the round over all nodes, one node, or one pod, depending on the key."""
        if key == _ROUND:
            return Result(requeue_after=self._round(client))
        if key.namespace:
            self._pod(key, client)
        else:
            self._node(key, client)
        return None

    # The following methods handle a changed node.

    def _node(self, key: Key, client: EngineClient) -> None:
        node = self._nodes.get(key)
        if node is None:
            return
        view = node.view(HealthNode)
        change = condition_taint_change(view)
        labels = label_changes(node.labels)
        if change == TaintChange() and not labels:
            return
        fields = node.to_dict()
        self._put_taints(fields, change)
        if labels:
            fields["metadata"]["labels"] = {**fields["metadata"].get("labels", {}), **labels}
        client.update(Object.from_dict(fields))

    def _put_taints(self, fields: dict[str, Any], change: TaintChange) -> None:
        if change == TaintChange():
            return
        spec = fields.setdefault("spec", {})
        taints = with_taints(spec.get("taints") or (), change, self._clock.now())
        spec.pop("taints", None)
        if taints:
            spec["taints"] = taints

    def _swap(self, node: Object, change: TaintChange, client: EngineClient) -> bool:
        """Add taints to a node and remove taints from it; return False if the write failed and must be retried."""
        fields = node.to_dict()
        self._put_taints(fields, change)
        try:
            client.update(Object.from_dict(fields))
        except NotFound:
            return True
        except ApiError as error:
            log.info("taint update failed", node=node.name, error=str(error))
            return False
        return True

    # Methods that handle a pod that was bound to a node.

    def pod_keys(self, change: Change) -> Iterator[Key]:
        """Yield the key of a pod that was bound to a node that is not ready.

        If a node becomes not ready later, the condition of all cached pods on the node is set at that time.
        """
        if change.new is None:
            return
        place = change.new.view(Pod).spec.node_name
        if place and self._is_unready(place) and (change.old is None or change.old.view(Pod).spec.node_name != place):
            yield change.new.key

    def _is_unready(self, name: str) -> bool:
        health = self._health.get(name)
        return health is not None and health.ready is not None and health.ready.status != "True"

    def _pod(self, key: Key, client: EngineClient) -> None:
        pod = self._pods.get(key)
        if pod is None:
            return
        place = pod.view(Pod).spec.node_name
        if self._is_unready(place) and self._nodes.get(Key("", place)) is not None:
            self._mark(pod, client)

    def _mark(self, pod: Object, client: EngineClient) -> None:
        """Set a pod's condition Ready to False, if the condition is not False already."""
        fields = pod.to_dict()
        ready = condition_of(fields.get("status", {}).get("conditions"), "Ready")
        if ready is None or ready["status"] == "False":
            return
        at = format_time_seconds(self._clock.now())
        changed = {**ready, "status": "False", "lastTransitionTime": at}
        if "observedGeneration" in ready:
            changed["observedGeneration"] = fields["metadata"].get("generation", 0)
        conditions = fields["status"]["conditions"]
        fields["status"]["conditions"] = [changed if each is ready else each for each in conditions]
        client.update(Object.from_dict(fields), "status")
        self._recorder.event(pod, WARNING, "NodeNotReady", "Node is not ready")

    def _mark_all(self, name: str, client: EngineClient) -> None:
        """Set the condition Ready of all pods on a node to False; if a write fails, the next round retries the node."""
        self._unmarked.discard(name)
        for pod in pods_of_node(self._pods, name):
            try:
                self._mark(pod, client)
            except NotFound:
                continue
            except ApiError as error:
                log.info("pod status update failed", pod=str(pod.key), error=str(error))
                self._unmarked.add(name)

    # The following methods handle the round over all nodes.

    def _round(self, client: EngineClient) -> float:
        """Check all nodes if the monitoring period has passed, and taint the queued nodes that are due.

        Return the seconds until the next round over the nodes.
        """
        if self._clock.monotonic() >= self._next_look:
            self._look(client)
            self._next_look = self._clock.monotonic() + self._options.node_monitor_period
        waits = [self._next_look - self._clock.monotonic()]
        for queue in self._queues.values():
            wait = queue.work(lambda name: self._give_up(name, client), self._clock.monotonic())
            if wait is not None:
                waits.append(max(wait, 0.05))
        return max(min(waits), 0.0)

    def _look(self, client: EngineClient) -> None:
        nodes = self._nodes.list()
        self._announce(nodes, client)
        ready: dict[str, list[bool]] = {}
        for node in nodes:
            try:
                judgement = self._look_at(node, client)
            except NotFound:
                continue
            except ApiError as error:
                log.info("node not checked", node=node.name, error=str(error))
                continue
            if _EXCLUDED not in node.labels:
                ready.setdefault(node.view(HealthNode).zone, []).append(judgement.current == "True")
        self._pass_zones(ready, nodes, client)

    def _announce(self, nodes: Iterable[Object], client: EngineClient) -> None:
        present = {}
        for node in nodes:
            present[node.name] = node.uid
            view = node.view(HealthNode)
            self._queue_of(view.zone)
            if node.name not in self._known:
                self._tell(node.name, node.uid, "RegisteredNode", f"Registered Node {node.name} in Controller")
                self._reachable(node, client)
        for name in self._known.keys() - present.keys():
            self._tell(name, self._known[name], "RemovingNode", f"Removing Node {name} from Controller")
            self._health.pop(name, None)
            self._unmarked.discard(name)
        self._known = present

    def _tell(self, name: str, uid: str, reason: str, message: str) -> None:
        subject = ObjectReference("Node", name=name, uid=uid, api_version="v1")
        self._recorder.event(subject, NORMAL, reason, f"Node {name} event: {message}")

    def _queue_of(self, zone: str) -> TaintQueue:
        if zone not in self._queues:
            self._queues[zone] = TaintQueue(self._rates.normal, self._clock.monotonic())
            self._zones.setdefault(zone, ZoneState.INITIAL)
        return self._queues[zone]

    def _look_at(self, node: Object, client: EngineClient) -> NodeCheck:
        lease = self._leases.get(Key(_LEASES, node.name))
        renewed = (lease.view(HealthLease).spec.renew_time or "") if lease is not None else ""
        view = node.view(HealthNode)
        health, now = self._health.get(node.name), self._clock.now()
        judgement = judge(view, health, renewed, now, self._grace)
        if judgement.conditions is not None:  # This branch is rare, so the whole node is decoded only here.
            fields = node.to_dict()
            status = fields.setdefault("status", {})
            judgement = judge(view, health, renewed, now, self._grace, status.get("conditions") or ())
            status["conditions"] = judgement.conditions
            node = client.update(Object.from_dict(fields), "status")
        self._health[node.name] = judgement.health
        if judgement.current is not None:
            self._follow(node, judgement, client)
        return judgement

    def _follow(self, node: Object, judgement: NodeCheck, client: EngineClient) -> None:
        """Update taints, Events and pods after a node's state was first read or has changed."""
        if judgement.observed == "True":
            self._reachable(node, client)
        else:
            self._unreachable(node, judgement.observed, client)
        turned = judgement.current != "True" and judgement.observed == "True"
        if turned:
            subject = ObjectReference("Node", name=node.name, uid=node.uid, api_version="v1")
            message = f"Node {node.name} status is now: NodeNotReady"
            self._recorder.event(subject, NORMAL, "NodeNotReady", message)
        if turned or (node.name in self._unmarked and judgement.observed != "True"):
            self._mark_all(node.name, client)

    def _reachable(self, node: Object, client: EngineClient) -> None:
        view = node.view(HealthNode)
        found = tuple(each for each in _GONE["Unknown"] if view.has_taint(*each))
        if found:
            self._swap(node, TaintChange(remove=found), client)
        self._queue_of(view.zone).remove(node.name)

    def _unreachable(self, node: Object, status: str, client: EngineClient) -> None:
        """Queue a node for tainting.

        If the node already has the opposite NoExecute taint, taint the node immediately.
        """
        desired, opposite = _GONE.get(status, _GONE["Unknown"])
        view = node.view(HealthNode)
        if view.has_taint(*opposite):
            self._swap(node, TaintChange((desired,), (opposite,)), client)
            return
        queue = self._queue_of(view.zone)
        if not view.has_taint(*desired):
            queue.remove(node.name)
        queue.add(node.name)

    def _give_up(self, name: str, client: EngineClient) -> bool:
        """Taint a node so that its pods are evicted, unless the node is ready again.

        Return False if the write failed and must be retried.
        """
        node = self._nodes.get(Key("", name))
        if node is None:
            return True
        view = node.view(HealthNode)
        if view.ready is None:
            return False
        if view.ready.status not in _GONE:
            return True
        desired, opposite = _GONE[view.ready.status]
        if view.has_taint(*desired) and not view.has_taint(*opposite):
            return True
        return self._swap(node, TaintChange((desired,), (opposite,)), client)

    def _pass_zones(self, ready: dict[str, list[bool]], nodes: Iterable[Object], client: EngineClient) -> None:
        states = {zone: zone_state(each, self._options.unhealthy_zone_threshold) for zone, each in ready.items()}
        sizes = {zone: len(each) for zone, each in ready.items()}
        passed = passage(self._zones, states, sizes, self._rates)
        self._zones = dict(passed.states)
        for zone, rate in passed.rates.items():
            self._queue_of(zone).bucket.set_rate(rate, self._clock.monotonic())
        if passed.entered and ready:
            log.warning("no node is ready: evicting no pods")
            for node in nodes:
                self._reachable(node, client)
        if passed.left:
            now = self._clock.now()
            self._health = {name: each._replace(heard_at=now) for name, each in self._health.items()}


def node_keys(change: Change) -> Iterator[Key]:
    """Yield the key of a node whose taints or labels may need an update."""
    if change.new is None:
        return
    new = change.new.view(HealthNode)
    if change.old is None or _reported(change.old.view(HealthNode)) != _reported(new):
        yield change.new.key


def _reported(node: HealthNode) -> tuple[Any, ...]:
    conditions = [(each.type, each.status) for each in node.status.conditions or ()]
    return conditions, node.spec, node.metadata.labels


def build(context: ControllerContext, options: Options) -> Controller:
    """Build the controller from its context and options."""
    nodes, pods, leases = (context.informers.informer(each) for each in (NODES, PODS, LEASES))
    index_by_node(pods)
    reconciler = NodeLifecycle(
        nodes.lister, pods.lister, leases.lister, context.recorder(DESCRIPTOR), options, clock=context.clock
    )
    return assemble(DESCRIPTOR, context, reconciler, [Watch(nodes, node_keys), Watch(pods, reconciler.pod_keys)])
