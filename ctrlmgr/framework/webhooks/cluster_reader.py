"""Reads objects of any kind from a cluster, for admission functions that use `Write.cache`.

Guarantees: each call is a request whose response is the newest state. The rate limit of the controllers does not apply
to these requests, because the API server waits for the admission function.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctrlmgr.api.resource import Key
from ctrlmgr.framework.cached_objects import Cache, read
from ctrlmgr.framework.class_declaration import declaration_of
from ctrlmgr.framework.remote.api_server_log import RemoteLog


class ClusterReader(Cache):
    """A cluster in the form of a cache of all kinds; thread-safe."""

    def __init__(self, event_log: RemoteLog) -> None:
        """Create a reader of objects in `event_log`."""
        super().__init__({}, "")
        self._log = event_log

    def get(self, kind: Any, name: str, namespace: str = "") -> Any:
        """Return one object, None if it does not exist; raises `ApiError` if the request fails."""
        declaration = declaration_of(kind)
        obj = self._log.get(declaration.resource, Key(namespace, name))
        return None if obj is None else read(declaration, obj)

    def list(self, kind: Any, namespace: str | None = None, labels: Mapping[str, str] | None = None) -> Any:
        """Return the objects of a namespace (None for all namespaces) that have all these labels, by key.

        Raises `ApiError` if the request fails.
        """
        declaration, desired = declaration_of(kind), (labels or {}).items()
        found = self._log.snapshot(declaration.resource, namespace=namespace).objects
        return [read(declaration, obj) for obj in found if desired <= obj.labels.items()]
