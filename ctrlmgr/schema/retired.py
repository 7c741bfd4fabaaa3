"""Versions that Kubernetes 1.36 still knows and no longer serves, by kind.

Guarantees: a body in such a version is known for what it is, and refused because another version was asked for; a body
in any other version that is not served is of no known kind.

Source: kubernetes `pkg/api/legacyscheme`, that is the `install` packages of all groups.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_RBAC = ("rbac.authorization.k8s.io/v1alpha1", "rbac.authorization.k8s.io/v1beta1")
_FLOWS = tuple(f"flowcontrol.apiserver.k8s.io/v1beta{n}" for n in (1, 2, 3))
_APPS = ("apps/v1beta1", "apps/v1beta2")
_ADMISSION = ("admissionregistration.k8s.io/v1beta1",)
_STORAGE = ("storage.k8s.io/v1beta1",)

_RETIRED: Final[Mapping[str, tuple[str, ...]]] = {
    "APIService": ("apiregistration.k8s.io/v1beta1",),
    "CSIDriver": _STORAGE,
    "CSINode": _STORAGE,
    "CSIStorageCapacity": _STORAGE,
    "CertificateSigningRequest": ("certificates.k8s.io/v1beta1",),
    "ClusterRole": _RBAC,
    "ClusterRoleBinding": _RBAC,
    "ControllerRevision": _APPS,
    "CronJob": ("batch/v1beta1",),
    "CustomResourceDefinition": ("apiextensions.k8s.io/v1beta1",),
    "DaemonSet": ("apps/v1beta2", "extensions/v1beta1"),
    "Deployment": (*_APPS, "extensions/v1beta1"),
    "EndpointSlice": ("discovery.k8s.io/v1beta1",),
    "Event": ("events.k8s.io/v1beta1",),
    "FlowSchema": _FLOWS,
    "HorizontalPodAutoscaler": ("autoscaling/v2beta1", "autoscaling/v2beta2"),
    "Ingress": ("extensions/v1beta1", "networking.k8s.io/v1beta1"),
    "IngressClass": ("networking.k8s.io/v1beta1",),
    "Lease": ("coordination.k8s.io/v1beta1",),
    "LocalSubjectAccessReview": ("authorization.k8s.io/v1beta1",),
    "MutatingWebhookConfiguration": _ADMISSION,
    "NetworkPolicy": ("extensions/v1beta1",),
    "PodDisruptionBudget": ("policy/v1beta1",),
    "PriorityClass": ("scheduling.k8s.io/v1alpha1", "scheduling.k8s.io/v1beta1"),
    "PriorityLevelConfiguration": _FLOWS,
    "ReplicaSet": ("apps/v1beta2", "extensions/v1beta1"),
    "Role": _RBAC,
    "RoleBinding": _RBAC,
    "RuntimeClass": ("node.k8s.io/v1alpha1", "node.k8s.io/v1beta1"),
    "SelfSubjectAccessReview": ("authorization.k8s.io/v1beta1",),
    "SelfSubjectRulesReview": ("authorization.k8s.io/v1beta1",),
    "StatefulSet": _APPS,
    "StorageClass": _STORAGE,
    "SubjectAccessReview": ("authorization.k8s.io/v1beta1",),
    "TokenReview": ("authentication.k8s.io/v1beta1",),
    "ValidatingWebhookConfiguration": _ADMISSION,
    "VolumeAttachment": _STORAGE,
}


def is_retired(api_version: str, kind: str) -> bool:
    """Say whether a version of a kind is known and no longer served."""
    return api_version in _RETIRED.get(kind, ())
