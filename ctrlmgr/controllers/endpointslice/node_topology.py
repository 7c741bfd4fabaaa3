"""The nodes of endpoints: the zone of each node, and each zone's share of the CPU capacity of all nodes.

Guarantees:
- When a node is created or deleted, or its zone changes, the Services with pods on the node are enqueued. A created or
  deleted node, and a change of a node's zone, readiness, CPU or role, also enqueue the Services that request hints by
  CPU.
- The shares of zones exist only if every counted node has a zone and a CPU capacity, and there are at least two zones.
  A node counts if it is ready and not a control plane node (`SetNodes` in Kubernetes'
  `k8s.io/endpointslice/topologycache`).

Kubernetes retries a Service with pods on a missing node for a while, and ignores other node changes until the Service
or one of its pods changes. In ctrlmgr, changes of nodes update slices immediately, like changes of pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ctrlmgr.api.core import Node, Pod
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key
from ctrlmgr.controllers.endpoints.pod_changes import PodChanges
from ctrlmgr.controllers.endpointslice.topology_hints import Shares, asks_for_topology
from ctrlmgr.eventlog.event import EventType
from ctrlmgr.informer import Change, Informer, Lister

ZONE = "topology.kubernetes.io/zone"
"""The label of a node that contains its zone."""

_CONTROL_PLANE = frozenset(("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"))
_BY_NODE = "node"
_BY_TOPOLOGY = "asks for topology"


class Zones:
    """The zones of the current nodes, and each zone's share of the CPU capacity; an instance is thread-safe."""

    def __init__(self, nodes: Informer) -> None:
        """Create an instance that follows `nodes`; the caller must do this before `nodes` syncs."""
        self._nodes = nodes.lister
        self._known: tuple[Shares | None] | None = None  # The cached result of `shares`, until a node changes.
        nodes.add_handler(self._on_node, vital=True)

    def of(self, node: str) -> str | None:
        """Return the zone of a node: "" if the node has no zone, None if the node does not exist."""
        found = self._nodes.get(Key("", node))
        return None if found is None else found.labels.get(ZONE, "")

    def shares(self) -> Shares | None:
        """Return the share of each zone in the CPU capacity of all nodes; None if the shares are unknown."""
        known = self._known
        if known is None:
            known = self._known = (cpu_shares(self._nodes.list()),)
        return known[0]

    def _on_node(self, _: Change) -> None:
        self._known = None


class _Capacity(NamedTuple):
    """The fields of a node that determine hints by CPU."""

    zone: str
    cpu: int


def cpu_shares(nodes: Iterable[Object]) -> dict[str, float] | None:
    """Return the share of each zone in the CPU of `nodes`.

    The result is None if a zone or CPU is unknown, or all nodes are in one zone.
    """
    cpu: dict[str, int] = {}
    for node in nodes:
        capacity = _capacity(node)
        if capacity is None:
            continue
        if not all(capacity):
            return None
        cpu[capacity.zone] = cpu.get(capacity.zone, 0) + capacity.cpu
    if len(cpu) < 2:
        return None
    in_all = sum(cpu.values())
    return {zone: each / in_all for zone, each in sorted(cpu.items())}


def _capacity(node: Object) -> _Capacity | None:
    """Return a node's zone and CPU; None if the node does not count."""
    if not _CONTROL_PLANE.isdisjoint(node.labels):
        return None
    view = node.view(Node)
    return _Capacity(node.labels.get(ZONE, ""), view.cpu) if view.is_ready else None


class NodeChanges:
    """The mapping from a change of a node to the sorted keys of the affected Services."""

    def __init__(self, nodes: Informer, pods: Informer, services: Informer, pod_changes: PodChanges) -> None:
        """Create the mapping, which indexes `pods` by their nodes, and `services`.

        The caller must do this before both sync. The argument `pod_changes` maps pods to Services.
        """
        pods.add_index(_BY_NODE, _node_of)
        services.add_index(_BY_TOPOLOGY, _asks_for_topology)
        self._nodes = nodes
        self._pods: Lister = pods.lister
        self._services: Lister = services.lister
        self._services_of = pod_changes

    def __call__(self, change: Change) -> list[Key]:
        """Return the keys of the Services to reconcile after `change`; return no keys before the first sync."""
        if not self._nodes.has_synced:
            return []
        found: set[Key] = set()
        old, new = change.old, change.new
        if old is None or new is None or old.labels.get(ZONE) != new.labels.get(ZONE):
            found.update(self._services_on(change))
        concerned: Sequence[Object] = self._services.by_index(_BY_TOPOLOGY, "Auto")
        if concerned and (old and _capacity(old)) != (new and _capacity(new)):
            found.update(service.key for service in concerned)
        return sorted(found)

    def _services_on(self, change: Change) -> Iterable[Key]:
        """Return the Services with pods on a node, as if each of these pods were new."""
        for pod in self._pods.by_index(_BY_NODE, change.object.name):
            yield from self._services_of(Change(EventType.ADDED, None, pod, change.revision))


def _node_of(pod: Object) -> Iterable[str]:
    return (pod.view(Pod).spec.node_name,)


def _asks_for_topology(service: Object) -> Iterable[str]:
    return ("Auto",) if asks_for_topology(service.annotations) else ()
