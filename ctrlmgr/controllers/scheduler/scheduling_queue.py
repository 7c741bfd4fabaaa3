"""Implements the scheduling queue of waiting pods, and decides which pod is next and when a pod is retried.

The guarantees are those of kube-scheduler's queue:

- Pods are sorted by priority, then by the time when they were added.
- A pod that fits on no node waits for an event that concerns a plugin that refused the pod. The pod waits at most five
  minutes. A pod is retried only after its backoff, which is one second after the first failure; each further failure
  doubles the backoff, up to ten seconds.
- Events that are processed before the decision about a pod are part of the state of that decision. The queue processes
  all other events after the decision, so no change is missed between two attempts.
- A pod with scheduling gates, or with missing resource claims, is not in the queue.

In this module, seconds are read from a monotonic clock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from time import perf_counter
from typing import Final

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key
from ctrlmgr.controllers.scheduler import scheduler_metrics
from ctrlmgr.controllers.scheduler.queueing_hints import ClusterEvent, Happening, hint_of
from ctrlmgr.scheduling.cluster_model import PodInfo

ACTIVE: Final = "active"
BACKOFF: Final = "backoff"
UNSCHEDULABLE: Final = "unschedulable"
GATED: Final = "gated"
PATIENCE: Final = 300.0
"""The number of seconds after which a pod is tried again even if there was no event."""


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
    taken_at: float = 0.0
    """The time when the last attempt began."""
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
    # The entries of pods that wait for an event. When an event occurs, only these entries are checked, however many
    # other pods wait.
    _parked: dict[Key, Entry] = field(default_factory=dict)

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
            self._put(Entry(pod, now), scheduler_metrics.POD_ADDED)
            return True
        before, entry.pod = entry.pod, pod
        if before.view.spec == pod.view.spec and before.labels == pod.labels:
            return False
        self._activate(entry, scheduler_metrics.POD_UPDATED, now)
        return True

    def forget(self, key: Key) -> None:
        """Remove a pod that was bound, has ended, or was deleted."""
        self.entries.pop(key, None)
        self._parked.pop(key, None)
        self.gated.pop(key, None)

    def must_wait(self, key: Key, now: float) -> bool:
        """Return whether the given pod must wait, because a pod with a higher priority should be tried now."""
        first = self.first(now)
        return first is not None and self.entries[first].pod.priority > self.entries[key].pod.priority

    def first(self, now: float) -> Key | None:
        """Return the next pod; None if no pod should be tried now. Pods whose backoff is not over are skipped."""
        while self._ready:
            order = self._ready[0]
            entry = self.entries.get(order[2])
            if entry is not None and entry.is_active and entry.order == order and entry.not_before <= now:
                return order[2]
            heappop(self._ready)
        return None

    def seconds_until(self, key: Key, now: float) -> float | None:
        """Return the seconds until a pod should be tried.

        Return 0 if the pod should be tried now, and None if the pod is not in the queue.
        """
        entry = self.entries.get(key)
        if entry is None:
            return None
        if not entry.is_active:
            if entry.patience_ends > now:
                return entry.patience_ends - now
            self._activate(entry, scheduler_metrics.TIMEOUT, now)
        return max(entry.not_before - now, 0.0)

    def take(self, key: Key, now: float) -> Entry:
        """Return the entry of a pod about which the caller makes a decision now."""
        entry = self.entries[key]
        entry.is_active = False
        self._parked[key] = entry
        entry.attempts += 1
        entry.taken_at = now
        return entry

    def failed(self, entry: Entry, refused_by: frozenset[str], now: float) -> float:
        """Queue a pod that fits on no node; return the maximum number of seconds until its next attempt."""
        entry.refused_by = refused_by
        entry.not_before = now + self.backoff(entry.attempts)
        entry.patience_ends = now + PATIENCE
        scheduler_metrics.INCOMING_PODS.labels(UNSCHEDULABLE, scheduler_metrics.FAILED_ATTEMPT).inc()
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
        """Let a pod be tried again now, because one of the volumes for which it waits may be bound."""
        entry = self.entries.get(key)
        if entry is not None and not entry.is_active:
            entry.not_before = now
            self._activate(entry, ClusterEvent.VOLUME_CLAIM.value, now)

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
        self.entries[entry.pod.key] = entry
        self._activate(entry, scheduler_metrics.FAILED_ATTEMPT, now)
        return entry.not_before - now

    def happened(self, happening: Happening, now: float) -> Iterator[tuple[Key, float]]:
        """Yield the pods that an event may make schedulable, with the seconds until each of these pods may be tried."""
        for key, entry in [*self._parked.items()]:
            if concerns(happening, entry):
                self._activate(entry, happening.event.value, now)
                yield key, max(entry.not_before - now, 0.0)

    def counts(self, now: float) -> Mapping[tuple[str, ...], int]:
        """Return the number of pods of each queue: `active`, `backoff`, `unschedulable` and `gated`."""
        found = Counter(_queue_of(each, now) for each in [*self.entries.values()])
        found[GATED] = len(self.gated)
        return {(queue,): found[queue] for queue in (ACTIVE, BACKOFF, UNSCHEDULABLE, GATED)}

    def refusing(self) -> Mapping[tuple[str, ...], int]:
        """Return the number of pods that each plugin refused, by the plugin and the pods' scheduler."""
        parked = [*self._parked.values()]
        return Counter((name, each.pod.view.spec.scheduler_name) for each in parked for name in each.refused_by)

    def _put(self, entry: Entry, event: str) -> None:
        self.entries[entry.pod.key] = entry
        self._activate(entry, event, entry.since)

    def _activate(self, entry: Entry, event: str, now: float) -> None:
        entry.is_active = True
        self._parked.pop(entry.pod.key, None)
        heappush(self._ready, entry.order)
        scheduler_metrics.INCOMING_PODS.labels(_queue_of(entry, now), event).inc()


def _queue_of(entry: Entry, now: float) -> str:
    if not entry.is_active:
        return UNSCHEDULABLE
    return ACTIVE if entry.not_before <= now else BACKOFF


def concerns(happening: Happening, entry: Entry) -> bool:
    """Return whether an event may make a pod schedulable.

    If no plugin refused the pod, every event may make the pod schedulable.
    """
    return not entry.refused_by or any(_helps(plugin, happening, entry.pod) for plugin in entry.refused_by)


def _helps(plugin: str, happening: Happening, pod: PodInfo) -> bool:
    hint = hint_of(plugin, happening.event)
    if hint is None:
        return False
    began = perf_counter()
    helps = hint(pod, happening)
    labels = (plugin, happening.event.value, "Queue" if helps else "QueueSkip")
    scheduler_metrics.HINT_SECONDS.labels(*labels).observe(perf_counter() - began)
    return helps
