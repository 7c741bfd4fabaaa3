"""Decides whether an event may make a pod schedulable; the plugins that refused the pod decide (`QueueingHintFn`).

Guarantees: a hint skips an event only if the object of the event cannot change the plugin's refusal. If a plugin (such
as an app's plugin) has no hint for a kind of event, the plugin decides again after every event that may concern it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Final, NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.controllers.scheduler.claim_allocations import ClaimFields
from ctrlmgr.scheduling.cluster_model import NodeInfo, PodInfo
from ctrlmgr.scheduling.node_selection import selects
from ctrlmgr.scheduling.resource_amounts import PODS, shortages
from ctrlmgr.scheduling.scheduling_view import AffinityTerm, SpreadConstraint
from ctrlmgr.scheduling.taints import UNSCHEDULABLE, Taint, first_untolerated, is_tolerated


class ClusterEvent(Enum):
    """A kind of event after which a pod that fitted on no node may fit on a node.

    The value is the label of the event in metrics.
    """

    NODE_ADDED = "NodeAdd"
    NODE_CHANGED = "NodeUpdate"
    NODE_GONE = "NodeDelete"
    POD_PLACED = "AssignedPodAdd"
    POD_CHANGED = "AssignedPodUpdate"
    POD_GONE = "AssignedPodDelete"
    VOLUME = "PersistentVolumeUpdate"
    VOLUME_CLAIM = "PersistentVolumeClaimUpdate"
    CLASS = "StorageClassUpdate"
    VOLUME_LIMIT = "CSINodeUpdate"
    DEVICE_CLAIM = "ResourceClaimUpdate"
    DEVICES = "ResourceSliceUpdate"


class Happening(NamedTuple):
    """An event, with the states of its object before and after the event."""

    event: ClusterEvent
    pod: PodInfo | None = None
    old_pod: PodInfo | None = None
    node: NodeInfo | None = None
    old_node: NodeInfo | None = None
    object: Object | None = None
    old_object: Object | None = None


Hint = Callable[[PodInfo, Happening], bool]
"""The type of a function that returns whether an event may make a pod schedulable."""


def _always(pod: PodInfo, happening: Happening) -> bool:
    return True


def _became(check: Callable[[PodInfo, NodeInfo], bool]) -> Hint:
    """Return a hint that checks whether the node passes the check now, but did not pass it before the event."""

    def hint(pod: PodInfo, happening: Happening) -> bool:
        node, old = happening.node, happening.old_node
        return node is None or (check(pod, node) and (old is None or not check(pod, old)))

    return hint


_CORDONED: Final = Taint(UNSCHEDULABLE, "", "NoSchedule")


def _is_uncordoned(pod: PodInfo, node: NodeInfo) -> bool:
    return not node.unschedulable or is_tolerated(_CORDONED, pod.tolerations)


def _is_named(pod: PodInfo, node: NodeInfo) -> bool:
    return not pod.node_name or pod.node_name == node.name


def _is_untainted(pod: PodInfo, node: NodeInfo) -> bool:
    return first_untolerated(node.taints, pod.tolerations) is None


def _is_selected(pod: PodInfo, node: NodeInfo) -> bool:
    return selects(node.name, node.labels, pod.view.spec.node_selector, pod.node_affinity)


def _has_features(pod: PodInfo, node: NodeInfo) -> bool:
    return pod.features <= node.features


def _has_more(pod: PodInfo, happening: Happening) -> bool:
    """Return whether the pod would fit on the empty node, and the event added resources that the pod needs."""
    node, old = happening.node, happening.old_node
    if node is None:
        return True
    if shortages(pod.requests, node.allocatable, {}, 0)[0]:
        return False
    names = (PODS, *(name for name, amount in pod.requests.items() if amount > 0))
    return old is None or any(node.allocatable.get(each, 0) > old.allocatable.get(each, 0) for each in names)


def _frees_resources(pod: PodInfo, happening: Happening) -> bool:
    """Return whether another pod ended, or now requests less of a resource that the pod needs."""
    other, old = happening.pod, happening.old_pod
    if happening.event is ClusterEvent.POD_GONE or other is None or old is None:
        return True
    needed = (name for name, amount in pod.requests.items() if amount > 0)
    return any(old.requests.get(each, 0) > other.requests.get(each, 0) for each in needed)


def _frees_ports(pod: PodInfo, happening: Happening) -> bool:
    gone = happening.old_pod
    return gone is None or any(port.clashes(taken) for port in pod.host_ports for taken in gone.host_ports)


def _frees_volumes(pod: PodInfo, happening: Happening) -> bool:
    """Return whether the ended pod used a disk or a claim that the waiting pod needs."""
    gone = happening.old_pod
    if gone is None:
        return True
    if gone.namespace == pod.namespace and not set(gone.claims).isdisjoint(pod.claims):
        return True
    return any(one.clashes(disk) for one in gone.disks for disk in pod.disks)


def _frees_attachments(pod: PodInfo, happening: Happening) -> bool:
    return happening.old_pod is None or bool(happening.old_pod.view.spec.volumes)


def _is_own_claim(pod: PodInfo, happening: Happening) -> bool:
    claim = happening.object
    return claim is None or (claim.namespace == pod.namespace and claim.name in pod.claims)


def _changes_device_claim(pod: PodInfo, happening: Happening) -> bool:
    """Return whether a claim of the pod changed, or any claim was deallocated."""
    claim, old = happening.object, happening.old_object
    if claim is None:
        return True
    if old is not None and old.view(ClaimFields).status.allocation is not None:
        allocation = claim.view(ClaimFields).status.allocation
        if allocation is None or claim is old:
            return True
    own = {each.resource_claim_name for each in pod.view.spec.resource_claims or ()}
    own |= {each.resource_claim_name for each in pod.view.status.resource_claim_statuses or ()}
    if claim.namespace != pod.namespace or claim.name not in own:
        return False
    return old is None or claim.view(ClaimFields).status != old.view(ClaimFields).status


def _matches(constraint: SpreadConstraint, pod: PodInfo | None) -> bool:
    return pod is not None and constraint.label_selector is not None and constraint.label_selector.matches(pod.labels)


def _changes_spread(pod: PodInfo, happening: Happening) -> bool:
    """Return whether the event changes the pods that a constraint of the pod counts."""
    states = [each for each in (happening.pod, happening.old_pod) if each is not None]
    if any(each.namespace != pod.namespace for each in states):
        return False
    if happening.pod is not None and happening.old_pod is not None:
        return any(_matches(each, happening.pod) != _matches(each, happening.old_pod) for each in pod.spread)
    return not pod.spread or any(_matches(each, state) for each in pod.spread for state in states)


def _changes_domains(pod: PodInfo, happening: Happening) -> bool:
    """Return whether the event changes the domains of the pod's spread constraints."""
    keys = {each.topology_key for each in pod.spread}
    node, old = happening.node, happening.old_node
    now, before = _labels(node, keys), _labels(old, keys)
    if not keys or node is None or old is None:
        return not keys or len(now or before) == len(keys)
    return now != before or (len(now) == len(keys) and node.taints != old.taints)


