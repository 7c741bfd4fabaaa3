"""Overlays a controller's own recent writes on its cache, because the cache may not contain these writes yet.

A cache always lags slightly behind the log. A controller that reads the cache right after its own write would create an
object twice, or miss an object that it has to delete. Kubernetes' trackers (`EndpointSliceTracker`,
`staleEndpointsTracker`) block workers until the cache has caught up. In ctrlmgr, the missing writes are added to the
cached objects instead, so workers do not wait.

Guarantees:
- The function `lay_over` replaces each cached object with the controller's newer write. The result of `lay_over` lacks
  later writes of other clients. If another client has written later, the controller's next write fails with a conflict.
  When the reconcile is retried, the cache contains the other client's writes.
- Each write is kept until the cache contains it. The methods `lay_over` and `is_own` detect this.
- A controller need not reconcile after its own writes or after older changes, because it knew the older changes when it
  made its own write. `is_own` returns True for a controller's own writes and for older changes.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Revision
from ctrlmgr.client import Client
from ctrlmgr.errors import NotFound
from ctrlmgr.informer import Change


@dataclass(slots=True)
class _Writes:
    """The writes that the cache may lack, keyed by the key of the object.

    `deleted` contains the last states of deleted objects.
    """

    written: dict[Key, Object] = field(default_factory=dict)
    deleted: dict[Key, Object] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.written or self.deleted)

    def overlay(self, cached: dict[Key, Object], seen: Revision) -> None:
        """Update `cached`, which was read at revision `seen` or later, with the writes that the cache may lack.

        Remove the writes that the cache already contains.
        """
        for key, obj in [*self.written.items()]:
            there = cached.get(key)
            if obj.revision <= seen or (there is not None and there.revision >= obj.revision):
                del self.written[key]
            else:
                cached[key] = obj
        for key, obj in [*self.deleted.items()]:
            there = cached.get(key)
            # If the cached object has the same uid and is newer, it stays: finalizers keep the object, which is only
            # marked for deletion.
            if there is not None and there.uid == obj.uid and there.revision <= obj.revision:
                del cached[key]
            elif obj.revision <= seen:
                del self.deleted[key]

    def take(self, change: Change) -> bool:
        """Return whether a change is this process's own write, or is older than one of its writes."""
        obj = change.object
        written, deleted = self.written.get(obj.key), self.deleted.get(obj.key)
        was_deleted = deleted is not None and deleted.uid == obj.uid
        if change.new is None:
            if was_deleted:
                del self.deleted[obj.key]
            return was_deleted
        if written is not None and written.revision == obj.revision:
            del self.written[obj.key]
            return True
        return was_deleted or (written is not None and written.revision > obj.revision)


class OwnWrites:
    """The recent writes of one controller, grouped by the reconciled object (the owner), such as a Service.

    An instance is thread-safe, but two threads must not write for the same owner at the same time. The workers of a
    controller comply with this rule.
    """

    def __init__(self) -> None:
        """Create an instance without writes."""
        self._lock = threading.Lock()
        self._writes: dict[Key, _Writes] = {}

    def __len__(self) -> int:
        """Return the number of owners for which writes are kept."""
        return len(self._writes)

    def overlay(self, owner: Key, cached: dict[Key, Object], seen: Revision) -> None:
        """Update `cached`, the owner's objects as read from the cache, with newer writes of this process.

        `seen` is the revision that the cache had before the objects were read from it.
        """
        if owner not in self._writes:
            return
        with self._lock:
            if (writes := self._writes.get(owner)) is not None:
                writes.overlay(cached, seen)
                self._drop_if_empty(owner, writes)

    def is_own(self, owner: Key, change: Change) -> bool:
        """Return whether a change is one of the kept writes, or is older than a kept write.

        If the change is a kept write, remove the kept write.
        """
        if owner not in self._writes:
            return False
        with self._lock:
            if (writes := self._writes.get(owner)) is None:
                return False
            is_own = writes.take(change)
            self._drop_if_empty(owner, writes)
        return is_own

    def create(self, owner: Key, obj: Object, client: Client) -> None:
        """Create an object for `owner`; raises the errors of `client` if the write fails."""
        self._remember(owner, client.create(obj))

    def update(self, owner: Key, obj: Object, client: Client) -> None:
        """Update the object that was read at `obj.revision`; raises the errors of `client` if the write fails."""
        self._remember(owner, client.update(obj))

    def delete(self, owner: Key, obj: Object, client: Client) -> None:
        """Delete an object, and record the deletion.

        If the object is already deleted, no error is raised; other errors of `client` are raised.
        """
        try:
            client.delete(obj)
        except NotFound:
            return
        with self._lock:
            writes = self._writes.setdefault(owner, _Writes())
            writes.written.pop(obj.key, None)
            writes.deleted[obj.key] = obj

    def _remember(self, owner: Key, stored: Object) -> None:
        with self._lock:
            self._writes.setdefault(owner, _Writes()).written[stored.key] = stored

    def _drop_if_empty(self, owner: Key, writes: _Writes) -> None:
        if not writes:
            del self._writes[owner]
