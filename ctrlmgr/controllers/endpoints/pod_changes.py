"""Maps a pod's change to the Services to reconcile.

Guarantees, after `GetServicesToUpdateOnPodChange` (`k8s.io/endpointslice/util`):
- The creation or deletion of a pod affects every Service whose selector matches its labels.
- A change of a pod's readiness or addresses, and every change of a pod that is being deleted, affect the Services that
  match its old or new labels.
- The termination of a pod, its binding to a node, and its replacement by another pod of the same name affect the same
  Services. If no other field changes, Kubernetes misses terminations, bindings and replacements, and its endpoints stay
  outdated until the next change.
- If only a pod's labels change, the change affects the Services whose selectors match either the old labels or the new
  labels, but not both.
- All other changes of a pod affect no Service. Endpoints depend only on the compared fields of pods, so several changes
  may be combined into one.

The Services that may be affected are found with an index of Services by one label pair of their selectors. Therefore
the cost of a change depends on the number of matching Services, and not on the number of all Services in the namespace.
The Services that select a pod are cached by the pod's labels until a selector changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final
from weakref import WeakKeyDictionary

from ctrlmgr.api.core import Pod, Service
from ctrlmgr.api.equality_selectors import label_pairs, matches, selector_pair
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key
from ctrlmgr.caches import BoundedCache
from ctrlmgr.informer import Change, Informer, Lister

_BY_SELECTOR = "selector"

_ENTRIES: Final = 10_000
_SIZE: Final = 8 * 1024 * 1024
"""The maximum total size, in bytes, of the cached label sets."""


class PodChanges:
    """Maps a pod's change to the sorted keys of the affected Services."""

    def __init__(self, services: Informer) -> None:
        """Create an index of `services` by selector that follows changes.

        The caller must do this before `services` syncs. Prefer `pod_changes`.
        """
        services.add_index(_BY_SELECTOR, _selector_values)
        services.add_handler(self._on_service, vital=True)
        self._services: Lister = services.lister
        self._last: tuple[Change | None, list[Key]] = (None, [])
        # The cached results of `_select`, keyed by namespace and labels, which are valid until the selector of a
        # Service changes. Handlers of Services and pods run on one thread in the order of the log, so they see Services
        # and pods of the same revision.
        self._known: BoundedCache[tuple[str, tuple[tuple[str, str], ...]], frozenset[Key]] = BoundedCache(
            "services-by-labels", entries=_ENTRIES, size=_SIZE
        )

    def __call__(self, change: Change) -> list[Key]:
        """Return the keys of the Services to reconcile after the `change` of a pod.

        The last result is cached, because several controllers call this method with the same change.
        """
        last, keys = self._last
        if last is not change:
            keys = self._concerned(change)
            self._last = (change, keys)
        return keys

    def _concerned(self, change: Change) -> list[Key]:
        old, new = change.old, change.new
        if old is None or new is None:
            pod = new or old
            return sorted(self._selecting(pod)) if pod is not None else []
        if old.revision == new.revision:
            return []
        pod_changed, membership_changed = endpoints_changed(old, new)
        if not (pod_changed or membership_changed):
            return []
        found = self._selecting(new)
        if membership_changed:
            before = self._selecting(old)
            found = found | before if pod_changed else found ^ before
        return sorted(found)

    def _on_service(self, change: Change) -> None:
        old, new = change.old, change.new
        if old is not None and new is not None and old.view(Service).spec.selector == new.view(Service).spec.selector:
            return
        self._known.clear()
        self._last = (None, [])

    def _selecting(self, pod: Object) -> frozenset[Key]:
        """Return the keys of the Services that select `pod`; a Service without a selector selects no pods."""
        labels = pod.labels
        question = (pod.namespace, tuple(labels.items()))
        found = self._known.get(question)
        if found is None:
            found = self._select(pod.namespace, labels)
            self._known.put(question, found, sum(len(name) + len(value) for name, value in labels.items()))
        return found

    def _select(self, namespace: str, labels: Mapping[str, str]) -> frozenset[Key]:
        return frozenset(
            service.key
            for pair in label_pairs(namespace, labels)
            for service in self._services.by_index(_BY_SELECTOR, pair)
            if matches(service.view(Service).spec.selector or {}, labels)
        )


_of_informers: WeakKeyDictionary[Informer, PodChanges] = WeakKeyDictionary()


def pod_changes(services: Informer) -> PodChanges:
    """Return the `PodChanges` of `services` that several controllers share.

    The first call creates the `PodChanges` and must precede the sync of `services`.
    """
    found = _of_informers.get(services)
    if found is None:
        found = _of_informers[services] = PodChanges(services)
    return found


def endpoints_changed(old: Object, new: Object) -> tuple[bool, bool]:
    """Return whether a pod's endpoint fields may have changed, and whether its labels have changed.

    Go compares the pointers of the deletion timestamps, so every update of a terminating pod counts as a change. The
    function compares the pods' uids, so the function need not compare fields that never change during a pod's life,
    such as the hostname.
    """
    before, after = old.view(Pod), new.view(Pod)
    pod_changed = (
        before.is_terminating
        or after.is_terminating
        or before.is_ready != after.is_ready
        or before.ips != after.ips
        or before.is_terminal != after.is_terminal
        or before.spec.node_name != after.spec.node_name
        or before.metadata.uid != after.metadata.uid
    )
    return pod_changed, old.labels != new.labels


def stops_being_ready(change: Change) -> bool:
    """Return whether a pod was ready before `change` and is no longer ready.

    A change that makes a pod unready should not wait for further changes.
    """
    old, new = change.old, change.new
    return old is not None and new is not None and old.view(Pod).is_ready and not new.view(Pod).is_ready


def _selector_values(service: Object) -> Iterable[str]:
    selector: Mapping[str, str] | None = service.view(Service).spec.selector
    return () if selector is None else (selector_pair(service.namespace, selector),)
