"""Finds the last edit of a workload by a user, that is, not by a controller.

The last user edit is a cause of later writes by the workload's controller. A rollout continues when kubelets report
pods as ready, but a user's edit of the workload started the rollout. Therefore the user's edit is a cause too, in
addition to the changes that triggered the reconcile.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ctrlmgr.api.resource import Resource, Revision
from ctrlmgr.controllers import registry
from ctrlmgr.inspection.database import Database

WORKLOADS: Final[Mapping[str, Resource]] = {
    each.name: each.shared_kinds[0] for each in registry.ALL if each.shared_kinds
}
"""The workload kind that each controller reconciles, by the controller's name."""

_NEWEST = """
SELECT max(e.revision) FROM object AS o JOIN event AS e ON e.object_id = o.id
WHERE o.resource = :resource AND o.namespace = :namespace AND o.name = :name
    AND e.reconcile_id = 0 AND e.revision < :before"""


def latest_user_edit(database: Database, controller: str, key: str, *, before: Revision) -> Revision | None:
    """Return the last user edit of the workload `key` before a revision; None if `key` is not that of a workload."""
    resource = WORKLOADS.get(controller)
    namespace, _, name = key.rpartition("/")
    if resource is None or not namespace:
        return None
    place = {"resource": str(resource), "namespace": namespace, "name": name, "before": before}
    found: Revision | None = database.query(_NEWEST, place).rows[0][0]
    return found
