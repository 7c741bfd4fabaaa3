"""The scheduler's picture of the cluster, kept up by what the caches tell.

Guarantees: changes are taken down on the informers' thread and taken in by the one worker (`catch_up`), in the order of
the log, so a decision is made on a picture that does not move. A pod that has just been given a node counts as being
there at once, before the caches show it, until they do or the binding is taken back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final, NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import NAMESPACES, NODES, PODS, Key
from ctrlmgr.controllers.scheduler.devices import RESOURCE_CLAIMS
from ctrlmgr.informer import Change
from ctrlmgr.scheduling.model import Cluster, NodeInfo, PodInfo
from ctrlmgr.scheduling.queue import Happening
from ctrlmgr.scheduling.views import decode_node


class Place(NamedTuple):
    """Where a pod counts, and as what."""

    node: str
    pod: PodInfo
    assumed: bool = False


class Seen(NamedTuple):
    """What a change comes to: something that has happened, and the pod without a node that it is about, if it is."""

    happening: Happening | None = None
    waiting: PodInfo | None = None
    gone: Key | None = None
    """A pod that waits no more."""
    revision: int = 0


_NOTHING: Final = Seen()


class World:
    """The picture; all but `note` belongs to the worker."""

    def __init__(self, scheduler_name: str) -> None:
        """See to the pods of this scheduler."""
        self._name = scheduler_name
        self._changes: deque[Change] = deque()
        self._places: dict[Key, Place] = {}
        # Pods on nodes that are not there, or not yet.
        self._elsewhere: dict[str, dict[Key, PodInfo]] = {}
        self.cluster = Cluster()

    def restart(self) -> None:
        """Forget everything; all there is is to be noted anew."""
        self._changes.clear()
        self._places.clear()
        self._elsewhere.clear()
        self.cluster = Cluster()

    def note(self, change: Change) -> None:
        """Take down a change; on the informers' thread."""
        self._changes.append(change)

    def catch_up(self) -> Iterator[Seen]:
        """Take in what was taken down, and yield what it comes to."""
        pending = []
        while self._changes:
            pending.append(self._changes.popleft())
        pending.sort(key=_revision)  # after a restart what was there comes beside what is new
        for change in pending:
            resource = change.object.resource
            if resource == PODS:
                seen = self._pod(change)
            elif resource == NODES:
                seen = self._node(change)
            elif resource == NAMESPACES:
                seen = self._namespace(change)
            else:
                seen = Seen(Happening.DEVICES if resource.group == RESOURCE_CLAIMS.group else Happening.VOLUME)
            if seen is not _NOTHING:
                yield seen._replace(revision=change.revision)

    def assume(self, pod: PodInfo, node: str) -> None:
        """Count a pod as being on a node, as its binding is under way."""
        self._put(Place(node, pod, assumed=True))
        self.cluster.drop_nomination(pod.key)

    def withdraw(self, key: Key) -> None:
        """Count a pod out again, as its binding has failed."""
        place = self._places.get(key)
        if place is not None and place.assumed:
            self._take(key)

    def _pod(self, change: Change) -> Seen:
        key = change.object.key
        pod = PodInfo.of(change.new) if change.new is not None else None
        if pod is None or pod.has_ended:
            self.cluster.drop_nomination(key)
            was_there = self._take(key) is not None
            return Seen(Happening.POD_GONE if was_there else None, gone=key)
        if pod.node_name:
            return self._placed(pod)
        place = self._places.get(key)
        if place is not None and place.assumed and place.pod.uid == pod.uid:
            return _NOTHING  # what was before its binding
        if place is not None:
            self._take(key)
        return self._unplaced(pod)

    def _unplaced(self, pod: PodInfo) -> Seen:
        if pod.nominated and not pod.is_terminating:
            self.cluster.nominate(pod, pod.nominated)
        else:
            self.cluster.drop_nomination(pod.key)
        if pod.view.spec.scheduler_name != self._name or pod.is_terminating:
            return Seen(gone=pod.key)
        return Seen(waiting=pod)

    def _placed(self, pod: PodInfo) -> Seen:
        before = self._take(pod.key)
        self._put(Place(pod.node_name, pod))
        self.cluster.drop_nomination(pod.key)
        if before is None or before.pod.labels != pod.labels:
            return Seen(Happening.POD_PLACED, gone=pod.key)
        if before.pod.requests != pod.requests:
            return Seen(Happening.POD_GONE, gone=pod.key)  # it may need less
        return Seen(gone=pod.key)

    def _put(self, place: Place) -> None:
        self._take(place.pod.key)
        self._places[place.pod.key] = place
        node = self.cluster.nodes.get(place.node)
        if node is not None:
            node.add(place.pod)
        else:
            self._elsewhere.setdefault(place.node, {})[place.pod.key] = place.pod

    def _take(self, key: Key) -> Place | None:
        place = self._places.pop(key, None)
        if place is None:
            return None
        node = self.cluster.nodes.get(place.node)
        if node is not None and key in node.pods:
            node.remove(place.pod)
        else:
            self._elsewhere.get(place.node, {}).pop(key, None)
        return place

    def _node(self, change: Change) -> Seen:
        name = change.object.name
        before = self.cluster.nodes.get(name)
        if change.new is None:
            if before is not None:
                self.cluster.drop(name)
                self._elsewhere[name] = dict(before.pods)
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
        return Seen(Happening.NODE_ADDED if before is None else Happening.NODE_CHANGED)

    def _namespace(self, change: Change) -> Seen:
        if change.new is None:
            self.cluster.namespaces.pop(change.object.name, None)
        else:
            self.cluster.namespaces[change.new.name] = dict(change.new.labels)
        return _NOTHING


def _revision(change: Change) -> int:
    return change.revision


def _same(old: Object, new: Object) -> bool:
    """Whether nothing changed that matters here: a heartbeat does not."""
    return decode_node(old.body) == decode_node(new.body)
