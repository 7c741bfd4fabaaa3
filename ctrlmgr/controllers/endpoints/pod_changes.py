"""Which services have to be looked at when a pod changes.

Guarantees, after `GetServicesToUpdateOnPodChange` (`k8s.io/endpointslice/util`):
- A pod that comes or goes concerns every service whose selector matches its labels.
- A pod whose readiness or addresses changed, or that is being deleted, concerns those matching its old or new labels.
- So does one that came to its end, got its node, or is another pod of the same name. Kubernetes overlooks these where
  nothing else changed with them, and its endpoints are out of date until something does.
- A pod of which only the labels changed concerns the services that it joins or leaves, not those it stays in.
- Any other change concerns none, nor does one that cannot be told from no change: what endpoints tell of a pod follows
  from what is compared here. So it does not matter how many changes are seen as one.

Found through an index of services by one pair of their selectors, so the cost is that of the services which match,
not of those in the namespace; and remembered for pods with the same labels, which most pods of a service have, until
some service selects others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final
from weakref import WeakKeyDictionary

from ctrlmgr.api.core import Pod, Service
from ctrlmgr.api.labels import label_pairs, matches, selector_pair
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key
from ctrlmgr.caches import BoundedCache
from ctrlmgr.informer import Change, Informer, Lister

_BY_SELECTOR = "selector"

_ENTRIES: Final = 10_000
_SIZE: Final = 8 * 1024 * 1024
"""Bytes of the sets of labels whose services are cached."""


class PodChanges:
    """Names the services that a change of a pod concerns, by their keys, in order."""

    def __init__(self, services: Informer) -> None:
        """Index `services` by selector and follow its changes; ask before it syncs. Prefer `pod_changes`."""
        services.add_index(_BY_SELECTOR, _selector_values)
        services.add_handler(self._on_service, vital=True)
        self._services: Lister = services.lister
        self._last: tuple[Change | None, list[Key]] = (None, [])
        # What `_select` says of a namespace and labels while the services are as they are. Handlers of services and
        # pods run on one thread, in the order of the log, so neither is ever half changed here.
        self._known: BoundedCache[tuple[str, tuple[tuple[str, str], ...]], frozenset[Key]] = BoundedCache(
            "services-by-labels", entries=_ENTRIES, size=_SIZE
        )

    def __call__(self, change: Change) -> list[Key]:
        """Return the keys of the services to reconcile after `change`; controllers ask of the same one in turn."""
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
        """Return the keys of the services that select `pod`; one without a selector selects nothing."""
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
    """Return the one that follows `services`, made by the first who asks, before it syncs."""
    found = _of_informers.get(services)
    if found is None:
        found = _of_informers[services] = PodChanges(services)
    return found


def endpoints_changed(old: Object, new: Object) -> tuple[bool, bool]:
    """Say whether what endpoints tell of a pod may have changed, and whether which services it belongs to may have.

    Go compares the deletion timestamps as pointers, so of a pod that is being deleted every update counts. Of what
    never changes while a pod lives, such as its hostname and its ports, the uid tells.
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
    """Say whether a pod was ready before `change` and is not any more: clients must not be sent to it for longer."""
    old, new = change.old, change.new
    return old is not None and new is not None and old.view(Pod).is_ready and not new.view(Pod).is_ready


def _selector_values(service: Object) -> Iterable[str]:
    selector: Mapping[str, str] | None = service.view(Service).spec.selector
    return () if selector is None else (selector_pair(service.namespace, selector),)
