"""The scheduling queue contains the waiting pods, and decides which pod is next and when a pod is retried.

Guarantees, those of kube-scheduler's queue:

- Pods are sorted by priority, then by the time when they were added.
- A pod that fits on no node waits for an event that concerns the plugin that refused it, but for at most five minutes.
  A pod is retried only after its backoff, which is one second and doubles with each failure up to ten seconds.
- Events that occur during the decision about a pod count for that pod, too, so no change is missed between two
  attempts.
- A pod with scheduling gates, or with missing resource claims, is not in the queue.

In this module, seconds are read from a monotonic clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from heapq import heappop, heappush
from typing import Final

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key
from ctrlmgr.scheduling.cluster_model import PodInfo

PATIENCE: Final = 300.0
"""The number of seconds after which a pod is tried again even if there was no event."""


class ClusterEvent(Enum):
    """An event after which a pod may fit on a node although it fitted on no node before."""

    NODE_ADDED = "a node was added"
    NODE_CHANGED = "a node changed"
    POD_PLACED = "a pod was bound to a node, or its labels changed"
    POD_GONE = "a pod on a node was deleted or finished"
    VOLUME = "a volume or a volume claim changed"
    VOLUME_LIMIT = "a CSINode changed, or a VolumeAttachment was deleted"
    DEVICES = "a resource claim or a device class changed"


_NODES: Final = frozenset([ClusterEvent.NODE_ADDED, ClusterEvent.NODE_CHANGED])
_BESIDE: Final = _NODES | {ClusterEvent.POD_PLACED, ClusterEvent.POD_GONE}
HINTS: Final[Mapping[str, frozenset[ClusterEvent]]] = {
    "NodeUnschedulable": _NODES,
    "NodeName": _NODES,
    "TaintToleration": _NODES,
    "NodeAffinity": _NODES,
    "NodePorts": _NODES | {ClusterEvent.POD_GONE},
    "NodeResourcesFit": _NODES | {ClusterEvent.POD_GONE},
    "VolumeRestrictions": _NODES | {ClusterEvent.POD_GONE, ClusterEvent.VOLUME},
    "NodeVolumeLimits": frozenset([ClusterEvent.VOLUME_LIMIT, ClusterEvent.POD_GONE, ClusterEvent.VOLUME]),
    "VolumeBinding": _NODES | {ClusterEvent.VOLUME},
    "VolumeZone": _NODES | {ClusterEvent.VOLUME},
    "PodTopologySpread": _BESIDE,
    "InterPodAffinity": _BESIDE,
    "DynamicResources": _NODES | {ClusterEvent.DEVICES},
    "NodeDeclaredFeatures": _NODES,
}
"""The events after which each plugin may accept a pod that it refused. If no plugin refused a pod, all events concern
the pod.
"""


@dataclass
class Entry:
    """The entry of a pod that waits in the queue."""

    pod: PodInfo
    since: float
    attempts: int = 0
    refused_by: frozenset[str] = frozenset()
    not_before: float = 0.0
    """The time when the pod's backoff is over."""
    patience_ends: float = 0.0
    """The time when the pod is tried again even if there was no event."""
    is_active: bool = True
    """Whether the pod should be tried as soon as its backoff is over."""

    @property
    def order(self) -> tuple[int, float, Key]:
        """Return the sort key of the pod in the queue."""
        return -self.pod.priority, self.since, self.pod.key


