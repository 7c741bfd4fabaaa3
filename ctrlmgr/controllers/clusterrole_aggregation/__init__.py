"""The ClusterRole aggregation controller: copies rules from ClusterRoles into the roles that select them by label."""

from __future__ import annotations

from ctrlmgr.api.resource import Resource
from ctrlmgr.controllers.descriptor import ControllerDescriptor, NoOptions

DESCRIPTOR = ControllerDescriptor(
    name="clusterrole-aggregation-controller",
    aliases=("clusterrole-aggregation",),
    does="copies rules into ClusterRoles that have an `aggregationRule`, from the ClusterRoles that it selects",
    watches=(Resource("rbac.authorization.k8s.io", "clusterroles"),),
    builder="ctrlmgr.controllers.clusterrole_aggregation.controller:build",
    options=NoOptions,
)
"""The declaration of the controller: its name and the function that builds it."""
