"""The cluster role aggregation controller: keeps the rules of aggregated ClusterRoles equal to those they select.

Guarantees:
- Rules are server-side applied by `clusterrole-aggregation-controller`, by force: what another client writes into the
  rules of an aggregated role is put right, everything else about it is left alone.
- Any change of any ClusterRole has all aggregated ones looked at; one that has its rules is not written.

Rules: `pkg/controller/clusterroleaggregation/clusterroleaggregation_controller.go`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.client import EngineClient
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.clusterrole_aggregation import DESCRIPTOR
from ctrlmgr.controllers.clusterrole_aggregation.decide import desired_rules, is_aggregated
from ctrlmgr.controllers.descriptor import ControllerContext, NoOptions
from ctrlmgr.informer import Change, Lister
from ctrlmgr.manager import Controller, Watch

CONTROLLER_NAME: Final = DESCRIPTOR.name
CLUSTER_ROLES: Final = Resource("rbac.authorization.k8s.io", "clusterroles")

_WORKERS: Final = 5


class ClusterRoleAggregator:
    """Sees to the rules of the ClusterRole that is its key."""

    def __init__(self, roles: Lister) -> None:
        """Read from `roles`."""
        self._roles = roles

    def reconcile(self, key: Key, client: EngineClient) -> None:
        """Apply the rules if they are not what they should be; raises what `client` raises."""
        role = self._roles.get(key)
        if role is None:
            return
        rules = desired_rules(role, self._roles.list())
        if rules is None:
            return
        metadata = {"name": role.name, "uid": role.uid}  # the uid, so that a role that has just gone is not made anew
        head = {"kind": "ClusterRole", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": metadata}
        # Without a rule nothing is said of rules: what others gave the role stays, as in Kubernetes.
        client.apply(Object.from_dict({**head, **({"rules": rules} if rules else {})}), CONTROLLER_NAME, force=True)


def build(context: ControllerContext, options: NoOptions) -> Controller:
    """Build it from what its descriptor declares."""
    roles = context.informers.informer(CLUSTER_ROLES)

    def aggregated(change: Change) -> Iterable[Key]:
        """Return every aggregated role, whichever has changed: their number is small, and chains are made so."""
        return [role.key for role in roles.lister.list() if is_aggregated(role)]

    watches = [Watch(roles, aggregated, after_sync=True)]
    return assemble(DESCRIPTOR, context, ClusterRoleAggregator(roles.lister), watches, workers=_WORKERS)
