"""What writes are decided on beside the API's own cache: the caches that controllers read, or the log alone.

Guarantees: any thread may ask. What an informer holds is as current as that informer; a resource that none holds is
read from the log. A write that was decided on something out of date is refused by the log and decided again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.eventlog.log import EventLog
from ctrlmgr.informer import Informers


class InformerState:
    """An `engine.strategy.State` over a process' informers."""

    def __init__(self, informers: Informers, event_log: EventLog) -> None:
        """Read `informers`, which follow `event_log`."""
        self.informers = informers
        self._log = event_log

    @property
    def revision(self) -> Revision:
        """Everything up to here is in the caches."""
        return self.informers.revision

    def changed_at(self, resources: Iterable[Resource]) -> Revision:
        """Return the revision of the last change of any of these; `revision` if not all of them are in the caches."""
        changed = self.informers.changed_at(resources)
        return self.revision if changed is None else changed

    def get(self, resource: Resource, key: Key) -> Object | None:
        """Return one object, None if there is none."""
        lister = self.informers.lister(resource)
        return lister.get(key) if lister is not None else self._log.get(resource, key)

    def list(self, resource: Resource, namespace: str | None = None) -> Sequence[Object]:
        """Return the objects of one namespace (None: of all), by key."""
        lister = self.informers.lister(resource)
        if lister is not None:
            return lister.list(namespace)
        return self._log.snapshot(resource, namespace=namespace).objects


class LogState:
    """A state that is the log itself, for a tool that writes a few objects and keeps no caches."""

    def __init__(self, event_log: EventLog) -> None:
        """Read `event_log` at each question."""
        self._log = event_log

    @property
    def revision(self) -> Revision:
        """The log's newest revision."""
        return self._log.head().revision

    def changed_at(self, resources: Iterable[Resource]) -> Revision:
        """Return `revision`: what is newer than that may be of any resource."""
        return self.revision

    def get(self, resource: Resource, key: Key) -> Object | None:
        """Return one object, None if there is none."""
        return self._log.get(resource, key)

    def list(self, resource: Resource, namespace: str | None = None) -> Sequence[Object]:
        """Return the objects of one namespace (None: of all), by key."""
        return self._log.snapshot(resource, namespace=namespace).objects
