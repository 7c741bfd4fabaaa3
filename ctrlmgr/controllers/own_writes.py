"""What a controller wrote itself and its cache does not show yet, laid over what the cache shows.

A cache is a moment behind the log. Who decides by it right after a write of its own would create what it has just
created, or overlook what it has to delete. Kubernetes' trackers (`EndpointSliceTracker`, `staleEndpointsTracker`) let
no worker decide until the cache has caught up; here what the cache lacks is laid over it, so that none waits.

Guarantees:
- `lay_over` shows every write made here in place of what the cache has from before it. Who else has written since is
  not known; but then the next write is refused (a lost race), and by the time it is tried again the cache shows it.
- A write is remembered until the cache has come up to it, which `lay_over` and `is_own` notice.
- One's own writes are no reason to look again, nor is what came before them: they were made knowing it. Of such
  changes `is_own` says so.
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
    """What the cache may lack, by the objects' keys; `deleted` holds what was deleted as it was then."""

    written: dict[Key, Object] = field(default_factory=dict)
    deleted: dict[Key, Object] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.written or self.deleted)

    def lay_over(self, cached: dict[Key, Object], seen: Revision) -> None:
        """Change what was read of the cache, at `seen` or later, into what is there; forget what that shows."""
        for key, obj in [*self.written.items()]:
            there = cached.get(key)
            if obj.revision <= seen or (there is not None and there.revision >= obj.revision):
                del self.written[key]
            else:
                cached[key] = obj
        for key, obj in [*self.deleted.items()]:
            there = cached.get(key)
            # Of the same uid but newer, it is what finalizers hold: it was only marked.
            if there is not None and there.uid == obj.uid and there.revision <= obj.revision:
                del cached[key]
            elif obj.revision <= seen:
                del self.deleted[key]

    def take(self, change: Change) -> bool:
        """Whether a change is of this process, or of before a write of this process, which knew of it then."""
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
    """The writes of one controller, by owner: what it reconciles when it makes them, such as a service.

    Threads may share it; two must not write for the same owner at once, as a controller's workers do not.
    """

    def __init__(self) -> None:
        """Start having written nothing."""
        self._lock = threading.Lock()
        self._writes: dict[Key, _Writes] = {}

    def __len__(self) -> int:
        """Return for how many owners something is remembered."""
        return len(self._writes)

    def lay_over(self, owner: Key, cached: dict[Key, Object], seen: Revision) -> None:
        """Change `cached`, the objects kept for `owner` as read from the cache, into what is there, as far as is known.

        The cache showed everything up to `seen` before it was read.
        """
        if owner not in self._writes:
            return
        with self._lock:
            if (writes := self._writes.get(owner)) is not None:
                writes.lay_over(cached, seen)
                self._drop_if_empty(owner, writes)

    def is_own(self, owner: Key, change: Change) -> bool:
        """Whether a change is one that is remembered, which it need no longer be, or older than one."""
        if owner not in self._writes:
            return False
        with self._lock:
            if (writes := self._writes.get(owner)) is None:
                return False
            is_own = writes.take(change)
            self._drop_if_empty(owner, writes)
        return is_own

    def create(self, owner: Key, obj: Object, client: Client) -> None:
        """Create an object for `owner`; raises what `client` raises."""
        self._remember(owner, client.create(obj))

    def update(self, owner: Key, obj: Object, client: Client) -> None:
        """Write over the object read at `obj.revision`; raises what `client` raises."""
        self._remember(owner, client.update(obj))

    def delete(self, owner: Key, obj: Object, client: Client) -> None:
        """Delete an object, which may be gone already; raises what else `client` raises."""
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
