"""Filters decide whether a node is feasible for a pod; if not, they return the reason in kube-scheduler's words.

Guarantees: filters run in the order of the default profile, and the first filter that refuses a node provides the
reason. For preemption, a refusal says whether the deletion of other pods could make the node feasible (`helps`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from ctrlmgr.api.resource import Key
from ctrlmgr.scheduling import declared_features, volume_limits
from ctrlmgr.scheduling.cluster_model import NodeInfo, PodInfo
from ctrlmgr.scheduling.dynamic_resources import NO_DEVICES, PLUGIN, Devices
from ctrlmgr.scheduling.node_selection import NodeSelector, selects
from ctrlmgr.scheduling.pod_affinity import NO_AFFINITY, HardAffinity, Namespaces
from ctrlmgr.scheduling.profile import DEFAULT, Profile
from ctrlmgr.scheduling.resource_amounts import PODS, Amounts, shortages
from ctrlmgr.scheduling.scheduling_view import SpreadConstraint
from ctrlmgr.scheduling.spread import MISSING_LABEL, HardSpread
from ctrlmgr.scheduling.taints import UNSCHEDULABLE, Taint, first_untolerated, is_tolerated
from ctrlmgr.scheduling.volume_binding import Delayed, allotted
from ctrlmgr.scheduling.volume_limits import VolumeLimits
from ctrlmgr.scheduling.volume_restrictions import IN_USE, NO_DISK, NO_ZONE, Zones, is_in_zones

UNSCHEDULABLE_NODE: Final = "node(s) were unschedulable"
OTHER_NAME: Final = "node(s) didn't match the requested node name"
UNTOLERATED: Final = "node(s) had untolerated taint(s)"
ENFORCED: Final = "node(s) didn't match scheduler-enforced node affinity"
NOT_SELECTED: Final = "node(s) didn't match Pod's node affinity/selector"
PORTS_TAKEN: Final = "node(s) didn't have free ports for the requested pod ports"
NO_VOLUME: Final = "node(s) didn't find available persistent volumes to bind"
VOLUME_ELSEWHERE: Final = "node(s) didn't match PersistentVolume's node affinity"

_CORDONED: Final = Taint(UNSCHEDULABLE, "", "NoSchedule")


class Refusal(NamedTuple):
    """The reason why a node is infeasible: the plugin, its messages, and whether deleting pods could help."""

    plugin: str
    reasons: tuple[str, ...]
    helps: bool = False


class Volumes(NamedTuple):
    """The node requirements of a pod's volumes: selectors that must all match, or a problem for every node."""

    selectors: tuple[NodeSelector, ...] = ()
    zones: Zones = ()
    once: frozenset[str] = frozenset()
    """The claims that only one pod may use (ReadWriteOncePod)."""
    delayed: tuple[Delayed, ...] = ()
    """The claims that are bound after the pod's node is chosen."""
    limits: VolumeLimits | None = None
    """The limits for the pod's volumes; None if no CSI driver attaches any volume of the pod."""
    problem: str = ""
    is_unknown: bool = False
    """Whether the problem is that a bound volume is missing in the cache. The cache may be older than the claim."""


NO_VOLUMES: Final = Volumes()


