"""Lets the authenticators read objects of the backend, although the backend is created after the authenticators.

Guarantees: before the call of `follow`, `find` returns None for every object, so that no token is valid.
"""

from __future__ import annotations

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.server import Backend


class LateBackend:
    """Reads objects from a backend that `follow` sets. Only the event loop's thread may use the instance."""

    def __init__(self) -> None:
        """Create an instance without a backend."""
        self._backend: Backend | None = None

    def follow(self, backend: Backend) -> None:
        """Read objects from `backend` from now on."""
        self._backend = backend

    def find(self, resource: Resource, key: Key) -> Object | None:
        """Return the current state of an object; None if the object does not exist."""
        return None if self._backend is None else self._backend.engine.cacher.get(resource, key)

    def use(self, secret: Object) -> None:
        """Record that the token in a Secret was used."""
        if self._backend is not None:
            self._backend.last_used.note(secret)
