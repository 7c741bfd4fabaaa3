"""Which pods wait for a node, which of them is next, and what lets one that failed try again.

Guarantees, those of kube-scheduler's queue:
- Pods go by priority, equal ones in the order in which they came.
- A pod that fits nowhere waits for something that could make a difference to the plugin that refused it, and for five
  minutes at most; then its back-off must be over: a second, doubled with each failure, ten at most.
- What happens while a pod is being decided about counts for it: no change falls between two attempts.
- A pod with scheduling gates, or whose claims of devices do not exist, does not wait for a node at all.

Seconds are those of a monotonic clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from heapq import heappop, heappush
from typing import Final

from ctrlmgr.api.resource import Key
from ctrlmgr.scheduling.model import PodInfo

FIRST_BACKOFF: Final = 1.0
LONGEST_BACKOFF: Final = 10.0
PATIENCE: Final = 300.0
"""Seconds after which a pod is tried again though nothing has happened."""


class Happening(Enum):
    """What can make a difference to a pod that fits nowhere."""

    NODE_ADDED = "a node came"
    NODE_CHANGED = "a node changed"
    POD_PLACED = "a pod was given a node, or changed its labels"
    POD_GONE = "a pod left its node"
    VOLUME = "a volume, or a claim of one, changed"
    DEVICES = "a claim of devices, or a class of them, changed"


_NODES: Final = frozenset([Happening.NODE_ADDED, Happening.NODE_CHANGED])
_BESIDE: Final = _NODES | {Happening.POD_PLACED, Happening.POD_GONE}
HINTS: Final[Mapping[str, frozenset[Happening]]] = {
    "NodeUnschedulable": _NODES,
    "NodeName": _NODES,
    "TaintToleration": _NODES,
    "NodeAffinity": _NODES,
    "NodePorts": _NODES | {Happening.POD_GONE},
    "NodeResourcesFit": _NODES | {Happening.POD_GONE},
    "VolumeBinding": _NODES | {Happening.VOLUME},
    "PodTopologySpread": _BESIDE,
    "InterPodAffinity": _BESIDE,
    "DynamicResources": _NODES | {Happening.DEVICES},
}
"""By plugin, what can change its mind; anything can for a pod that no plugin refused."""


def backoff(attempts: int) -> float:
    """Return for how long a pod waits after so many attempts."""
    return float(min(FIRST_BACKOFF * 2 ** min(attempts - 1, 16), LONGEST_BACKOFF))


@dataclass
class Entry:
    """A pod that waits."""

    pod: PodInfo
    since: float
    attempts: int = 0
    refused_by: frozenset[str] = frozenset()
    not_before: float = 0.0
    """When its back-off is over."""
    patience_ends: float = 0.0
    """When it is tried again whatever happens."""
    is_active: bool = True
    """Whether it is to be tried: at once, or when its back-off is over."""

    @property
    def order(self) -> tuple[int, float, Key]:
        """By which entries are sorted."""
        return -self.pod.priority, self.since, self.pod.key


@dataclass
class Waiting:
    """The pods that wait. One thread at a time."""

    entries: dict[Key, Entry] = field(default_factory=dict)
    gated: dict[Key, PodInfo] = field(default_factory=dict)
    _ready: list[tuple[int, float, Key]] = field(default_factory=list)
    # The entries that are not active: what happens concerns only them, however many others wait for their turn.
    _parked: dict[Key, Entry] = field(default_factory=dict)
    # What has happened since the pod that is being decided about was taken.
    _meanwhile: set[Happening] = field(default_factory=set)

    def offer(self, pod: PodInfo, now: float, *, lacks: str = "") -> bool:
        """Take in a pod that has come or changed; say whether it is to be tried now. One that `lacks` a claim waits."""
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
        """Forget a pod: it has a node, has ended, or is gone."""
        self.entries.pop(key, None)
        self._parked.pop(key, None)
        self.gated.pop(key, None)

    def must_wait(self, key: Key, now: float) -> bool:
        """Say whether a more important pod than this one, which waits, is to be tried now."""
        first = self.first(now)
        return first is not None and self.entries[first].pod.priority > self.entries[key].pod.priority

    def first(self, now: float) -> Key | None:
        """Return the pod that is next, None if none is to be tried now; one that backs off loses its place in line."""
        while self._ready:
            order = self._ready[0]
            entry = self.entries.get(order[2])
            if entry is not None and entry.is_active and entry.order == order and entry.not_before <= now:
                return order[2]
            heappop(self._ready)
        return None

    def seconds_until(self, key: Key, now: float) -> float | None:
        """Return after how many seconds a pod is to be tried, 0 for now; None if it does not wait."""
        entry = self.entries.get(key)
        if entry is None:
            return None
        if not entry.is_active:
            if entry.patience_ends > now:
                return entry.patience_ends - now
            self._activate(entry)
        return max(entry.not_before - now, 0.0)

    def take(self, key: Key) -> Entry:
        """Return a pod to decide about it now."""
        entry = self.entries[key]
        entry.is_active = False
        self._parked[key] = entry
        entry.attempts += 1
        self._meanwhile.clear()
        return entry

    def failed(self, entry: Entry, refused_by: frozenset[str], now: float) -> float:
        """Have a pod that fits nowhere wait; return the seconds after which to try it at the latest."""
        entry.refused_by = refused_by
        entry.not_before = now + backoff(entry.attempts)
        entry.patience_ends = now + PATIENCE
        if any(concerns(each, refused_by) for each in self._meanwhile):
            self._activate(entry)
            return entry.not_before - now
        return PATIENCE

    def retry(self, entry: Entry, now: float) -> float:
        """Have a pod tried again for which something went wrong; return after how many seconds."""
        entry.not_before = now + backoff(entry.attempts)
        self._put(entry)
        return entry.not_before - now

    def happened(self, happening: Happening, now: float) -> Iterator[tuple[Key, float]]:
        """Yield the pods for which this may make a difference, and after how many seconds each may be tried."""
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


def concerns(happening: Happening, refused_by: frozenset[str]) -> bool:
    """Say whether something can make a difference to a pod that was refused by these plugins, or by none."""
    return not refused_by or any(happening in HINTS.get(plugin, frozenset(Happening)) for plugin in refused_by)
