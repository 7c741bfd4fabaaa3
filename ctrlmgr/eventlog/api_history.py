"""The oldest revision that API clients may read, as an object of the log; etcd's counterpart is its compaction.

Guarantees: the log keeps its history; only the API answers 410 for older revisions. The revision never decreases. All
servers of a log and later ones use the same, because it is in the log (upstream's is the key `compact_rev_key`).
"""

from __future__ import annotations

from typing import Any, Final, Protocol

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import INTERNAL_API_VERSION, INTERNAL_GROUP, Key, Resource, Revision

API_COMPACTIONS: Final = Resource(INTERNAL_GROUP, "apicompactions")
OLDEST: Final = Key("", "oldest")
"""The only object of `API_COMPACTIONS`."""


class _Objects(Protocol):
    def get(self, resource: Resource, key: Key) -> Object | None: ...


def oldest_for_clients(objects: _Objects) -> Revision:
    """Return the oldest revision that API clients may read, 0 without a compaction."""
    obj = objects.get(API_COMPACTIONS, OLDEST)
    return int(obj.to_dict()["oldestRevision"]) if obj is not None else 0


def compaction_object(revision: Revision, metadata: dict[str, Any]) -> Object:
    """Return the object that makes `revision` the oldest one."""
    head = {"kind": "ApiCompaction", "apiVersion": INTERNAL_API_VERSION, "metadata": metadata}
    return Object.from_dict({**head, "oldestRevision": revision})
