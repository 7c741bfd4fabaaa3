"""Tracks which writes of this process the caches contain, like Kubernetes' `ConsistencyStore`.

Guarantees:

- A cache contains a write once the cache has reached the revision of the write. The response to a deletion has no
  revision. Therefore a cache counts as containing a deletion when the deleted object is missing in the cache, or is
  terminating there.
- A write's response and its watch event may arrive in either order. A write that changed nothing causes no watch event.
  Its response has an old revision, which the cache has already reached or will reach.
- The store does not wait for writes that no cache will contain. The caches never receive writes in namespaces or of
  resources that no cache follows, and writes of resources that are no longer served.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource, Revision

LookUp = Callable[[Key], Object | None]
"""A function that returns a cached object by its key."""


class _Deletion(NamedTuple):
    """A deletion that was acknowledged, and its position among the writes."""

    key: Key
    uid: str
    revision: Revision


class _FollowedResource:
    """One resource that a cache follows; the lock of the `ConsistencyStore` guards it."""

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
        """Drop recorded deletions that the cache now contains; if `key` is given, only deletions of this object."""
        if self.deleted:
            self.deleted = [each for each in self.deleted if key not in (None, each.key) or self._holds(each)]

    def _holds(self, deletion: _Deletion) -> bool:
        found = self.look_up(deletion.key)
        return found is not None and found.uid == deletion.uid and not found.is_terminating

    def forget(self) -> None:
        self.written, self.deleted = [], []

    def oldest(self) -> Revision | None:
        """Return the revision of the oldest write that the cache does not contain.

        The method returns None if the cache contains all writes.
        """
        return min([*self.written, *(each.revision for each in self.deleted)], default=None)


class ConsistencyStore:
    """Tracks which writes of this process the caches contain; thread-safe."""

    def __init__(self) -> None:
        """Start without any recorded writes and without followed resources."""
        self._lock = threading.Lock()
        self._followed: dict[Resource, _FollowedResource] = {}
        self._newest: Revision = 0

    # The writes of the process.

    def wrote(self, resource: Resource, key: Key, revision: Revision) -> None:
        """Record that a write was acknowledged with a revision."""
        with self._lock:
            self._newest = max(self._newest, revision)
            if (followed := self._expecting(resource, key)) is not None:
                followed.wrote(revision)

    def deleted(self, obj: Object) -> None:
        """Record that a deletion was acknowledged."""
        with self._lock:
            self._newest += 1  # The position is after every write that was acknowledged before.
            if (followed := self._expecting(obj.resource, obj.key)) is not None:
                followed.deleted.append(_Deletion(obj.key, obj.uid, self._newest))
                followed.look_again(obj.key)

    def _expecting(self, resource: Resource, key: Key) -> _FollowedResource | None:
        followed = self._followed.get(resource)
        return followed if followed is not None and followed.shows(key) else None

    # The state of the caches; a caller calls these methods after the cache has applied the change.

    def follow(self, resource: Resource, look_up: LookUp, shows: Callable[[Key], bool] = lambda key: True) -> None:
        """Track writes of a resource until the cache that `look_up` reads contains them.

        The function `shows` returns whether the cache follows a key.
        """
        with self._lock:
            self._followed[resource] = _FollowedResource(look_up, shows)

    def changed(self, resource: Resource, key: Key, revision: Revision) -> None:
        """Record that a cache contains a change of one object, and all changes before it."""
        with self._lock:
            self._followed[resource].come_to(revision)
            self._followed[resource].look_again(key)

    def progressed(self, resource: Resource, revision: Revision) -> None:
        """Record that a cache contains all changes up to a revision."""
        with self._lock:
            self._followed[resource].come_to(revision)

    def listed(self, resource: Resource, revision: Revision) -> None:
        """Record that a list has replaced the content of a cache.

        The revision 0 means that the resource is not served; its recorded writes are then dropped.
        """
        with self._lock:
            followed = self._followed[resource]
            followed.come_to(revision)
            followed.look_again()
            if not revision:
                followed.forget()

    def shown(self) -> Revision:
        """Return the revision up to which the caches contain every write of this process."""
        with self._lock:
            waiting = [oldest for each in self._followed.values() if (oldest := each.oldest()) is not None]
            return min(waiting) - 1 if waiting else self._newest

    def newest(self) -> Revision:
        """Return the revision of the newest write of this process."""
        with self._lock:
            return self._newest
