"""Stores the oldest revision that API clients may read as an object in the log; Kubernetes compacts etcd instead.

Guarantees: the log keeps its events; only the API answers 410 (Expired) for older revisions. The oldest revision never
decreases. All servers of a log use the same oldest revision, even after a restart, because the log stores this
revision. (kube-apiserver stores its oldest revision in etcd under `compact_rev_key`.)
"""

from __future__ import annotations

from typing import Any, Final, Protocol

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import INTERNAL_API_VERSION, INTERNAL_GROUP, Key, Resource, Revision

API_COMPACTIONS: Final = Resource(INTERNAL_GROUP, "apicompactions")
OLDEST: Final = Key("", "oldest")
"""The key of the only object of the resource `API_COMPACTIONS`."""


class _Objects(Protocol):
    def get(self, resource: Resource, key: Key) -> Object | None: ...


def oldest_for_clients(objects: _Objects) -> Revision:
    """Return the oldest revision that API clients may read; 0 if there was no compaction."""
    obj = objects.get(API_COMPACTIONS, OLDEST)
    return int(obj.to_dict()["oldestRevision"]) if obj is not None else 0


def compaction_object(revision: Revision, metadata: dict[str, Any]) -> Object:
    """Return the object that makes `revision` the oldest revision that API clients may read."""
    head = {"kind": "ApiCompaction", "apiVersion": INTERNAL_API_VERSION, "metadata": metadata}
    return Object.from_dict({**head, "oldestRevision": revision})
