"""The state that the engine uses to decide controllers' writes: either the informers' caches or the log alone.

Guarantees: several threads may share the states of this module. An object with an informer is read from the informer's
cache; all other objects are read from the log. If the engine decided a write on outdated state, the log refuses the
write, and the engine decides the write again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.eventlog.log import EventLog
from ctrlmgr.informer import Informers


class InformerState:
    """An `engine.strategy.State` over the informers of a process."""

    def __init__(self, informers: Informers, event_log: EventLog) -> None:
        """Create a state that reads from the caches of `informers`; the informers follow `event_log`."""
        self.informers = informers
        self._log = event_log

    @property
    def revision(self) -> Revision:
        """The revision up to which all events are in the caches."""
        return self.informers.revision

    def changed_at(self, resources: Iterable[Resource]) -> Revision:
        """Return the revision of the last change of any of `resources`.

        If one of the resources has no informer, the method returns `revision`.
        """
        changed = self.informers.changed_at(resources)
        return self.revision if changed is None else changed

    def get(self, resource: Resource, key: Key) -> Object | None:
        """Return the current object with this key; None if the object does not exist."""
        lister = self.informers.lister(resource)
        return lister.get(key) if lister is not None else self._log.get(resource, key)

    def list(self, resource: Resource, namespace: str | None = None) -> Sequence[Object]:
        """Return the objects of one namespace, by key; a namespace of None means all namespaces."""
        lister = self.informers.lister(resource)
        if lister is not None:
            return lister.list(namespace)
        return self._log.snapshot(resource, namespace=namespace).objects


class LogState:
    """A state that reads the log directly, for tools that write few objects and have no caches."""

    def __init__(self, event_log: EventLog) -> None:
        """Create a state that reads from `event_log` at each call."""
        self._log = event_log

    @property
    def revision(self) -> Revision:
        """The newest revision of the log."""
        return self._log.head().revision

    def changed_at(self, resources: Iterable[Resource]) -> Revision:
        """Return the newest revision of the log, because this state does not know which resources have changed."""
        return self.revision

    def get(self, resource: Resource, key: Key) -> Object | None:
        """Return the current object with this key; None if the object does not exist."""
        return self._log.get(resource, key)

    def list(self, resource: Resource, namespace: str | None = None) -> Sequence[Object]:
        """Return the objects of one namespace, by key; a namespace of None means all namespaces."""
        return self._log.snapshot(resource, namespace=namespace).objects
