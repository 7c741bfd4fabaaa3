"""Models the pods and nodes that the scheduler counts.

Guarantees: a `PodInfo` never changes. Only `add` and `remove` change a `NodeInfo`, so that the sums in a `NodeInfo`
always match its pods; a `copy` shares no mutable state with its original.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key
from ctrlmgr.scheduling.declared_features import features_of
from ctrlmgr.scheduling.node_selection import NodeAffinity
from ctrlmgr.scheduling.resource_amounts import Amounts, amounts, pod_requests
from ctrlmgr.scheduling.scheduling_view import (
    AffinityTerm,
    NodeView,
    PodView,
    SpreadConstraint,
    TermsView,
    decode_node,
    decode_pod,
)
from ctrlmgr.scheduling.taints import Taint, Toleration
from ctrlmgr.scheduling.volume_restrictions import Disk, disks_of

ANY_ADDRESS: Final = "0.0.0.0"
ENDED: Final = ("Succeeded", "Failed")
_NO_TERMS: Final = TermsView()
_ZONES: Final = (
    ("topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"),
    ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"),
)


class HostPort(NamedTuple):
    """A port of a node that a pod uses."""

    address: str
    protocol: str
    port: int

    def clashes(self, other: HostPort) -> bool:
        """Return whether both ports cannot be used on one node: they are equal, or differ only by an `ANY_ADDRESS`."""
        if (self.protocol, self.port) != (other.protocol, other.port):
            return False
        return self.address == other.address or ANY_ADDRESS in (self.address, other.address)


Kin = tuple[str, frozenset[tuple[str, str]]]
"""The namespace and the labels of an object. Selectors cannot distinguish pods that have the same namespace and
labels.
"""


class PodInfo:
    """A pod, with values that are derived from its fields only once."""

    def __init__(self, view: PodView) -> None:
        """Store the decoded fields of a pod."""
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
        """Decode the fields of a pod that scheduling reads."""
        return cls(decode_pod(pod.body))

    @property
    def has_ended(self) -> bool:
        """Return whether the pod has terminated, so that it no longer uses its node."""
        return self.view.status.phase in ENDED

    @property
    def group(self) -> Key | None:
        """Return the PodGroup to which the pod belongs, if any."""
        group = self.view.spec.scheduling_group
        return Key(self.namespace, group.pod_group_name) if group is not None else None

    @cached_property
    def kin(self) -> Kin:
        """Return the pod's namespace and labels, by which selectors match the pod."""
        return self.namespace, frozenset(self.labels.items())

    @cached_property
    def asks_for_nodes(self) -> bool:
        """Return whether the pod limits its nodes with a node selector or a required node affinity."""
        affinity = self.node_affinity
        return bool(self.view.spec.node_selector) or (affinity is not None and affinity.required is not None)

    @cached_property
    def requests(self) -> Amounts:
        """Return the pod's requests."""
        return pod_requests(self.view.spec)

    @cached_property
    def defaulted_requests(self) -> Amounts:
        """Return the pod's requests for scoring, in which containers without requests have default requests."""
        return pod_requests(self.view.spec, defaulted=True)

    @cached_property
    def host_ports(self) -> tuple[HostPort, ...]:
        """Return the host ports of the pod's containers and sidecars."""
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
        """Return the pod's tolerations."""
        return self.view.spec.tolerations or []

    @property
    def node_affinity(self) -> NodeAffinity | None:
        """Return the pod's node affinity."""
        affinity = self.view.spec.affinity
        return affinity.node_affinity if affinity is not None else None

    @cached_property
    def affinity(self) -> TermsView:
        """Return the pod's affinity to other pods."""
        affinity = self.view.spec.affinity
        return (affinity.pod_affinity if affinity is not None else None) or _NO_TERMS

    @cached_property
    def anti_affinity(self) -> TermsView:
        """Return the pod's anti-affinity to other pods."""
        affinity = self.view.spec.affinity
        return (affinity.pod_anti_affinity if affinity is not None else None) or _NO_TERMS

    @cached_property
    def has_affinity(self) -> bool:
        """Return whether the pod has affinity or anti-affinity to other pods."""
        return self.affinity is not _NO_TERMS or self.anti_affinity is not _NO_TERMS

    @cached_property
    def required_anti_affinity(self) -> list[AffinityTerm]:
        """Return the pod's required anti-affinity terms."""
        return self.anti_affinity.required or []

    @property
    def spread(self) -> list[SpreadConstraint]:
        """Return the pod's topology spread constraints."""
        return self.view.spec.topology_spread_constraints or []

    @property
    def nominated(self) -> str:
        """Return the pod's nominated node; "" if the pod is not nominated."""
        return self.view.status.nominated_node_name

    @cached_property
    def disks(self) -> tuple[Disk, ...]:
        """Return the disks that the pod's volumes name directly."""
        return tuple(disk for volume in self.view.spec.volumes or () for disk in disks_of(volume))

    @cached_property
    def features(self) -> frozenset[str]:
        """Return the features that a node's kubelet must declare to run the pod."""
        return features_of(self.view.spec)

    @cached_property
    def claims(self) -> tuple[str, ...]:
        """Return the names of the PersistentVolumeClaims that the pod mounts."""
        found = []
        for volume in self.view.spec.volumes or ():
            if volume.persistent_volume_claim is not None:
                found.append(volume.persistent_volume_claim.claim_name)
            elif volume.ephemeral is not None:
                found.append(f"{self.key.name}-{volume.name}")
        return tuple(found)


