"""What a workload's author asked for, as a cause of what its controller does later on.

A rollout goes on because pods become ready, which kubelets report; but what is rolled out, a person wanted. So beside
the changes that a reconcile answered, the newest edit of the workload that was not a reconcile's is a cause as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ctrlmgr.api.resource import Resource, Revision
from ctrlmgr.controllers import registry
from ctrlmgr.inspection.database import Database

SEEN_TO: Final[Mapping[str, Resource]] = {each.name: each.shared_kinds[0] for each in registry.ALL if each.shared_kinds}
"""The workloads that a controller sees to, by its name."""

_NEWEST = """
SELECT max(e.revision) FROM object AS o JOIN event AS e ON e.object_id = o.id
WHERE o.resource = :resource AND o.namespace = :namespace AND o.name = :name
    AND e.reconcile_id = 0 AND e.revision < :before"""


def wish(database: Database, controller: str, key: str, *, before: Revision) -> Revision | None:
    """Return the newest edit of what a reconcile was about, before what it wrote; None if that is no workload."""
    resource = SEEN_TO.get(controller)
    namespace, _, name = key.rpartition("/")
    if resource is None or not namespace:
        return None
    place = {"resource": str(resource), "namespace": namespace, "name": name, "before": before}
    found: Revision | None = database.query(_NEWEST, place).rows[0][0]
    return found
