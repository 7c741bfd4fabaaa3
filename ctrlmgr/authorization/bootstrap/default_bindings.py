"""The bindings of bootstrap roles, and the roles and bindings in system namespaces.

Source: `bootstrappolicy/{policy,namespace_policy}.go` of Kubernetes 1.36.
"""

from __future__ import annotations

from ctrlmgr.authentication.user import AUTHENTICATED, MASTERS, UNAUTHENTICATED
from ctrlmgr.authentication.user_names import SERVICE_ACCOUNTS
from ctrlmgr.authorization.bootstrap.component_roles import COMPONENT_ROLES
from ctrlmgr.authorization.bootstrap.controller_roles import CONTROLLER_ROLES
from ctrlmgr.authorization.bootstrap.declaring import Binding, Role, group, rule, service_account, user
from ctrlmgr.authorization.bootstrap.user_roles import USER_ROLES

_SYSTEM, _PUBLIC = "kube-system", "kube-public"
_MANAGER, _SCHEDULER = "kube-controller-manager", "kube-scheduler"
_PREFIX = "system:controller:"
_WRITES_EVENTS = rule("create patch update", "core events.k8s.io", "events")


def controller_role(controller: str) -> str:
    """Return the name of a controller's ClusterRole."""
    return f"{_PREFIX}{controller}"


def _leader_locking(component: str) -> Role:
    return Role(
        f"system::leader-locking-{component}",
        rule("create get list update watch", "coordination.k8s.io", "leases"),
        rule("create get list update watch", "coordination.k8s.io", "leasecandidates"),
        namespace=_SYSTEM,
    )


CLUSTER_ROLES = (*USER_ROLES, *COMPONENT_ROLES, *CONTROLLER_ROLES)
"""All ClusterRoles that every cluster contains."""

CLUSTER_ROLE_BINDINGS = (
    Binding("cluster-admin", group(MASTERS)),
    Binding("system:monitoring", group("system:monitoring")),
    Binding("system:discovery", group(AUTHENTICATED)),
    Binding("system:basic-user", group(AUTHENTICATED)),
    Binding("system:public-info-viewer", group(AUTHENTICATED), group(UNAUTHENTICATED)),
    Binding("system:node-proxier", user("system:kube-proxy")),
    Binding("system:kube-controller-manager", user(f"system:{_MANAGER}")),
    Binding("system:kube-dns", service_account("kube-dns")),
    Binding("system:kube-scheduler", user(f"system:{_SCHEDULER}")),
    Binding("system:volume-scheduler", user(f"system:{_SCHEDULER}")),
    Binding("system:node"),  # without subjects, because the Node authorizer decides on requests of nodes
    Binding("system:service-account-issuer-discovery", group(SERVICE_ACCOUNTS)),
    *(Binding(role.name, service_account(role.name.removeprefix(_PREFIX))) for role in CONTROLLER_ROLES),
)
"""All ClusterRoleBindings that every cluster contains."""

ROLES = (
    Role(
        "extension-apiserver-authentication-reader",
        rule("get list watch", "core", "configmaps", names="extension-apiserver-authentication"),
        namespace=_SYSTEM,
    ),
    _leader_locking(_MANAGER),
    _leader_locking(_SCHEDULER),
    Role(controller_role("bootstrap-signer"), rule("get list watch", "core", "secrets"), namespace=_SYSTEM),
    Role(controller_role("cloud-provider"), rule("create get list watch", "core", "configmaps"), namespace=_SYSTEM),
    Role(
        controller_role("token-cleaner"),
        rule("delete get list watch", "core", "secrets"),
        _WRITES_EVENTS,
        namespace=_SYSTEM,
    ),
    Role(
        controller_role("bootstrap-signer"),
        rule("get list watch", "core", "configmaps"),
        rule("update", "core", "configmaps", names="cluster-info"),
        _WRITES_EVENTS,
        namespace=_PUBLIC,
    ),
)
"""All Roles that every cluster contains."""

ROLE_BINDINGS = (
    Binding(
        "system::extension-apiserver-authentication-reader",
        user(f"system:{_MANAGER}"),
        user(f"system:{_SCHEDULER}"),
        namespace=_SYSTEM,
        role="extension-apiserver-authentication-reader",
    ),
    Binding(
        f"system::leader-locking-{_MANAGER}",
        user(f"system:{_MANAGER}"),
        service_account(_MANAGER),
        service_account("leader-election-controller"),
        namespace=_SYSTEM,
    ),
    Binding(
        f"system::leader-locking-{_SCHEDULER}",
        user(f"system:{_SCHEDULER}"),
        service_account(_SCHEDULER),
        namespace=_SYSTEM,
    ),
    Binding(controller_role("bootstrap-signer"), service_account("bootstrap-signer"), namespace=_SYSTEM),
    Binding(controller_role("cloud-provider"), service_account("cloud-provider"), namespace=_SYSTEM),
    Binding(controller_role("token-cleaner"), service_account("token-cleaner"), namespace=_SYSTEM),
    Binding(controller_role("bootstrap-signer"), service_account("bootstrap-signer"), namespace=_PUBLIC),
)
"""All RoleBindings that every cluster contains."""
