"""The ClusterRole aggregation controller: keeps the rules of aggregated roles equal to the rules of the selected roles.

Guarantees:
- Rules are server-side applied with force, by the field manager `clusterrole-aggregation-controller`. Another client's
  changes of the rules of an aggregated role are reverted; other fields of the role are not changed.
- Any change of any ClusterRole triggers a reconcile of all aggregated ClusterRoles. ClusterRoles with correct rules are
  not written.

Source: `pkg/controller/clusterroleaggregation/clusterroleaggregation_controller.go`.
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
    """Reconciles the rules of a ClusterRole, whose name is the key."""

    def __init__(self, roles: Lister) -> None:
        """Create a reconciler that reads ClusterRoles from the lister `roles`."""
        self._roles = roles

    def reconcile(self, key: Key, client: EngineClient) -> None:
        """Apply the desired rules if the ClusterRole's rules differ.

        Raises the errors of `client` if the write fails.
        """
        role = self._roles.get(key)
        if role is None:
            return
        rules = desired_rules(role, self._roles.list())
        if rules is None:
            return
        # Because the apply contains the uid, the apply cannot create a deleted role again.
        metadata = {"name": role.name, "uid": role.uid}
        head = {"kind": "ClusterRole", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": metadata}
        # If there are no rules, the field is omitted. Therefore rules of other field managers stay, as in Kubernetes.
        client.apply(Object.from_dict({**head, **({"rules": rules} if rules else {})}), CONTROLLER_NAME, force=True)


def build(context: ControllerContext, options: NoOptions) -> Controller:
    """Build the controller from its context and options."""
    roles = context.informers.informer(CLUSTER_ROLES)

    def aggregated(change: Change) -> Iterable[Key]:
        """Return every aggregated role after any change, because aggregated roles are few and may select each other."""
        return [role.key for role in roles.lister.list() if is_aggregated(role)]

    watches = [Watch(roles, aggregated, after_sync=True)]
    return assemble(DESCRIPTOR, context, ClusterRoleAggregator(roles.lister), watches, workers=_WORKERS)
