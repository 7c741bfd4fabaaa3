"""The scheduler's model of the cluster, which is updated when the caches change.

Guarantees: the informers' thread only queues changes. The scheduler processes queued changes in log order before a
decision (`catch_up`); therefore the model does not change during a decision. A pod counts for its node as soon as the
scheduler has chosen the node, even before the caches contain the binding. If the binding fails, the pod no longer
counts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterator, Mapping
from typing import Final, NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import NAMESPACES, NODES, PODS, Key, Resource
from ctrlmgr.controllers.scheduler.attached_volumes import VOLUME_ATTACHMENTS
from ctrlmgr.controllers.scheduler.queueing_hints import ClusterEvent, Happening
from ctrlmgr.controllers.scheduler.scheduled_claims import RESOURCE_CLAIMS
from ctrlmgr.informer import Change
from ctrlmgr.scheduling.cluster_model import ENDED, Cluster, NodeInfo, PodInfo
from ctrlmgr.scheduling.scheduling_view import PodView, decode_node

POD_GROUPS: Final = Resource("scheduling.k8s.io", "podgroups")


class PodPlacement(NamedTuple):
    """The node of a pod, and whether the pod's binding is only assumed."""

    node: str
    pod: PodInfo
    assumed: bool = False


class ChangeEffect(NamedTuple):
    """The effect of a change: the kind of event, and the unscheduled pod that the change affects, if any."""

    happening: Happening | None = None
    waiting: PodInfo | None = None
    gone: Key | None = None
    """The key of a pod that no longer waits to be scheduled."""
    change: Change | None = None
    """The change of an object that is neither a pod nor a node nor a namespace."""
    group: Key | None = None
    """The PodGroup that was created, or to which a pod was added."""
    revision: int = 0


_NOTHING: Final = ChangeEffect()