def _changes_topology(pod: PodInfo, happening: Happening) -> bool:
    """Return whether the event changes the labels of a node that the pod's affinity to other pods compares."""
    keys = {each.topology_key for each in (*(pod.affinity.required or ()), *pod.required_anti_affinity)}
    now, before = _labels(happening.node, keys), _labels(happening.old_node, keys)
    if happening.old_node is None or not keys:
        return not keys or bool(now)
    return now != before


def _changes_neighbours(pod: PodInfo, happening: Happening) -> bool:
    """Return whether a term of the pod selects the event's pod, or a term of the event's pod selects the pod.

    The hint ignores the namespaces of the affinity terms.
    """
    own = (*(pod.affinity.required or ()), *pod.required_anti_affinity)
    states = [each for each in (happening.pod, happening.old_pod) if each is not None]
    return any(_selects(own, each) or _selects(each.required_anti_affinity, pod) for each in states)


def _selects(terms: Sequence[AffinityTerm], pod: PodInfo) -> bool:
    return any(each.label_selector is not None and each.label_selector.matches(pod.labels) for each in terms)


def _labels(node: NodeInfo | None, keys: set[str]) -> dict[str, str]:
    return {key: node.labels[key] for key in keys if key in node.labels} if node is not None else {}


_Hints = Mapping[ClusterEvent, Hint]


def _nodes(hint: Hint, more: _Hints | None = None) -> _Hints:
    return {ClusterEvent.NODE_ADDED: hint, ClusterEvent.NODE_CHANGED: hint, **(more or {})}


_VOLUMES: Final[_Hints] = {ClusterEvent.VOLUME: _always, ClusterEvent.VOLUME_CLAIM: _is_own_claim}
_POD_EVENTS: Final = (ClusterEvent.POD_PLACED, ClusterEvent.POD_CHANGED, ClusterEvent.POD_GONE)
HINTS: Final[Mapping[str, _Hints]] = {
    "NodeUnschedulable": _nodes(_became(_is_uncordoned)),
    "NodeName": _nodes(_became(_is_named)),
    "TaintToleration": _nodes(_became(_is_untainted)),
    "NodeAffinity": _nodes(_became(_is_selected)),
    "NodePorts": _nodes(_always, {ClusterEvent.POD_GONE: _frees_ports}),
    "NodeResourcesFit": _nodes(
        _has_more, {ClusterEvent.POD_GONE: _frees_resources, ClusterEvent.POD_CHANGED: _frees_resources}
    ),
    "VolumeRestrictions": _nodes(_always, {ClusterEvent.POD_GONE: _frees_volumes, **_VOLUMES}),
    "NodeVolumeLimits": {
        ClusterEvent.VOLUME_LIMIT: _always,
        ClusterEvent.POD_GONE: _frees_attachments,
        **_VOLUMES,
    },
    "VolumeBinding": _nodes(_always, {**_VOLUMES, ClusterEvent.CLASS: _always, ClusterEvent.VOLUME_LIMIT: _always}),
    "VolumeZone": _nodes(_always, {**_VOLUMES, ClusterEvent.CLASS: _always}),
    "PodTopologySpread": _nodes(
        _changes_domains, {ClusterEvent.NODE_GONE: _changes_domains, **dict.fromkeys(_POD_EVENTS, _changes_spread)}
    ),
    "InterPodAffinity": _nodes(_changes_topology, dict.fromkeys(_POD_EVENTS, _changes_neighbours)),
    "DynamicResources": _nodes(
        _always, {ClusterEvent.DEVICES: _always, ClusterEvent.DEVICE_CLAIM: _changes_device_claim}
    ),
    "NodeDeclaredFeatures": _nodes(_became(_has_features)),
}
"""For each plugin, the events after which it may accept a pod that it refused, and the hint that decides."""


def hint_of(plugin: str, event: ClusterEvent) -> Hint | None:
    """Return the hint of a plugin for a kind of event; None if no such event changes the plugin's refusal."""
    hints = HINTS.get(plugin)
    return _always if hints is None else hints.get(event)