class Filters:
    """All filters for one pod, with the facts about the whole cluster that the filters need."""

    def __init__(
        self,
        pod: PodInfo,
        nodes: Sequence[NodeInfo],
        namespaces: Namespaces,
        volumes: Volumes = NO_VOLUMES,
        devices: Devices = NO_DEVICES,
        *,
        profile: Profile = DEFAULT,
        spread: Sequence[SpreadConstraint] | None = None,
    ) -> None:
        """Collect the facts about the whole cluster.

        `spread` contains the constraints for the pod; None if the pod has its own constraints.
        """
        self.pod = pod
        self.profile = profile
        self._on = profile.filters
        self._volumes = volumes
        self.devices = devices
        self._spread = HardSpread(pod, nodes, pod.spread if spread is None else spread)
        self._affinity = HardAffinity(pod, nodes, namespaces)
        self._requests = _checked(pod.requests, profile)
        # The number of times that other pods use the claims that only one pod may use.
        self._rivals = sum(self._uses(each) for node in nodes for each in node.pods.values()) if volumes.once else 0
        self._selector = pod.view.spec.node_selector
        self._tolerates_cordons = is_tolerated(_CORDONED, pod.tolerations)
        self._amounts = [(name, amount) for name, amount in pod.requests.items() if amount > 0]
        affinity = pod.node_affinity
        self._is_plain = not (
            not profile.has_all_filters
            or self._selector
            or (affinity is not None and affinity.required is not None)
            or pod.node_name
            or pod.host_ports
            or volumes.selectors
            or volumes.delayed
            or volumes.zones
            or volumes.once
            or volumes.limits is not None
            or pod.disks
            or pod.features
            or not devices.is_empty
            or self._spread.constraints
            or not self._affinity.is_idle
        )

    @property
    def busy(self) -> Sequence[NodeInfo]:
        """Return the nodes that have pods with affinities."""
        return self._affinity.busy

    def copy(self) -> Filters:
        """Return a copy to which pods on one node can be added, and from which they can be removed."""
        fresh = Filters.__new__(Filters)
        fresh.__dict__.update(self.__dict__)
        fresh._spread, fresh._affinity = self._spread.copy(), self._affinity.copy()
        return fresh

    def add(self, other: PodInfo, node: NodeInfo) -> None:
        """Add a pod to a node, and to the facts about all nodes."""
        node.add(other)
        self._spread.count(other, node, 1)
        self._affinity.count(other, node, 1)
        self._rivals += self._uses(other)

    def remove(self, other: PodInfo, node: NodeInfo) -> None:
        """Remove a pod from a node, and from the facts about all nodes."""
        node.remove(other)
        self._spread.count(other, node, -1)
        self._affinity.count(other, node, -1)
        self._rivals -= self._uses(other)

    def _uses(self, other: PodInfo) -> int:
        if other.namespace != self.pod.namespace or not other.claims:
            return 0
        return len(self._volumes.once.intersection(other.claims))

    def passes(self, node: NodeInfo) -> bool:
        """Return True if a quick check shows that the node is feasible; otherwise `refusal` decides."""
        if not self._is_plain or node.taints or node.unschedulable:
            return False
        held, used = node.allocatable, node.used
        if len(node.pods) >= held.get(PODS, 0):
            return False
        return all(amount <= held.get(name, 0) - used.get(name, 0) for name, amount in self._amounts)

    def refusal(self, node: NodeInfo) -> Refusal | None:
        """Return the reason why a node is infeasible; None if the node is feasible."""
        return self._unwanted(node) or self._full(node) or self._beside_others(node) or self._last(node)

    def _unwanted(self, node: NodeInfo) -> Refusal | None:
        """Return a refusal if the pod does not allow the node, or does not tolerate the node's taints."""
        pod, on = self.pod, self._on
        if node.unschedulable and not self._tolerates_cordons and "NodeUnschedulable" in on:
            return Refusal("NodeUnschedulable", (UNSCHEDULABLE_NODE,))
        if pod.node_name and pod.node_name != node.name and "NodeName" in on:
            return Refusal("NodeName", (OTHER_NAME,))
        if node.taints and "TaintToleration" in on and first_untolerated(node.taints, pod.tolerations) is not None:
            return Refusal("TaintToleration", (UNTOLERATED,))
        if "NodeAffinity" not in on:
            return None
        added = self.profile.added_affinity
        if added is not None and not selects(node.name, node.labels, None, added):
            return Refusal("NodeAffinity", (ENFORCED,))
        if not selects(node.name, node.labels, self._selector, pod.node_affinity):
            return Refusal("NodeAffinity", (NOT_SELECTED,))
        return None

    def _full(self, node: NodeInfo) -> Refusal | None:
        """Return a refusal if ports or resources are insufficient, or if a volume is not on the node."""
        ports = self.pod.host_ports if "NodePorts" in self._on else ()
        if ports and any(port.clashes(taken) for port in ports for taken in node.ports):
            return Refusal("NodePorts", (PORTS_TAKEN,), helps=True)
        if "NodeResourcesFit" in self._on:
            reasons, hopeless = shortages(self._requests, node.allocatable, node.used, len(node.pods))
            if reasons:
                return Refusal("NodeResourcesFit", tuple(reasons), helps=not hopeless)
        return self._restricted(node) or self._without_volumes(node)

    def _restricted(self, node: NodeInfo) -> Refusal | None:
        """Return a refusal if other pods use the pod's volumes, or if the node has too many volumes."""
        disks, limits = self.pod.disks, self._volumes.limits
        if "VolumeRestrictions" in self._on:
            if disks and any(one.clashes(disk) for each in node.pods.values() for one in each.disks for disk in disks):
                return Refusal("VolumeRestrictions", (NO_DISK,), helps=True)
            if self._rivals > 0:
                return Refusal("VolumeRestrictions", (IN_USE,), helps=True)
        if limits is not None and volume_limits.PLUGIN in self._on and limits.are_exceeded(node):
            return Refusal(volume_limits.PLUGIN, (volume_limits.EXCEEDED,), helps=True)
        return None

    def _without_volumes(self, node: NodeInfo) -> Refusal | None:
        lacks = self._lacks_volumes(node) if "VolumeBinding" in self._on else ()
        if lacks:
            return Refusal("VolumeBinding", lacks)
        zones = self._volumes.zones if "VolumeZone" in self._on else ()
        return None if not zones or is_in_zones(zones, node.labels) else Refusal("VolumeZone", (NO_ZONE,))

    def _lacks_volumes(self, node: NodeInfo) -> tuple[str, ...]:
        volumes = self._volumes
        near = all(each.matches(node.name, node.labels) for each in volumes.selectors)
        found = not volumes.delayed or allotted(volumes.delayed, node.name, node.labels) is not None
        return (*(() if near else (VOLUME_ELSEWHERE,)), *(() if found else (NO_VOLUME,)))

    def _beside_others(self, node: NodeInfo) -> Refusal | None:
        if self._spread.constraints and "PodTopologySpread" in self._on:
            reason = self._spread.refusal(node)
            if reason:
                return Refusal("PodTopologySpread", (reason,), helps=reason != MISSING_LABEL)
        if not self._affinity.is_idle and "InterPodAffinity" in self._on:
            reason = self._affinity.refusal(node)
            if reason:
                return Refusal("InterPodAffinity", (reason,), helps=reason != NO_AFFINITY)
        return None

    def _unsupported(self, node: NodeInfo) -> Refusal | None:
        """Return a refusal if the node lacks devices for the pod, or features that the pod requires."""
        reason = self.devices.refusal(node.name, node.labels) if PLUGIN in self._on else ""
        if reason:
            return Refusal(PLUGIN, (reason,))
        if declared_features.PLUGIN in self._on and not self.pod.features <= node.features:
            return Refusal(declared_features.PLUGIN, (declared_features.UNSATISFIED,))
        return None

    def _last(self, node: NodeInfo) -> Refusal | None:
        """Return the refusal of one of the last built-in plugins, or of an app's plugin.

        A pod on the node may be the cause of an app's refusal, so preemption may help.
        """
        found = self._unsupported(node)
        for each in self.profile.app_filters if found is None else ():
            if reason := each.refusal(self.pod, node):
                return Refusal(each.name, (reason,), helps=True)
        return found


