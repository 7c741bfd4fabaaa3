"""The slices that one controller manages, including its own writes that the cache does not contain yet.

Slices have generated names. If a controller creates a slice and its cache does not contain the slice yet, the
controller would create a second slice. The method `list` has the guarantees of `OwnWrites`. The method `keys` returns
no keys for changes that this process wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ctrlmgr.api.discovery import MANAGED_BY, SERVICE_NAME
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Revision
from ctrlmgr.controllers.own_writes import OwnWrites
from ctrlmgr.informer import Change, Informer


class OwnSlices:
    """The slices that have one `managed-by` label.

    Another label of each slice contains its Service or Endpoints object. The slices are grouped by this object.

    An instance is thread-safe in the same way as `OwnWrites`.
    """

    def __init__(self, slices: Informer, manager: str, seen: Callable[[], Revision]) -> None:
        """Create an index of `slices` by their owners; the caller must do this before `slices` syncs.

        The revision of the cache is at least the revision that `seen` returns.
        """
        self._index = f"kept by {manager}"
        slices.add_index(self._index, lambda obj: map(str, self._owners(obj)))
        self._slices = slices.lister
        self._manager = manager
        self._seen = seen
        self.writes = OwnWrites()

    def _owners(self, obj: Object | None) -> Iterable[Key]:
        """Return the key of a slice's Service or Endpoints object, if this manager manages the slice."""
        if obj is None or obj.labels.get(MANAGED_BY) != self._manager:
            return ()
        name = obj.labels.get(SERVICE_NAME)
        return (Key(obj.namespace, name),) if name else ()

    def list(self, owner: Key) -> list[Object]:
        """Return the slices of `owner`, sorted by key; slices that are being deleted are left out."""
        seen = self._seen()  # Read the revision before the cache; the cache can then only be newer.
        found = {obj.key: obj for obj in self._slices.by_index(self._index, str(owner))}
        self.writes.overlay(owner, found, seen)
        return [obj for _, obj in sorted(found.items()) if not obj.is_terminating]

    def is_free(self, key: Key) -> bool:
        """Return whether no slice with this name is in the cache."""
        return self._slices.get(key) is None

    def keys(self, change: Change) -> Iterable[Key]:
        """Return the owners to reconcile after a slice has changed; return none if this process changed the slice."""
        owners = {*self._owners(change.old), *self._owners(change.new)}
        return () if any(self.writes.is_own(owner, change) for owner in owners) else sorted(owners)