class SchedulerCache:
    """The model of the cluster; all methods except `note` must be called on the scheduling thread."""

    def __init__(self, scheduler_names: Container[str]) -> None:
        """Create a model for the pods that name one of these schedulers."""
        self._names = scheduler_names
        self._changes: deque[Change] = deque()
        self._places: dict[Key, PodPlacement] = {}
        # Pods on nodes that the model does not contain (yet), by the node's name.
        self._elsewhere: dict[str, dict[Key, PodInfo]] = {}
        self.cluster = Cluster()
        self.members: dict[Key, set[Key]] = {}
        """The pods of each PodGroup that have not ended."""

    def restart(self) -> None:
        """Reset the model; after a reset, the caller must pass all existing objects to `note` again."""
        self._changes.clear()
        self._places.clear()
        self._elsewhere.clear()
        self.members.clear()
        self.cluster = Cluster()

    def note(self, change: Change) -> None:
        """Queue a change; only the informers' thread may call this method."""
        self._changes.append(change)

    def catch_up(self) -> Iterator[ChangeEffect]:
        """Process queued changes, and yield the effects of these changes."""
        pending = []
        while self._changes:
            pending.append(self._changes.popleft())
        pending.sort(key=_revision)  # After a restart, the queue contains existing objects and new changes.
        for change in pending:
            resource = change.object.resource
            joined = self._membership(change) if resource == PODS else None
            if resource == PODS:
                seen = self._pod(change)
            elif resource == NODES:
                seen = self._node(change)
            elif resource == NAMESPACES:
                seen = self._namespace(change)
            elif resource == POD_GROUPS:
                joined = change.object.key
                seen = _NOTHING
            elif resource.group == RESOURCE_CLAIMS.group:
                seen = _devices(change)
            else:
                seen = _storage(change)
            if seen is not _NOTHING:
                yield seen._replace(revision=change.revision)
            if joined is not None:
                yield ChangeEffect(group=joined, revision=change.revision)

    def sizes(self) -> Mapping[tuple[str, ...], int]:
        """Return the number of nodes, pods on nodes, and pods that are being bound."""
        assumed = sum(each.assumed for each in [*self._places.values()])
        return {("nodes",): len(self.cluster.nodes), ("pods",): len(self._places), ("assumed_pods",): assumed}

    def nodes_of(self, group: Key) -> Mapping[Key, str]:
        """Return the nodes of the pods of a PodGroup that have a node or are being bound to a node."""
        return {each: self._places[each].node for each in self.members.get(group, ()) if each in self._places}

    def _membership(self, change: Change) -> Key | None:
        """Update the members of the pod's PodGroup; return the group if the pod is a new member."""
        pod = change.object.view(PodView)
        if pod.spec.scheduling_group is None:
            return None
        key = change.object.key
        group = Key(key.namespace, pod.spec.scheduling_group.pod_group_name)
        members = self.members.setdefault(group, set())
        if change.new is None or pod.status.phase in ENDED:
            members.discard(key)
            if not members:
                del self.members[group]
            return None
        is_new = key not in members
        members.add(key)
        return group if is_new else None

    def assume(self, pod: PodInfo, node: str) -> None:
        """Count a pod for the node to which it is being bound."""
        self._put(PodPlacement(node, pod, assumed=True))
        self.cluster.drop_nomination(pod.key)

    def withdraw(self, key: Key) -> None:
        """Remove a pod from its node in the model after a failed binding."""
        place = self._places.get(key)
        if place is not None and place.assumed:
            self._take(key)

    def _pod(self, change: Change) -> ChangeEffect:
        key = change.object.key
        pod = PodInfo.of(change.new) if change.new is not None else None
        if pod is None or pod.has_ended:
            self.cluster.drop_nomination(key)
            place = self._take(key)
            happening = None if place is None else Happening(ClusterEvent.POD_GONE, old_pod=place.pod)
            return ChangeEffect(happening, gone=key)
        if pod.node_name:
            return self._placed(pod)
        place = self._places.get(key)
        if place is not None and place.assumed and place.pod.uid == pod.uid:
            return _NOTHING  # This is the state of the pod before its binding.
        if place is not None:
            self._take(key)
        return self._unplaced(pod)

    def _unplaced(self, pod: PodInfo) -> ChangeEffect:
        if pod.nominated and not pod.is_terminating:
            self.cluster.nominate(pod, pod.nominated)
        else:
            self.cluster.drop_nomination(pod.key)
        if pod.view.spec.scheduler_name not in self._names or pod.is_terminating:
            return ChangeEffect(gone=pod.key)
        return ChangeEffect(waiting=pod)

    def _placed(self, pod: PodInfo) -> ChangeEffect:
        before = self._take(pod.key)
        self._put(PodPlacement(pod.node_name, pod))
        self.cluster.drop_nomination(pod.key)
        if before is None or before.assumed:
            return ChangeEffect(Happening(ClusterEvent.POD_PLACED, pod), gone=pod.key)
        # After a resize, the pod may need fewer resources.
        if before.pod.labels != pod.labels or before.pod.requests != pod.requests:
            return ChangeEffect(Happening(ClusterEvent.POD_CHANGED, pod, before.pod), gone=pod.key)
        return ChangeEffect(gone=pod.key)

    def _put(self, place: PodPlacement) -> None:
        self._take(place.pod.key)
        self._places[place.pod.key] = place
        node = self.cluster.nodes.get(place.node)
        if node is not None:
            node.add(place.pod)
        else:
            self._elsewhere.setdefault(place.node, {})[place.pod.key] = place.pod

    def _take(self, key: Key) -> PodPlacement | None:
        place = self._places.pop(key, None)
        if place is None:
            return None
        node = self.cluster.nodes.get(place.node)
        if node is not None and key in node.pods:
            node.remove(place.pod)
        else:
            self._elsewhere.get(place.node, {}).pop(key, None)
        return place

    def _node(self, change: Change) -> ChangeEffect:
        name = change.object.name
        before = self.cluster.nodes.get(name)
        if change.new is None:
            if before is not None:
                self.cluster.drop(name)
                self._elsewhere[name] = dict(before.pods)
                return ChangeEffect(Happening(ClusterEvent.NODE_GONE, old_node=before))
            return _NOTHING
        if before is not None and change.old is not None and _same(change.old, change.new):
            return _NOTHING
        node = NodeInfo.of(change.new)
        if before is not None:
            node.take_over(before)
        else:
            for pod in self._elsewhere.pop(name, {}).values():
                node.add(pod)
        self.cluster.put(node)
        event = ClusterEvent.NODE_ADDED if before is None else ClusterEvent.NODE_CHANGED
        return ChangeEffect(Happening(event, node=node, old_node=before))

    def _namespace(self, change: Change) -> ChangeEffect:
        if change.new is None:
            self.cluster.namespaces.pop(change.object.name, None)
        else:
            self.cluster.namespaces[change.new.name] = dict(change.new.labels)
        return _NOTHING


_STORAGE: Final = {
    Resource("", "persistentvolumes"): ClusterEvent.VOLUME,
    Resource("", "persistentvolumeclaims"): ClusterEvent.VOLUME_CLAIM,
    Resource("storage.k8s.io", "storageclasses"): ClusterEvent.CLASS,
}


def _storage(change: Change) -> ChangeEffect:
    """Return the effect of a change of a volume, a claim, a class, a CSINode or a VolumeAttachment."""
    resource = change.object.resource
    if resource == VOLUME_ATTACHMENTS and change.new is not None:
        return _NOTHING
    return _effect(_STORAGE.get(resource, ClusterEvent.VOLUME_LIMIT), change)


def _devices(change: Change) -> ChangeEffect:
    """Return the effect of a change of a resource claim, or of an object that describes devices."""
    is_claim = change.object.resource == RESOURCE_CLAIMS
    return _effect(ClusterEvent.DEVICE_CLAIM if is_claim else ClusterEvent.DEVICES, change)


def _effect(event: ClusterEvent, change: Change) -> ChangeEffect:
    return ChangeEffect(Happening(event, object=change.object, old_object=change.old), change=change)


def _revision(change: Change) -> int:
    return change.revision


def _same(old: Object, new: Object) -> bool:
    """Return whether no relevant field of a node changed, as in a heartbeat."""
    return decode_node(old.body) == decode_node(new.body)
