"""Lists the versions of kinds that Kubernetes' scheme contains, but that Kubernetes does not serve by default.

For a body in one of these versions, the error message names the version. For any other unknown version, the error
message says that the kind is unknown.

Source: the schemes of `pkg/apis/*/install` of Kubernetes 1.36.
"""

from __future__ import annotations

from typing import Final

_ROLES: Final = ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
_FLOW_CONTROL: Final = ("FlowSchema", "PriorityLevelConfiguration")
_WORKLOADS: Final = ("ControllerRevision", "Deployment", "StatefulSet")

_KINDS: Final = {
    "apiextensions.k8s.io/v1beta1": ("CustomResourceDefinition",),
    "apiregistration.k8s.io/v1beta1": ("APIService",),
    "apps/v1beta1": (*_WORKLOADS, "Scale"),
    "apps/v1beta2": (*_WORKLOADS, "DaemonSet", "ReplicaSet", "Scale"),
    "authentication.k8s.io/v1alpha1": ("SelfSubjectReview",),
    "authentication.k8s.io/v1beta1": ("SelfSubjectReview", "TokenReview"),
    "authorization.k8s.io/v1beta1": (
        "LocalSubjectAccessReview",
        "SelfSubjectAccessReview",
        "SelfSubjectRulesReview",
        "SubjectAccessReview",
    ),
    "batch/v1beta1": ("CronJob",),
    "certificates.k8s.io/v1beta1": ("CertificateSigningRequest",),
    "flowcontrol.apiserver.k8s.io/v1beta1": _FLOW_CONTROL,
    "flowcontrol.apiserver.k8s.io/v1beta2": _FLOW_CONTROL,
    "flowcontrol.apiserver.k8s.io/v1beta3": _FLOW_CONTROL,
    "policy/v1beta1": ("Eviction", "PodDisruptionBudget"),
    "rbac.authorization.k8s.io/v1alpha1": _ROLES,
    "rbac.authorization.k8s.io/v1beta1": _ROLES,
}


def is_former(kind: str, api_version: str) -> bool:
    """Return whether Kubernetes' scheme contains the kind in the given version, although ctrlmgr does not serve it."""
    return kind in _KINDS.get(api_version, ())
