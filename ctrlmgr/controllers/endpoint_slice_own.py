"""The slices that one controller keeps, as they are after its own writes, also while the cache does not show these yet.

Slices have generated names: who decided by a cache without the slice that it has just created would create another.
Kubernetes' `EndpointSliceTracker` lets nobody decide until the cache has caught up; here the writes that the cache
lacks are laid over it, so that nobody waits.

Guarantees:
- `list` shows every write made here in place of what the cache has from before it. Who else has written since is not
  known; but then the next write is refused (`Conflict`), and by the time it is tried again the cache shows it.
- A write is remembered until the cache has come up to it, which `list` and `keys` notice.
- One's own writes are no reason to look again, nor is what came before them: they were made knowing it. For such
  changes `keys` is empty.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ctrlmgr.api.discovery import MANAGED_BY, SERVICE_NAME
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Revision
from ctrlmgr.client import Client
from ctrlmgr.errors import Conflict, NotFound
from ctrlmgr.informer import Change, Informer


@dataclass(slots=True)
class _Writes:
    """What the cache may lack, by the slices' keys; `deleted` holds what was deleted as it was then."""

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
            if there is not None and there.uid == obj.uid:
                del cached[key]
            elif obj.revision <= seen:
                del self.deleted[key]


class OwnSlices:
    """The slices with one `managed-by` label, each kept for the service or Endpoints object named by its label.

    Threads may share it; two must not write for the same owner at once, as a controller's workers do not.
    """

    def __init__(self, slices: Informer, manager: str, seen: Callable[[], Revision]) -> None:
        """Index `slices` by their owners; ask before they sync. They show everything up to what `seen` returns."""
        self._index = f"kept by {manager}"
        slices.add_index(self._index, lambda obj: map(str, self._owners(obj)))
        self._slices = slices.lister
        self._manager = manager
        self._seen = seen
        self._lock = threading.Lock()
        self._writes: dict[Key, _Writes] = {}

    def _owners(self, obj: Object | None) -> Iterable[Key]:
        """Return the key of what a slice is kept for, if it is kept by this manager."""
        if obj is None or obj.labels.get(MANAGED_BY) != self._manager:
            return ()
        name = obj.labels.get(SERVICE_NAME)
        return (Key(obj.namespace, name),) if name else ()

    def list(self, owner: Key) -> list[Object]:
        """Return the slices kept for `owner` that are not being deleted, sorted by key."""
        seen = self._seen()  # before the cache is read, which can only be newer then
        cached: Iterable[Object] = self._slices.by_index(self._index, str(owner))
        if owner in self._writes:
            cached = self._laid_over(owner, cached, seen)
        return [obj for obj in cached if not obj.is_terminating]

    def _laid_over(self, owner: Key, cached: Iterable[Object], seen: Revision) -> Iterable[Object]:
        found = {obj.key: obj for obj in cached}
        with self._lock:
            writes = self._writes.get(owner) or _Writes()
            writes.lay_over(found, seen)
            if not writes:
                self._writes.pop(owner, None)
        return [obj for _, obj in sorted(found.items())]

    def is_free(self, key: Key) -> bool:
        """Whether the cache has no slice of that name."""
        return self._slices.get(key) is None

    def create(self, owner: Key, obj: Object, client: Client) -> None:
        """Create a slice; raises what `client` raises."""
        self._remember(owner, client.create(obj))

    def update(self, owner: Key, obj: Object, client: Client) -> None:
        """Write over the slice read at `obj.revision`; raises what `client` raises, `Conflict` if it has gone."""
        try:
            self._remember(owner, client.update(obj))
        except NotFound as error:
            raise Conflict(str(error), expected=obj.revision) from error

    def delete(self, owner: Key, obj: Object, client: Client) -> None:
        """Delete a slice, which may be gone already; raises what else `client` raises."""
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

    def keys(self, change: Change) -> Iterable[Key]:
        """Return which owners to look at after a slice has changed: none if it was changed here."""
        owners = {*self._owners(change.old), *self._owners(change.new)}
        return () if any(self._is_own(owner, change) for owner in owners) else sorted(owners)

    def _is_own(self, owner: Key, change: Change) -> bool:
        """Whether a change is one that is remembered, which it need no longer be."""
        if owner not in self._writes:
            return False
        with self._lock:
            writes = self._writes.get(owner) or _Writes()
            is_own = _take(writes, change)
            if not writes:
                self._writes.pop(owner, None)
        return is_own


def _take(writes: _Writes, change: Change) -> bool:
    """Whether a change is of this process, or of before a write of this process, which knew of it then."""
    obj = change.new or change.old
    assert obj is not None
    written, deleted = writes.written.get(obj.key), writes.deleted.get(obj.key)
    was_deleted = deleted is not None and deleted.uid == obj.uid
    if change.new is None:
        if was_deleted:
            del writes.deleted[obj.key]
        return was_deleted
    if written is not None and written.revision == obj.revision:
        del writes.written[obj.key]
        return True
    return was_deleted or (written is not None and written.revision > obj.revision)
