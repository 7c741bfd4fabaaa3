"""Which of this process's own writes the caches show: what Kubernetes' `ConsistencyStore` is for.

Guarantees:
- A write counts as shown once the cache of its resource has reached the write's revision. The answer to a deletion has
  no revision: a deletion counts as shown once the cache holds no object of that uid, or a terminating one.
- A write's answer and its watch event may arrive in either order. A write that changed nothing causes no event; its
  revision is one that the cache has shown already, or will show.
- The store does not wait for writes that no cache will show: those of resources that are not followed, of other
  namespaces, and of kinds that are no longer served.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource, Revision

LookUp = Callable[[Key], Object | None]
"""Returns what a cache holds."""


class _Deletion(NamedTuple):
    """A deletion that was acknowledged, and where it stands among the writes."""

    key: Key
    uid: str
    revision: Revision


class _Followed:
    """One resource that a cache follows; guarded by the store's lock."""

    def __init__(self, look_up: LookUp, shows: Callable[[Key], bool]) -> None:
        self.look_up = look_up
        self.shows = shows
        self.shown: Revision = 0
        self.written: list[Revision] = []
        self.deleted: list[_Deletion] = []

    def wrote(self, revision: Revision) -> None:
        if revision > self.shown:
            self.written.append(revision)

    def come_to(self, revision: Revision) -> None:
        self.shown = revision
        if self.written:
            self.written = [each for each in self.written if each > revision]

    def look_again(self, key: Key | None = None) -> None:
        """Forget the deletions that the cache shows: of one object, or (None) of all."""
        if self.deleted:
            self.deleted = [each for each in self.deleted if key not in (None, each.key) or self._holds(each)]

    def _holds(self, deletion: _Deletion) -> bool:
        found = self.look_up(deletion.key)
        return found is not None and found.uid == deletion.uid and not found.is_terminating

    def forget(self) -> None:
        self.written, self.deleted = [], []

    def oldest(self) -> Revision | None:
        """Return the revision of the oldest write that the cache does not show."""
        return min([*self.written, *(each.revision for each in self.deleted)], default=None)


class ConsistencyStore:
    """See the module's docstring; any thread may use it."""

    def __init__(self) -> None:
        """Start with no writes, and nothing followed."""
        self._lock = threading.Lock()
        self._followed: dict[Resource, _Followed] = {}
        self._newest: Revision = 0

    # What the process writes.

    def wrote(self, resource: Resource, key: Key, revision: Revision) -> None:
        """Note that a write was acknowledged with a revision."""
        with self._lock:
            self._newest = max(self._newest, revision)
            if (followed := self._expecting(resource, key)) is not None:
                followed.wrote(revision)

    def deleted(self, obj: Object) -> None:
        """Note that the deletion of the object read was acknowledged."""
        with self._lock:
            self._newest += 1  # later than every write that was acknowledged before
            if (followed := self._expecting(obj.resource, obj.key)) is not None:
                followed.deleted.append(_Deletion(obj.key, obj.uid, self._newest))
                followed.look_again(obj.key)

    def _expecting(self, resource: Resource, key: Key) -> _Followed | None:
        followed = self._followed.get(resource)
        return followed if followed is not None and followed.shows(key) else None

    # What the caches show; called once the cache has the change.

    def follow(self, resource: Resource, look_up: LookUp, shows: Callable[[Key], bool] = lambda key: True) -> None:
        """Expect writes of a resource in the cache that `look_up` reads; `shows` says which keys the cache follows."""
        with self._lock:
            self._followed[resource] = _Followed(look_up, shows)

    def changed(self, resource: Resource, key: Key, revision: Revision) -> None:
        """Note that a cache shows a change of one object, and all changes before it."""
        with self._lock:
            self._followed[resource].come_to(revision)
            self._followed[resource].look_again(key)

    def progressed(self, resource: Resource, revision: Revision) -> None:
        """Note that a cache shows all changes up to a revision."""
        with self._lock:
            self._followed[resource].come_to(revision)

    def listed(self, resource: Resource, revision: Revision) -> None:
        """Note that a list of a revision replaced a cache; revision 0: it is not served, forget its writes."""
        with self._lock:
            followed = self._followed[resource]
            followed.come_to(revision)
            followed.look_again()
            if not revision:
                followed.forget()

    def shown(self) -> Revision:
        """Return the revision up to which the caches show every write of this process."""
        with self._lock:
            waiting = [oldest for each in self._followed.values() if (oldest := each.oldest()) is not None]
            return min(waiting) - 1 if waiting else self._newest

    def newest(self) -> Revision:
        """Return the revision of the newest write of this process."""
        with self._lock:
            return self._newest
