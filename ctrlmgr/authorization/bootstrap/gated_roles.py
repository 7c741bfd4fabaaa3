"""The bootstrap roles and rules that exist only if a certain feature gate is on; these gates are off by default.

Source: `bootstrappolicy/{controller_policy,policy}.go` of Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from ctrlmgr.authorization.bootstrap.declaring import Binding, Role, group, rule, service_account
from ctrlmgr.authorization.bootstrap.default_bindings import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, controller_role
from ctrlmgr.authorization.rbac.policy_rules import PolicyRule


class GatedRole(NamedTuple):
    """A ClusterRole that needs a feature gate, and the controller or group to which it is bound."""

    gate: str
    account: str
    """The name of the controller's ServiceAccount; "" if the role is bound to a group."""
    role: Role
    group: str = ""

    @property
    def binding(self) -> Binding:
        """The ClusterRoleBinding that grants the ClusterRole."""
        return Binding(self.role.name, service_account(self.account) if self.account else group(self.group))


_NODE: Final = "system:node"
_PUBLISHER: Final = "kube-apiserver-serving-clustertrustbundle-publisher"

GATED_ROLES: Final = (
    GatedRole(
        "ClusterTrustBundle",
        _PUBLISHER,
        Role(
            controller_role(_PUBLISHER),
            rule("attest", "certificates.k8s.io", "signers", names="kubernetes.io/kube-apiserver-serving"),
            rule("create delete list update watch", "certificates.k8s.io", "clustertrustbundles"),
            rule("create patch update", "core events.k8s.io", "events"),
        ),
    ),
    GatedRole(
        "ClusterTrustBundle",
        "",
        Role(
            "system:cluster-trust-bundle-discovery",
            rule("get list watch", "certificates.k8s.io", "clustertrustbundles"),
        ),
        group="system:serviceaccounts",
    ),
    GatedRole(
        "DRAResourcePoolStatus",
        "resourcepoolstatusrequest-controller",
        Role(
            controller_role("resourcepoolstatusrequest-controller"),
            rule("delete get list watch", "resource.k8s.io", "resourcepoolstatusrequests"),
            rule("patch update", "resource.k8s.io", "resourcepoolstatusrequests/status"),
            rule("get list watch", "resource.k8s.io", "resourceslices"),
            rule("get list watch", "resource.k8s.io", "resourceclaims"),
            rule("create patch update", "core events.k8s.io", "events"),
        ),
    ),
    GatedRole(
        "GenericWorkload",
        "podgroup-protection-controller",
        Role(
            controller_role("podgroup-protection-controller"),
            rule("get list update watch", "scheduling.k8s.io", "podgroups"),
            rule("get list watch", "core", "pods"),
        ),
    ),
    GatedRole(
        "PodCertificateRequest",
        "podcertificaterequestcleaner",
        Role(
            controller_role("podcertificaterequestcleaner"),
            rule("delete get list watch", "certificates.k8s.io", "podcertificaterequests"),
        ),
    ),
    GatedRole(
        "StorageVersionAPI",
        "storage-version-garbage-collector",
        Role(
            controller_role("storage-version-garbage-collector"),
            rule("get list watch", "coordination.k8s.io", "leases"),
            rule("delete get list patch update watch", "internal.apiserver.k8s.io", "storageversions"),
            rule("get patch update", "internal.apiserver.k8s.io", "storageversions/status"),
        ),
    ),
    GatedRole(
        "StorageVersionMigrator",
        "storage-version-migrator-controller",
        Role(
            controller_role("storage-version-migrator-controller"),
            rule("create list patch", "*", "*"),
            rule("get", "apiextensions.k8s.io", "customresourcedefinitions"),
            rule("patch", "apiextensions.k8s.io", "customresourcedefinitions/status"),
            rule("update", "storagemigration.k8s.io", "storageversionmigrations/status"),
        ),
    ),
)


_READ, _WRITE = "get list watch", "create delete deletecollection patch update"

GATED_RULES: Final[Mapping[str, Mapping[str, Sequence[PolicyRule]]]] = {
    "ClusterTrustBundle": {_NODE: (rule("get list watch", "certificates.k8s.io", "clustertrustbundles"),)},
    "PodCertificateRequest": {
        _NODE: (rule("create get list watch", "certificates.k8s.io", "podcertificaterequests"),),
    },
    "DRADeviceTaintRules": {
        controller_role("device-taint-eviction-controller"): (
            rule("patch update", "resource.k8s.io", "devicetaintrules/status"),
            rule("get list watch", "resource.k8s.io", "devicetaintrules"),
        ),
        "system:kube-scheduler": (rule("get list watch", "resource.k8s.io", "devicetaintrules"),),
    },
    "GenericWorkload": {
        "system:aggregate-to-view": (rule(_READ, "scheduling.k8s.io", "podgroups podgroups/status workloads"),),
        "system:aggregate-to-edit": (rule(_WRITE, "scheduling.k8s.io", "podgroups workloads"),),
        "system:kube-scheduler": (
            rule(_READ, "scheduling.k8s.io", "podgroups"),
            rule("patch update", "scheduling.k8s.io", "podgroups/status"),
        ),
    },
}
"""Additional rules of roles, by the feature gate that enables the rules and by the name of the role."""


def cluster_roles(is_on: Callable[[str], bool]) -> Sequence[Role]:
    """Return all ClusterRoles that a cluster contains; `is_on` returns whether a feature gate is on."""
    more = [rules for gate, rules in GATED_RULES.items() if is_on(gate)]
    roles = (*CLUSTER_ROLES, *(each.role for each in GATED_ROLES if is_on(each.gate)))
    return [each.with_rules(*(one for rules in more for one in rules.get(each.name, ()))) for each in roles]


def cluster_role_bindings(is_on: Callable[[str], bool]) -> Sequence[Binding]:
    """Return all ClusterRoleBindings that a cluster contains; `is_on` returns whether a feature gate is on."""
    return (*CLUSTER_ROLE_BINDINGS, *(each.binding for each in GATED_ROLES if is_on(each.gate)))


def node_rules(is_on: Callable[[str], bool]) -> Sequence[PolicyRule]:
    """Return the rules of all nodes; `is_on` returns whether a feature gate is on."""
    return next(each.rules for each in cluster_roles(is_on) if each.name == _NODE)
