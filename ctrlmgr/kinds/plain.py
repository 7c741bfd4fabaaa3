"""Kinds that differ from the rest in a flag or two only.

The flags are those of the strategies in Kubernetes' `pkg/registry/{admissionregistration,flowcontrol,node,storage,
resource}` and of `apiextensions-apiserver` and `kube-aggregator`; which kinds answer a DELETE with the object
is in the published OpenAPI.
"""

from __future__ import annotations

from ctrlmgr.engine.strategy import Strategy


class AdmissionStrategy(Strategy):
    """The kinds of admissionregistration.k8s.io."""

    allow_unconditional_update = False
    has_generation = True
    any_finalizer = True


class DefinitionStrategy(Strategy):
    """apiextensions.k8s.io/v1 CustomResourceDefinition."""

    allow_unconditional_update = False
    has_generation = True
    any_finalizer = True


class APIServiceStrategy(Strategy):
    """apiregistration.k8s.io/v1 APIService."""

    allow_unconditional_update = False
    any_finalizer = True


class FlowControlStrategy(Strategy):
    """The kinds of flowcontrol.apiserver.k8s.io."""

    allow_unconditional_update = False
    has_generation = True


class GuardedStrategy(Strategy):
    """Kinds that only who has read them may replace."""

    allow_unconditional_update = False


class VolumeStrategy(GuardedStrategy):
    """The kinds of storage.k8s.io that are answered with when they are deleted."""

    returns_deleted = True


class DeviceStrategy(Strategy):
    """The kinds of resource.k8s.io."""

    returns_deleted = True


class CountedDeviceStrategy(DeviceStrategy):
    """Those of them whose changes are counted."""

    has_generation = True


PLAIN: dict[str, Strategy] = {
    "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy": AdmissionStrategy(),
    "admissionregistration.k8s.io/v1/MutatingAdmissionPolicyBinding": AdmissionStrategy(),
    "admissionregistration.k8s.io/v1/MutatingWebhookConfiguration": AdmissionStrategy(),
    "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy": AdmissionStrategy(),
    "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicyBinding": AdmissionStrategy(),
    "admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration": AdmissionStrategy(),
    "apiextensions.k8s.io/v1/CustomResourceDefinition": DefinitionStrategy(),
    "apiregistration.k8s.io/v1/APIService": APIServiceStrategy(),
    "flowcontrol.apiserver.k8s.io/v1/FlowSchema": FlowControlStrategy(),
    "flowcontrol.apiserver.k8s.io/v1/PriorityLevelConfiguration": FlowControlStrategy(),
    "node.k8s.io/v1/RuntimeClass": GuardedStrategy(),
    "resource.k8s.io/v1/DeviceClass": CountedDeviceStrategy(),
    "resource.k8s.io/v1/ResourceClaim": DeviceStrategy(),
    "resource.k8s.io/v1/ResourceClaimTemplate": DeviceStrategy(),
    "resource.k8s.io/v1/ResourceSlice": CountedDeviceStrategy(),
    "storage.k8s.io/v1/CSIDriver": VolumeStrategy(),
    "storage.k8s.io/v1/CSINode": VolumeStrategy(),
    "storage.k8s.io/v1/CSIStorageCapacity": GuardedStrategy(),
    "storage.k8s.io/v1/VolumeAttachment": VolumeStrategy(),
    "storage.k8s.io/v1/VolumeAttributesClass": VolumeStrategy(),
}