def _checked(requests: Amounts, profile: Profile) -> Amounts:
    """Return the requests without the extended resources that a profile ignores."""
    if not profile.ignored_resources and not profile.ignored_groups:
        return requests
    return {
        name: amount
        for name, amount in requests.items()
        if name not in profile.ignored_resources and name.partition("/")[0] not in profile.ignored_groups
    }


def named_nodes(pod: PodInfo) -> set[str] | None:
    """Return the names of the nodes to which a pod's required affinity limits the pod.

    The function returns None if the affinity does not name nodes.

    The affinity names nodes if every term has fields with node names, as for the pods of DaemonSets.
    """
    affinity = pod.node_affinity
    if affinity is None or affinity.required is None:
        return None
    names: set[str] = set()
    for term in affinity.required.node_selector_terms or ():
        fields = [each for each in term.match_fields or () if each.key == "metadata.name" and each.operator == "In"]
        if not fields:
            return None
        names |= set.intersection(*(set(each.values or ()) for each in fields))
    return names


def with_nominated(filters: Filters, node: NodeInfo, nominated: Mapping[Key, PodInfo] | None) -> Refusal | None:
    """Return the reason why a node is infeasible, also considering the pods that are nominated for the node.

    Only nominated pods with the same or a higher priority count. The node must be feasible both with and without the
    nominated pods, because they may be bound to other nodes.
    """
    others = [
        each
        for each in (nominated or {}).values()
        if each.priority >= filters.pod.priority and each.uid != filters.pod.uid and each.key not in node.pods
    ]
    if others:
        apart, copy = filters.copy(), node.copy()
        for each in others:
            apart.add(each, copy)
        refusal = apart.refusal(copy)
        if refusal is not None:
            return refusal
    return filters.refusal(node)


def histogram(refusals: Iterable[Refusal], absent: int = 0, absent_reason: str = "") -> list[str]:
    """Return the number of nodes for each refusal reason, such as `3 Insufficient cpu`, sorted as strings."""
    counts: dict[str, int] = {}
    for refusal in refusals:
        for reason in refusal.reasons:
            counts[reason] = counts.get(reason, 0) + 1
    if absent and absent_reason:
        counts[absent_reason] = counts.get(absent_reason, 0) + absent
    return sorted(f"{count} {reason}" for reason, count in counts.items())
