"""Holds volumes and claims in the state that they will have after the writes of bindings in progress.

The guarantees are those of kube-scheduler's assume cache. Decisions read the assumed state of an object until the
informers' cache contains a newer revision of the object, or until the write fails. Only one thread at a time may use an
instance.
"""

from __future__ import annotations

from collections.abc import Iterable

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource


class AssumedObjects:
    """Holds the assumed states of objects that are being written, or whose writes have not reached the caches yet."""

    def __init__(self) -> None:
        """Create a collection without objects."""
        self._assumed: dict[tuple[Resource, Key], Object] = {}

    def newest(self, cached: Object | None) -> Object | None:
        """Return the assumed state of an object, given its state in a cache."""
        if cached is None or not self._assumed:
            return cached
        place = cached.resource, cached.key
        assumed = self._assumed.get(place)
        if assumed is None:
            return cached
        if assumed.uid != cached.uid or assumed.revision < cached.revision:
            del self._assumed[place]
            return cached
        return assumed

    def put(self, obj: Object) -> None:
        """Assume the state of an object that is being written, or that was written just now."""
        self._assumed[obj.resource, obj.key] = obj

    def restore(self, objects: Iterable[Object]) -> None:
        """Forget the assumed states of objects."""
        for each in objects:
            self._assumed.pop((each.resource, each.key), None)

    def clear(self) -> None:
        """Forget all assumed states."""
        self._assumed.clear()
