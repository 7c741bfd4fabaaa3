"""What slices tell of nodes: the zones they are in, and the shares that the zones have in all CPU.

Guarantees:
- A change of a node that slices tell of has the services looked at whose slices do: it came or went, or its zone
  changed, for the services of its pods; also its readiness, CPU or role, for those that want hints by CPU.
- Shares are there only if every node that counts is in a zone and says how much CPU it has, and if there are two zones
  at least. A node counts if it is ready and not of the control plane (`SetNodes` in Kubernetes'
  `k8s.io/endpointslice/topologycache`).

Kubernetes tries a service with pods on a missing node again and again for a while, and takes no notice of other nodes
until the service or one of its pods changes. Here slices follow nodes as they follow pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ctrlmgr.api.core import Node, Pod
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key
from ctrlmgr.controllers.endpoints.pod_changes import PodChanges
from ctrlmgr.controllers.endpointslice.hints import Shares, asks_for_topology
from ctrlmgr.eventlog.event import EventType
from ctrlmgr.informer import Change, Informer, Lister

ZONE = "topology.kubernetes.io/zone"
"""The label of a node that names its zone."""

_CONTROL_PLANE = frozenset(("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"))
_BY_NODE = "node"
_BY_TOPOLOGY = "asks for topology"


class Zones:
    """Answers by what the nodes are at the moment; threads may share it."""

    def __init__(self, nodes: Informer) -> None:
        """Follow `nodes`; ask before they sync."""
        self._nodes = nodes.lister
        self._known: tuple[Shares | None] | None = None  # what `shares` returned, until some node changes
        nodes.add_handler(self._on_node, vital=True)

    def of(self, node: str) -> str | None:
        """Return the zone of a node: "" if it is in none, None if there is no such node."""
        found = self._nodes.get(Key("", node))
        return None if found is None else found.labels.get(ZONE, "")

    def shares(self) -> Shares | None:
        """Return the share of each zone in all CPU, None if that is not known."""
        known = self._known
        if known is None:
            known = self._known = (cpu_shares(self._nodes.list()),)
        return known[0]

    def _on_node(self, _: Change) -> None:
        self._known = None


class _Capacity(NamedTuple):
    """What counts of a node where hints go by CPU."""

    zone: str
    cpu: int


def cpu_shares(nodes: Iterable[Object]) -> dict[str, float] | None:
    """Return the share of each zone in the CPU of `nodes`; None if some of them do not say, or all are in one zone."""
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
    """Return what a node offers; None if it does not count."""
    if not _CONTROL_PLANE.isdisjoint(node.labels):
        return None
    view = node.view(Node)
    return _Capacity(node.labels.get(ZONE, ""), view.cpu) if view.is_ready else None


class NodeChanges:
    """Names the services that a change of a node concerns, by their keys, in order."""

    def __init__(self, nodes: Informer, pods: Informer, services: Informer, pod_changes: PodChanges) -> None:
        """Index `pods` by their nodes, and `services`; ask before they sync. `pod_changes` knows whose a pod is."""
        pods.add_index(_BY_NODE, _node_of)
        services.add_index(_BY_TOPOLOGY, _asks_for_topology)
        self._nodes = nodes
        self._pods: Lister = pods.lister
        self._services: Lister = services.lister
        self._services_of = pod_changes

    def __call__(self, change: Change) -> list[Key]:
        """Return the keys of the services to reconcile after `change`; none at the start, when all are."""
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
        """Return the services with pods on a node, as if each of these had just come."""
        for pod in self._pods.by_index(_BY_NODE, change.object.name):
            yield from self._services_of(Change(EventType.ADDED, None, pod, change.revision))


def _node_of(pod: Object) -> Iterable[str]:
    return (pod.view(Pod).spec.node_name,)


def _asks_for_topology(service: Object) -> Iterable[str]:
    return ("Auto",) if asks_for_topology(service.annotations) else ()
