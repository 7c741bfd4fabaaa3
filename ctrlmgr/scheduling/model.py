"""Pods and nodes as the scheduler counts them.

Guarantees: a `PodInfo` never changes. A `NodeInfo` is changed by `add` and `remove` alone, so that its sums are those
of its pods; `copy` shares nothing that changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key
from ctrlmgr.scheduling.node_selection import NodeAffinity
from ctrlmgr.scheduling.resources import Amounts, amounts, pod_requests
from ctrlmgr.scheduling.taints import Taint, Toleration
from ctrlmgr.scheduling.views import (
    AffinityTerm,
    NodeView,
    PodView,
    SpreadConstraint,
    TermsView,
    decode_node,
    decode_pod,
)

ANY_ADDRESS: Final = "0.0.0.0"
_ENDED: Final = ("Succeeded", "Failed")
_NO_TERMS: Final = TermsView()
_ZONES: Final = (
    ("topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"),
    ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"),
)


class HostPort(NamedTuple):
    """A port of the node that a pod takes."""

    address: str
    protocol: str
    port: int

    def clashes(self, other: HostPort) -> bool:
        """Say whether the two cannot be had on one node: the same port, of one address or of every address."""
        if (self.protocol, self.port) != (other.protocol, other.port):
            return False
        return self.address == other.address or ANY_ADDRESS in (self.address, other.address)


Kin = tuple[str, frozenset[tuple[str, str]]]
"""A namespace and labels: what pods that are alike have in common."""


class PodInfo:
    """A pod, and what scheduling derives from it, once."""

    def __init__(self, view: PodView) -> None:
        """Take in what is read of a pod."""
        self.view = view
        meta, spec = view.metadata, view.spec
        self.key: Final = Key(meta.namespace, meta.name)
        self.uid: Final = meta.uid
        self.namespace: Final = meta.namespace
        self.labels: Final[Mapping[str, str]] = meta.labels or {}
        self.priority: Final = spec.priority
        self.node_name: Final = spec.node_name
        self.is_terminating: Final = meta.deletion_timestamp is not None

    @classmethod
    def of(cls, pod: Object) -> PodInfo:
        """Read a pod."""
        return cls(decode_pod(pod.body))

    @property
    def has_ended(self) -> bool:
        """Whether it holds nothing on its node any more."""
        return self.view.status.phase in _ENDED

    @cached_property
    def kin(self) -> Kin:
        """What it has in common with those that selectors take for the same."""
        return self.namespace, frozenset(self.labels.items())

    @cached_property
    def asks_for_nodes(self) -> bool:
        """Whether not every node will do: it has a selector, or required affinity."""
        affinity = self.node_affinity
        return bool(self.view.spec.node_selector) or (affinity is not None and affinity.required is not None)

    @cached_property
    def requests(self) -> Amounts:
        """What it asks for."""
        return pod_requests(self.view.spec)

    @cached_property
    def defaulted_requests(self) -> Amounts:
        """What it counts for where nodes are scored by how empty they are."""
        return pod_requests(self.view.spec, defaulted=True)

    @cached_property
    def host_ports(self) -> tuple[HostPort, ...]:
        """The ports of its node that it takes: those of its containers and sidecars."""
        spec = self.view.spec
        sidecars = [each for each in spec.init_containers or () if each.restart_policy == "Always"]
        return tuple(
            HostPort(port.host_ip or ANY_ADDRESS, port.protocol or "TCP", port.host_port)
            for container in (*(spec.containers or ()), *sidecars)
            for port in container.ports or ()
            if port.host_port
        )

    @property
    def tolerations(self) -> list[Toleration]:
        """What it tolerates."""
        return self.view.spec.tolerations or []

    @property
    def node_affinity(self) -> NodeAffinity | None:
        """Which nodes it asks for."""
        affinity = self.view.spec.affinity
        return affinity.node_affinity if affinity is not None else None

    @cached_property
    def affinity(self) -> TermsView:
        """Beside which pods it wants to be."""
        affinity = self.view.spec.affinity
        return (affinity.pod_affinity if affinity is not None else None) or _NO_TERMS

    @cached_property
    def anti_affinity(self) -> TermsView:
        """Beside which pods it does not want to be."""
        affinity = self.view.spec.affinity
        return (affinity.pod_anti_affinity if affinity is not None else None) or _NO_TERMS

    @cached_property
    def has_affinity(self) -> bool:
        """Whether it says anything of other pods."""
        return self.affinity is not _NO_TERMS or self.anti_affinity is not _NO_TERMS

    @cached_property
    def required_anti_affinity(self) -> list[AffinityTerm]:
        """Beside which pods it must not be."""
        return self.anti_affinity.required or []

    @property
    def spread(self) -> list[SpreadConstraint]:
        """How it and its like are to be spread."""
        return self.view.spec.topology_spread_constraints or []

    @property
    def nominated(self) -> str:
        """The node on which room is made for it, "" for none."""
        return self.view.status.nominated_node_name

    @cached_property
    def claims(self) -> tuple[str, ...]:
        """The names of the claims of volumes that it mounts."""
        found = []
        for volume in self.view.spec.volumes or ():
            if volume.persistent_volume_claim is not None:
                found.append(volume.persistent_volume_claim.claim_name)
            elif volume.ephemeral is not None:
                found.append(f"{self.key.name}-{volume.name}")
        return tuple(found)


@dataclass(slots=True)
class NodeInfo:
    """A node with the pods that are on it, or that have been given to it."""

    name: str
    labels: Mapping[str, str]
    taints: list[Taint]
    unschedulable: bool
    allocatable: Amounts
    images: Mapping[str, int] = field(default_factory=dict)
    """The size in bytes of each image that is there, by each of its names."""
    pods: dict[Key, PodInfo] = field(default_factory=dict)
    used: Amounts = field(default_factory=dict)
    used_defaulted: Amounts = field(default_factory=dict)
    ports: list[HostPort] = field(default_factory=list)
    with_affinity: dict[Key, PodInfo] = field(default_factory=dict)
    with_required_anti_affinity: dict[Key, PodInfo] = field(default_factory=dict)
    kin: dict[Kin, int] = field(default_factory=dict)
    """How many pods of each kind there are that are not on their way out."""
    zone: str = field(init=False)
    """Region and zone as one key; "" if it says neither."""

    def __post_init__(self) -> None:
        """Find out its zone: its labels do not change."""
        region, zone = (next((self.labels[key] for key in keys if key in self.labels), "") for keys in _ZONES)
        self.zone = f"{region}:\0:{zone}" if region or zone else ""

    @classmethod
    def of(cls, node: Object) -> NodeInfo:
        """Read a node; it has no pods yet."""
        return cls.of_view(decode_node(node.body))

    @classmethod
    def of_view(cls, view: NodeView) -> NodeInfo:
        """Take in what is read of a node; it has no pods yet."""
        images = {name: each.size_bytes for each in view.status.images or () for name in each.names or ()}
        spec = view.spec
        held = amounts(view.status.allocatable)
        return cls(view.metadata.name, view.metadata.labels or {}, spec.taints or [], spec.unschedulable, held, images)

    def add(self, pod: PodInfo) -> None:
        """Count a pod in; it must not be there."""
        self.pods[pod.key] = pod
        _count(self.used, pod.requests, 1)
        _count(self.used_defaulted, pod.defaulted_requests, 1)
        self.ports.extend(pod.host_ports)
        if not pod.is_terminating:
            self.kin[pod.kin] = self.kin.get(pod.kin, 0) + 1
        if pod.has_affinity:
            self.with_affinity[pod.key] = pod
            if pod.required_anti_affinity:
                self.with_required_anti_affinity[pod.key] = pod

    def remove(self, pod: PodInfo) -> None:
        """Count out a pod that was counted in, by its key."""
        held = self.pods.pop(pod.key)
        _count(self.used, held.requests, -1)
        _count(self.used_defaulted, held.defaulted_requests, -1)
        for port in held.host_ports:
            self.ports.remove(port)
        if not held.is_terminating:
            self.kin[held.kin] -= 1
            if not self.kin[held.kin]:
                del self.kin[held.kin]
        self.with_affinity.pop(pod.key, None)
        self.with_required_anti_affinity.pop(pod.key, None)

    def take_over(self, other: NodeInfo) -> None:
        """Take over the pods of what the node was before."""
        for pod in other.pods.values():
            self.add(pod)

    def copy(self) -> NodeInfo:
        """Return the same, to be changed by itself."""
        fresh = NodeInfo(self.name, self.labels, self.taints, self.unschedulable, self.allocatable, self.images)
        fresh.pods, fresh.ports, fresh.kin = dict(self.pods), list(self.ports), dict(self.kin)
        fresh.used, fresh.used_defaulted = dict(self.used), dict(self.used_defaulted)
        fresh.with_affinity = dict(self.with_affinity)
        fresh.with_required_anti_affinity = dict(self.with_required_anti_affinity)
        return fresh


def _count(total: Amounts, asked: Amounts, sign: int) -> None:
    for name, amount in asked.items():
        total[name] = total.get(name, 0) + sign * amount


class Cluster:
    """Everything that a decision is made on."""

    def __init__(self, nodes: Iterable[NodeInfo] = ()) -> None:
        """Begin with these nodes."""
        self._nodes = {node.name: node for node in nodes}
        self._in_order: list[NodeInfo] | None = None
        self._images: frozenset[str] = frozenset()
        self.namespaces: dict[str, Mapping[str, str]] = {}
        """The labels of each namespace."""
        self.nominated: dict[str, dict[Key, PodInfo]] = {}
        """By node, the pods for which room is made there."""

    @property
    def nodes(self) -> Mapping[str, NodeInfo]:
        """The nodes, by name."""
        return self._nodes

    def put(self, node: NodeInfo) -> None:
        """Add a node, or put it in the place of what it was."""
        self._nodes[node.name] = node
        self._in_order = None

    def drop(self, name: str) -> None:
        """Take away a node that is there."""
        del self._nodes[name]
        self._in_order = None

    @property
    def images(self) -> frozenset[str]:
        """The names of all images that any node has."""
        self.list()
        return self._images

    def list(self) -> list[NodeInfo]:
        """Return the nodes, in turn from each zone; zones and nodes as they came. The list is not to be changed."""
        if self._in_order is None:
            zones: dict[str, list[NodeInfo]] = {}
            for node in self._nodes.values():
                zones.setdefault(node.zone, []).append(node)
            self._in_order = [*_in_turn([*zones.values()])] if zones else []
            self._images = frozenset(name for node in self._nodes.values() for name in node.images)
        return self._in_order

    def nominate(self, pod: PodInfo, node: str) -> None:
        """Remember that room is made for a pod on a node."""
        self.drop_nomination(pod.key)
        self.nominated.setdefault(node, {})[pod.key] = pod

    def drop_nomination(self, key: Key) -> None:
        """Forget for which node a pod was meant."""
        for node, pods in [*self.nominated.items()]:
            if pods.pop(key, None) is not None and not pods:
                del self.nominated[node]


def _in_turn(zones: list[list[NodeInfo]]) -> Iterator[NodeInfo]:
    for turn in range(max(map(len, zones))):
        yield from (zone[turn] for zone in zones if turn < len(zone))
