"""What authentication reads of a backend that is made after it: a backend needs to know who may review tokens.

Guarantees: before a backend is followed nothing is found, so that no token counts.
"""

from __future__ import annotations

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.server import Backend


class Followed:
    """The backend to look up objects in, once it is there; used on the event loop."""

    def __init__(self) -> None:
        """Start without one."""
        self._backend: Backend | None = None

    def follow(self, backend: Backend) -> None:
        """Look up objects in `backend` from now on."""
        self._backend = backend

    def find(self, resource: Resource, key: Key) -> Object | None:
        """Return an object as it is now, None if there is none."""
        return None if self._backend is None else self._backend.engine.cacher.get(resource, key)

    def use(self, secret: Object) -> None:
        """Note that the token in a Secret was used."""
        if self._backend is not None:
            self._backend.last_used.note(secret)
