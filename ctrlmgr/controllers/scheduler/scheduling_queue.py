"""The scheduling queue: the waiting pods, which is next, and which events let a failed one try again.

Guarantees, those of kube-scheduler's queue:

- Pods are sorted by priority, then by when they were added.
- A pod that fits nowhere waits for an event that concerns the plugin that refused it, at most for five minutes. Then
  its backoff must be over: a second, doubled with each failure, at most ten.
- Events during a pod's decision count for it too: no change is missed between two attempts.
- A pod with scheduling gates, or with missing resource claims, is not in the queue.

Seconds are those of a monotonic clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from heapq import heappop, heappush
from typing import Final

from ctrlmgr.api.resource import Key
from ctrlmgr.scheduling.cluster_model import PodInfo

FIRST_BACKOFF: Final = 1.0
LONGEST_BACKOFF: Final = 10.0
PATIENCE: Final = 300.0
"""Seconds after which a pod is tried again without an event."""


class ClusterEvent(Enum):
    """An event that may let a pod fit that fitted nowhere."""

    NODE_ADDED = "a node was added"
    NODE_CHANGED = "a node changed"
    POD_PLACED = "a pod was bound to a node, or its labels changed"
    POD_GONE = "a pod on a node was deleted or finished"
    VOLUME = "a volume or a volume claim changed"
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
    "VolumeBinding": _NODES | {ClusterEvent.VOLUME},
    "VolumeZone": _NODES | {ClusterEvent.VOLUME},
    "PodTopologySpread": _BESIDE,
    "InterPodAffinity": _BESIDE,
    "DynamicResources": _NODES | {ClusterEvent.DEVICES},
}
"""The events that concern each plugin; all events concern a pod that no plugin refused."""


def backoff(attempts: int) -> float:
    """Return the backoff after so many attempts."""
    return float(min(FIRST_BACKOFF * 2 ** min(attempts - 1, 16), LONGEST_BACKOFF))


@dataclass
class Entry:
    """A waiting pod."""

    pod: PodInfo
    since: float
    attempts: int = 0
    refused_by: frozenset[str] = frozenset()
    not_before: float = 0.0
    """When its backoff is over."""
    patience_ends: float = 0.0
    """When it is tried again without an event."""
    is_active: bool = True
    """Whether it should be tried: now, or when its backoff is over."""

    @property
    def order(self) -> tuple[int, float, Key]:
        """Return the sort key."""
        return -self.pod.priority, self.since, self.pod.key


@dataclass
class Waiting:
    """The waiting pods; for one thread at a time."""

    entries: dict[Key, Entry] = field(default_factory=dict)
    gated: dict[Key, PodInfo] = field(default_factory=dict)
    _ready: list[tuple[int, float, Key]] = field(default_factory=list)
    # Inactive entries: only they are checked at an event, however many others wait.
    _parked: dict[Key, Entry] = field(default_factory=dict)
    # Events since the pod that is being decided was taken.
    _meanwhile: set[ClusterEvent] = field(default_factory=set)

    def offer(self, pod: PodInfo, now: float, *, lacks: str = "") -> bool:
        """Add or update a pod; return whether to try it now. One that `lacks` a claim is kept aside."""
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
        """Remove a pod: it was bound, has ended, or was deleted."""
        self.entries.pop(key, None)
        self._parked.pop(key, None)
        self.gated.pop(key, None)

    def must_wait(self, key: Key, now: float) -> bool:
        """Return whether a waiting pod with a higher priority than this one should be tried now."""
        first = self.first(now)
        return first is not None and self.entries[first].pod.priority > self.entries[key].pod.priority

    def first(self, now: float) -> Key | None:
        """Return the next pod, None if none should be tried now; one in backoff loses its position."""
        while self._ready:
            order = self._ready[0]
            entry = self.entries.get(order[2])
            if entry is not None and entry.is_active and entry.order == order and entry.not_before <= now:
                return order[2]
            heappop(self._ready)
        return None

    def seconds_until(self, key: Key, now: float) -> float | None:
        """Return the seconds until a pod should be tried, 0 for now; None if it does not wait."""
        entry = self.entries.get(key)
        if entry is None:
            return None
        if not entry.is_active:
            if entry.patience_ends > now:
                return entry.patience_ends - now
            self._activate(entry)
        return max(entry.not_before - now, 0.0)

    def take(self, key: Key) -> Entry:
        """Return a pod's entry for a decision now."""
        entry = self.entries[key]
        entry.is_active = False
        self._parked[key] = entry
        entry.attempts += 1
        self._meanwhile.clear()
        return entry

    def failed(self, entry: Entry, refused_by: frozenset[str], now: float) -> float:
        """Let a pod that fits nowhere wait; return the maximum seconds until its next attempt."""
        entry.refused_by = refused_by
        entry.not_before = now + backoff(entry.attempts)
        entry.patience_ends = now + PATIENCE
        if any(concerns(each, refused_by) for each in self._meanwhile):
            self._activate(entry)
            return entry.not_before - now
        return PATIENCE

    def retry(self, entry: Entry, now: float) -> float:
        """Let a pod be tried again after an error; return the seconds until then."""
        entry.not_before = now + backoff(entry.attempts)
        self._put(entry)
        return entry.not_before - now

    def happened(self, happening: ClusterEvent, now: float) -> Iterator[tuple[Key, float]]:
        """Yield the pods that an event concerns, and the seconds until each may be tried."""
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
    """Return whether an event concerns a pod that was refused by these plugins, or by none."""
    return not refused_by or any(happening in HINTS.get(plugin, frozenset(ClusterEvent)) for plugin in refused_by)
