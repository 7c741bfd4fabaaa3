"""Holds the pods that have a node and wait until their volumes are bound; finds these pods by their claims."""

from __future__ import annotations

from typing import NamedTuple

from ctrlmgr.api.resource import Key
from ctrlmgr.controllers.scheduler.binding_writes import Binding
from ctrlmgr.scheduling.awaited_volumes import AwaitedVolumes


class AwaitingPod(NamedTuple):
    """A pod that waits for its volumes, and its binding."""

    volumes: AwaitedVolumes
    binding: Binding


class AwaitingPods:
    """The pods that wait for their volumes; only one thread at a time may use an instance."""

    def __init__(self) -> None:
        """Create a collection without pods."""
        self._pods: dict[Key, AwaitingPod] = {}
        self._by_claim: dict[Key, set[Key]] = {}

    def __contains__(self, key: Key) -> bool:
        """Return whether a pod waits for its volumes."""
        return key in self._pods

    def put(self, awaiting: AwaitingPod) -> None:
        """Add a pod that waits for its volumes."""
        key = awaiting.binding.entry.pod.key
        self._pods[key] = awaiting
        for claim in awaiting.binding.claims:
            self._by_claim.setdefault(claim, set()).add(key)

    def pop(self, key: Key) -> AwaitingPod | None:
        """Remove a pod and return it; None if the pod does not wait for volumes."""
        awaiting = self._pods.pop(key, None)
        for claim in awaiting.binding.claims if awaiting is not None else ():
            self._by_claim[claim].discard(key)
            if not self._by_claim[claim]:
                del self._by_claim[claim]
        return awaiting

    def for_claim(self, claim: Key | None) -> list[Key]:
        """Return the pods that wait for the volume of a claim."""
        return sorted(self._by_claim.get(claim, ())) if claim is not None else []

    def clear(self) -> None:
        """Remove all waiting pods."""
        self._pods.clear()
        self._by_claim.clear()
