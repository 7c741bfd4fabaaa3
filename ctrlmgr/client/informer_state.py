"""The state that controllers' writes are decided on: the informers' caches, or the log alone.

Guarantees: any thread may use it. A resource with an informer is as current as the informer; others are read from the
log. If a write was decided on outdated state, the log refuses it and it is decided again.
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
        """Read from `informers`, which follow `event_log`."""
        self.informers = informers
        self._log = event_log

    @property
    def revision(self) -> Revision:
        """The revision up to which all events are in the caches."""
        return self.informers.revision

    def changed_at(self, resources: Iterable[Resource]) -> Revision:
        """Return the revision of the last change of any of these; `revision` if one of them is not cached."""
        changed = self.informers.changed_at(resources)
        return self.revision if changed is None else changed

    def get(self, resource: Resource, key: Key) -> Object | None:
        """Return one object, None if it does not exist."""
        lister = self.informers.lister(resource)
        return lister.get(key) if lister is not None else self._log.get(resource, key)

    def list(self, resource: Resource, namespace: str | None = None) -> Sequence[Object]:
        """Return the objects of one namespace (None: of all), by key."""
        lister = self.informers.lister(resource)
        if lister is not None:
            return lister.list(namespace)
        return self._log.snapshot(resource, namespace=namespace).objects


class LogState:
    """A state that reads the log itself, for tools that write few objects and have no caches."""

    def __init__(self, event_log: EventLog) -> None:
        """Read from `event_log` at each call."""
        self._log = event_log

    @property
    def revision(self) -> Revision:
        """The log's newest revision."""
        return self._log.head().revision

    def changed_at(self, resources: Iterable[Resource]) -> Revision:
        """Return `revision`: any resource may have changed up to it."""
        return self.revision

    def get(self, resource: Resource, key: Key) -> Object | None:
        """Return one object, None if it does not exist."""
        return self._log.get(resource, key)

    def list(self, resource: Resource, namespace: str | None = None) -> Sequence[Object]:
        """Return the objects of one namespace (None: of all), by key."""
        return self._log.snapshot(resource, namespace=namespace).objects