@dataclass
class Waiting:
    """The queue of waiting pods; only one thread at a time may use the queue."""

    first_backoff: float = 1.0
    longest_backoff: float = 10.0
    entries: dict[Key, Entry] = field(default_factory=dict)
    gated: dict[Key, PodInfo] = field(default_factory=dict)
    _ready: list[tuple[int, float, Key]] = field(default_factory=list)
    # Entries that wait for an event. Only these are checked when an event occurs, however many other pods wait.
    _parked: dict[Key, Entry] = field(default_factory=dict)
    # The events since the pod that is being decided was taken from the queue.
    _meanwhile: set[ClusterEvent] = field(default_factory=set)

    def backoff(self, attempts: int) -> float:
        """Return the backoff of a pod, in seconds, after this number of attempts."""
        return float(min(self.first_backoff * 2 ** min(attempts - 1, 16), self.longest_backoff))

    def offer(self, pod: PodInfo, now: float, *, lacks: str = "") -> bool:
        """Add a pod to the queue or update it; return whether the pod should be tried now.

        If `lacks` is set, the pod lacks a claim and is not queued.
        """
        if pod.view.spec.scheduling_gates or lacks:
            self.forget(pod.key)
            self.gated[pod.key] = pod
            return False
        self.gated.pop(pod.key, None)
        entry = self.entries.get(pod.key)
        if entry is None or entry.pod.uid != pod.uid:
            self._put(Entry(pod, now))
            return True
        before, entry.pod = entry.pod, pod
        if before.view.spec == pod.view.spec and before.labels == pod.labels:
            return False
        self._activate(entry)
        return True

    def forget(self, key: Key) -> None:
        """Remove a pod that was bound, has ended, or was deleted."""
        self.entries.pop(key, None)
        self._parked.pop(key, None)
        self.gated.pop(key, None)

    def must_wait(self, key: Key, now: float) -> bool:
        """Return whether a waiting pod with a higher priority than the given pod should be tried now."""
        first = self.first(now)
        return first is not None and self.entries[first].pod.priority > self.entries[key].pod.priority

    def first(self, now: float) -> Key | None:
        """Return the next pod; None if no pod should be tried now; pods whose backoff is not over are skipped."""
        while self._ready:
            order = self._ready[0]
            entry = self.entries.get(order[2])
            if entry is not None and entry.is_active and entry.order == order and entry.not_before <= now:
                return order[2]
            heappop(self._ready)
        return None

    def seconds_until(self, key: Key, now: float) -> float | None:
        """Return the seconds until a pod should be tried.

        0 if it should be tried now, None if the pod is not in the queue.
        """
        entry = self.entries.get(key)
        if entry is None:
            return None
        if not entry.is_active:
            if entry.patience_ends > now:
                return entry.patience_ends - now
            self._activate(entry)
        return max(entry.not_before - now, 0.0)

    def take(self, key: Key) -> Entry:
        """Return the entry of a pod for which a decision is made now."""
        entry = self.entries[key]
        entry.is_active = False
        self._parked[key] = entry
        entry.attempts += 1
        self._meanwhile.clear()
        return entry

    def failed(self, entry: Entry, refused_by: frozenset[str], now: float) -> float:
        """Queue a pod that fits on no node; return the maximum number of seconds until its next attempt."""
        entry.refused_by = refused_by
        entry.not_before = now + self.backoff(entry.attempts)
        entry.patience_ends = now + PATIENCE
        if any(concerns(each, refused_by) for each in self._meanwhile):
            self._activate(entry)
            return entry.not_before - now
        return PATIENCE

    def await_volumes(self, entry: Entry, seconds: float, now: float) -> float:
        """Queue a pod until `volume_changed` is called, but for at most `seconds`; return `seconds`."""
        self.entries[entry.pod.key] = entry
        self._parked.pop(entry.pod.key, None)
        entry.is_active = False
        entry.attempts -= 1
        entry.not_before = now
        entry.patience_ends = now + seconds
        return seconds

    def volume_changed(self, key: Key, now: float) -> None:
        """Try a pod again now, because one of the volumes for which it waits may be bound."""
        entry = self.entries.get(key)
        if entry is not None and not entry.is_active:
            entry.not_before = now
            self._activate(entry)

    def gated_by(self, claim: Object) -> list[PodInfo]:
        """Return the pods that are not queued and that may lack this resource claim."""
        owner = next((each for each in claim.metadata.owner_references or () if each.controller), None)
        if owner is not None and owner.kind == "Pod":
            pod = self.gated.get(Key(claim.namespace, owner.name))
            return [] if pod is None else [pod]
        pods = (each for each in self.gated.values() if each.namespace == claim.namespace)
        return [each for each in pods if each.view.spec.resource_claims]

    def retry(self, entry: Entry, now: float) -> float:
        """Queue a pod again after an error; return the seconds until its next attempt."""
        entry.not_before = now + self.backoff(entry.attempts)
        self._put(entry)
        return entry.not_before - now

    def happened(self, happening: ClusterEvent, now: float) -> Iterator[tuple[Key, float]]:
        """Yield the pods that an event concerns, with the seconds until each may be tried."""
        self._meanwhile.add(happening)
        for key, entry in [*self._parked.items()]:
            if concerns(happening, entry.refused_by):
                self._activate(entry)
                yield key, max(entry.not_before - now, 0.0)

    def _put(self, entry: Entry) -> None:
        self.entries[entry.pod.key] = entry
        self._activate(entry)

    def _activate(self, entry: Entry) -> None:
        entry.is_active = True
        self._parked.pop(entry.pod.key, None)
        heappush(self._ready, entry.order)


def concerns(happening: ClusterEvent, refused_by: frozenset[str]) -> bool:
    """Return whether an event concerns a pod that the given plugins refused.

    If no plugins are given, every event concerns the pod.
    """
    return not refused_by or any(happening in HINTS.get(plugin, frozenset(ClusterEvent)) for plugin in refused_by)
