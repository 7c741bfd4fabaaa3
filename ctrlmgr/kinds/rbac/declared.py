"""The declarations of the kinds of `rbac.authorization.k8s.io`."""

from __future__ import annotations

from ctrlmgr.kinds.kind_declaration import Declaration
from ctrlmgr.kinds.rbac import printers
from ctrlmgr.kinds.rbac.roles import RoleBindingStrategy, RoleStrategy

_V1 = "rbac.authorization.k8s.io/v1"

KINDS = (
    Declaration(_V1, "ClusterRole", strategy=RoleStrategy(namespaced=False)),
    Declaration(_V1, "ClusterRoleBinding", strategy=RoleBindingStrategy(namespaced=False), printer=printers.BINDING),
    Declaration(_V1, "Role", strategy=RoleStrategy(namespaced=True)),
    Declaration(_V1, "RoleBinding", strategy=RoleBindingStrategy(namespaced=True), printer=printers.BINDING),
)