@dataclass(slots=True)
class NodeInfo:
    """A node with the pods that are bound to it or will be bound to it."""

    name: str
    labels: Mapping[str, str]
    taints: list[Taint]
    unschedulable: bool
    allocatable: Amounts
    images: Mapping[str, int] = field(default_factory=dict)
    """The size of each image on the node in bytes, by each of the image's names."""
    features: frozenset[str] = frozenset()
    """The features that the node's kubelet has declared."""
    pods: dict[Key, PodInfo] = field(default_factory=dict)
    used: Amounts = field(default_factory=dict)
    used_defaulted: Amounts = field(default_factory=dict)
    ports: list[HostPort] = field(default_factory=list)
    with_affinity: dict[Key, PodInfo] = field(default_factory=dict)
    with_required_anti_affinity: dict[Key, PodInfo] = field(default_factory=dict)
    kin: dict[Kin, int] = field(default_factory=dict)
    """The number of pods on the node that are not terminating, by `Kin`."""
    zone: str = field(init=False)
    """The node's region and zone as one key; "" if the node has neither label."""

    def __post_init__(self) -> None:
        """Compute the node's zone only once, because the labels of a `NodeInfo` do not change."""
        region, zone = (next((self.labels[key] for key in keys if key in self.labels), "") for keys in _ZONES)
        self.zone = f"{region}:\0:{zone}" if region or zone else ""

    @classmethod
    def of(cls, node: Object) -> NodeInfo:
        """Decode a node; the result has no pods."""
        return cls.of_view(decode_node(node.body))

    @classmethod
    def of_view(cls, view: NodeView) -> NodeInfo:
        """Return a node from its decoded fields; the result has no pods."""
        images = {name: each.size_bytes for each in view.status.images or () for name in each.names or ()}
        spec = view.spec
        held = amounts(view.status.allocatable)
        name, labels, features = view.metadata.name, view.metadata.labels or {}, view.status.declared_features or ()
        return cls(name, labels, spec.taints or [], spec.unschedulable, held, images, frozenset(features))

    def add(self, pod: PodInfo) -> None:
        """Add a pod to the node; the pod must not be on the node already."""
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
        """Remove a pod from the node; only its key is compared."""
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
        """Add the pods of the previous state of the node to this state."""
        for pod in other.pods.values():
            self.add(pod)

    def copy(self) -> NodeInfo:
        """Return an independent copy of the node."""
        facts = (self.labels, self.taints, self.unschedulable, self.allocatable, self.images, self.features)
        fresh = NodeInfo(self.name, *facts)
        fresh.pods, fresh.ports, fresh.kin = dict(self.pods), list(self.ports), dict(self.kin)
        fresh.used, fresh.used_defaulted = dict(self.used), dict(self.used_defaulted)
        fresh.with_affinity = dict(self.with_affinity)
        fresh.with_required_anti_affinity = dict(self.with_required_anti_affinity)
        return fresh


def _count(total: Amounts, requested: Amounts, sign: int) -> None:
    for name, amount in requested.items():
        total[name] = total.get(name, 0) + sign * amount


class Cluster:
    """The state of the cluster on which scheduling decisions are based."""

    def __init__(self, nodes: Iterable[NodeInfo] = ()) -> None:
        """Create a state with these nodes."""
        self._nodes = {node.name: node for node in nodes}
        self._in_order: list[NodeInfo] | None = None
        self._images: frozenset[str] = frozenset()
        self.namespaces: dict[str, Mapping[str, str]] = {}
        """The labels of each namespace."""
        self.nominated: dict[str, dict[Key, PodInfo]] = {}
        """The pods that are nominated for each node, by the node's name."""

    @property
    def nodes(self) -> Mapping[str, NodeInfo]:
        """Return the nodes, by name."""
        return self._nodes

    def put(self, node: NodeInfo) -> None:
        """Add or replace a node."""
        self._nodes[node.name] = node
        self._in_order = None

    def drop(self, name: str) -> None:
        """Remove a node that exists."""
        del self._nodes[name]
        self._in_order = None

    @property
    def images(self) -> frozenset[str]:
        """Return the names of all images that are on any node."""
        self.list()
        return self._images

    def list(self) -> list[NodeInfo]:
        """Return the nodes, alternating between zones; the nodes of a zone are in the order in which they were added.

        The caller must not change the returned list.
        """
        if self._in_order is None:
            zones: dict[str, list[NodeInfo]] = {}
            for node in self._nodes.values():
                zones.setdefault(node.zone, []).append(node)
            self._in_order = [*_in_turn([*zones.values()])] if zones else []
            self._images = frozenset(name for node in self._nodes.values() for name in node.images)
        return self._in_order

    def nominate(self, pod: PodInfo, node: str) -> None:
        """Nominate a pod for a node."""
        self.drop_nomination(pod.key)
        self.nominated.setdefault(node, {})[pod.key] = pod

    def drop_nomination(self, key: Key) -> None:
        """Remove a pod's nomination."""
        for node, pods in [*self.nominated.items()]:
            if pods.pop(key, None) is not None and not pods:
                del self.nominated[node]


def _in_turn(zones: list[list[NodeInfo]]) -> Iterator[NodeInfo]:
    for turn in range(max(map(len, zones))):
        yield from (zone[turn] for zone in zones if turn < len(zone))
