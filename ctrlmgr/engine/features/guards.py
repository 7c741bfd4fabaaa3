"""The fields that feature gates guard, by type, and the kinds that contain these types.

Source: the `dropDisabled...` functions of Kubernetes' `pkg/api/pod/util.go`, `pkg/api/persistentvolumeclaim/util.go`
and of the strategies in `pkg/registry/*/*/strategy.go`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

Steps = tuple[str, ...]
"""The path to a field: a sequence of names, and of `EACH` for every element of a list or value of a map."""

EACH: Final = "[]"


class Guard(NamedTuple):
    """A rule that drops fields of one type while a gate is off, unless the stored object already uses the feature."""

    gate: str
    fields: tuple[Steps, ...]
    used: tuple[Steps, ...]
    """The fields whose presence shows that the stored object uses the feature.

    If the tuple is empty, the fields are dropped from every written object.
    """
    only_with: Steps = ()
    """A field of the struct. The guard drops nothing from a struct that lacks this field."""
    kept: str = ""
    """A value of the guarded field that is allowed even if the gate is off."""
    prunes: bool = False
    """Whether a struct that becomes empty because its field is dropped is dropped, too."""


def _steps(path: str) -> Steps:
    return tuple(path.replace(EACH, f".{EACH}").split("."))


def _guard(
    gate: str,
    *paths: str,
    used: Sequence[str] | None = None,
    only_with: Steps = (),
    kept: str = "",
    prunes: bool = False,
) -> Guard:
    """Return the guard of the fields at some paths; by default, `used` contains the same paths."""
    shows = paths if used is None else used
    return Guard(gate, tuple(map(_steps, paths)), tuple(map(_steps, shows)), only_with, kept, prunes)


_CONTAINERS: Final = ("containers[]", "initContainers[]", "ephemeralContainers[]")
_STATUSES: Final = ("containerStatuses[]", "initContainerStatuses[]", "ephemeralContainerStatuses[]")
_RESTART: Final = tuple(
    f"{each}[].{field}"
    for each in ("containers", "ephemeralContainers")
    for field in ("restartPolicy", "restartPolicyRules")
)
_INIT_RESTART: Final = ("initContainers[].restartPolicy", "initContainers[].restartPolicyRules")
_ALL_RESTART: Final = ("containers[].restartPolicy", "initContainers[].restartPolicyRules")
_REQUESTS: Final = ("devices.requests[].exactly", "devices.requests[].firstAvailable[]")
_SHARES: Final = (
    "allocation.devices.results[].shareID",
    "allocation.devices.results[].consumedCapacity",
    "devices[].shareID",
)
_OF_POD_GROUPS: Final = {
    "TopologyAwareWorkloadScheduling": ("schedulingConstraints",),
    "DRAWorkloadResourceClaims": ("resourceClaims",),
    "WorkloadAwarePreemption": ("disruptionMode", "priorityClassName", "priority"),
}
_GATES_OF_BINDING_CONDITIONS: Final = ("DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus")
_BINDING_CONDITIONS: Final = tuple(
    f"devices[].{each}" for each in ("bindingConditions", "bindingFailureConditions", "bindsToNode")
)


def _of_each(containers: tuple[str, ...], field: str) -> Iterator[str]:
    return (f"{each}.{field}" for each in containers)


GUARDS: Final[Mapping[str, tuple[Guard, ...]]] = {
    "PodSpec": (
        _guard("PodLevelResources", "resources", used=("resources.requests", "resources.limits")),
        _guard("MatchLabelKeysInPodTopologySpread", "topologySpreadConstraints[].matchLabelKeys"),
        _guard("ClusterTrustBundleProjection", "volumes[].projected.sources[].clusterTrustBundle"),
        _guard("PodCertificateRequest", "volumes[].projected.sources[].podCertificate"),
        _guard("GenericWorkload", "schedulingGroup"),
        _guard("ContainerRestartRules", *_RESTART, used=_ALL_RESTART),
        _guard("ContainerRestartRules", *_INIT_RESTART, used=_ALL_RESTART, kept="Always"),
        _guard("HostnameOverride", "hostnameOverride"),
        _guard("EnvFiles", *_of_each(_CONTAINERS, "env[].valueFrom.fileKeyRef")),
        _guard("ContainerStopSignals", *_of_each(_CONTAINERS, "lifecycle.stopSignal"), prunes=True),
    ),
    "PodStatus": (
        _guard("InPlacePodLevelResourcesVerticalScaling", "resources", "allocatedResources"),
        _guard("DRAExtendedResource", "extendedResourceClaimStatus"),
        _guard("DRANodeAllocatableResources", "nodeAllocatableResourceClaimStatuses"),
        _guard("ResourceHealthStatus", *_of_each(_STATUSES, "allocatedResourcesStatus")),
        _guard("ResourceHealthStatusMessage", *_of_each(_STATUSES, "allocatedResourcesStatus[].resources[].message")),
        _guard("ImageVolumeWithDigest", *_of_each(_STATUSES, "volumeMounts[].volumeStatus")),
    ),
    "PersistentVolumeClaimSpec": (
        _guard(
            "CrossNamespaceVolumeDataSource",
            "dataSourceRef",
            only_with=("dataSourceRef", "namespace"),
        ),
    ),
    "StatefulSetSpec": (_guard("MaxUnavailableStatefulSet", "updateStrategy.rollingUpdate.maxUnavailable"),),
    "DeploymentStatus": (_guard("DeploymentReplicaSetTerminatingReplicas", "terminatingReplicas"),),
    "LeaseSpec": (
        _guard("CoordinatedLeaderElection", "strategy"),
        _guard("CoordinatedLeaderElection", "preferredHolder"),
    ),
    "HorizontalPodAutoscalerSpec": (
        _guard("HPAConfigurableTolerance", "behavior.scaleUp.tolerance", "behavior.scaleDown.tolerance"),
    ),
    "NodeStatus": (_guard("NodeDeclaredFeatures", "declaredFeatures"),),
    "CSIDriverSpec": (_guard("VolumeLimitScaling", "preventPodSchedulingIfMissing"),),
    "ResourceSliceSpec": (
        _guard(
            "DRAListTypeAttributes",
            *(f"devices[].attributes[].{each}" for each in ("ints", "bools", "strings", "versions")),
        ),
        _guard("DRANodeAllocatableResources", "devices[].nodeAllocatableResourceMappings"),
        _guard("DRADeviceTaints", "devices[].taints"),
        _guard(
            "DRAPartitionableDevices",
            *("sharedCounters", "perDeviceNodeSelection", "devices[].consumesCounters"),
            *("devices[].nodeName", "devices[].nodeSelector", "devices[].allNodes"),
        ),
        *(_guard(gate, *_BINDING_CONDITIONS) for gate in _GATES_OF_BINDING_CONDITIONS),
        _guard("DRAConsumableCapacity", "devices[].allowMultipleAllocations", "devices[].capacity[].requestPolicy"),
    ),
    "ResourceClaimSpec": (
        _guard("DRADeviceTaints", *_of_each(_REQUESTS, "tolerations")),
        _guard(
            "DRAConsumableCapacity",
            "devices.constraints[].distinctAttribute",
            *_of_each(_REQUESTS, "capacity"),
        ),
    ),
    "ResourceClaimStatus": (
        _guard("DRAResourceClaimDeviceStatus", "devices"),
        _guard("DRAConsumableCapacity", *_SHARES),
        _guard(
            "DRADeviceBindingConditions",
            "allocation.devices.results[].bindingConditions",
            "allocation.devices.results[].bindingFailureConditions",
        ),
    ),
    "PodGroupSpec": tuple(_guard(gate, field) for gate, fields in _OF_POD_GROUPS.items() for field in fields),
    "WorkloadSpec": tuple(
        _guard(gate, f"podGroupTemplates[].{field}") for gate, fields in _OF_POD_GROUPS.items() for field in fields
    ),
    "PodGroupStatus": (_guard("DRAWorkloadResourceClaims", "resourceClaimStatuses"),),
    "DeviceClassSpec": (_guard("DRAExtendedResource", "extendedResourceName"),),
    "CustomResourceDefinitionStatus": (
        _guard("CRDObservedGenerationTracking", "observedGeneration", "conditions[].observedGeneration"),
    ),
}

_TEMPLATE: Final = (("spec", "template", "spec"), "PodSpec")

PLACES: Final[Mapping[tuple[str, str], tuple[tuple[Steps, str], ...]]] = {
    ("", "Pod"): ((("spec",), "PodSpec"), (("status",), "PodStatus")),
    ("", "PodTemplate"): ((("template", "spec"), "PodSpec"),),
    ("", "ReplicationController"): (_TEMPLATE,),
    ("apps", "DaemonSet"): (_TEMPLATE,),
    ("apps", "Deployment"): (_TEMPLATE, (("status",), "DeploymentStatus")),
    ("apps", "ReplicaSet"): (_TEMPLATE, (("status",), "DeploymentStatus")),
    ("apps", "StatefulSet"): (_TEMPLATE, (("spec",), "StatefulSetSpec")),
    ("batch", "Job"): (_TEMPLATE,),
    ("batch", "CronJob"): ((("spec", "jobTemplate", "spec", "template", "spec"), "PodSpec"),),
    ("", "PersistentVolumeClaim"): ((("spec",), "PersistentVolumeClaimSpec"),),
    ("", "Node"): ((("status",), "NodeStatus"),),
    ("coordination.k8s.io", "Lease"): ((("spec",), "LeaseSpec"),),
    ("autoscaling", "HorizontalPodAutoscaler"): ((("spec",), "HorizontalPodAutoscalerSpec"),),
    ("storage.k8s.io", "CSIDriver"): ((("spec",), "CSIDriverSpec"),),
    ("resource.k8s.io", "ResourceSlice"): ((("spec",), "ResourceSliceSpec"),),
    ("resource.k8s.io", "ResourceClaim"): (
        (("spec",), "ResourceClaimSpec"),
        (("status",), "ResourceClaimStatus"),
    ),
    ("resource.k8s.io", "ResourceClaimTemplate"): ((("spec", "spec"), "ResourceClaimSpec"),),
    ("resource.k8s.io", "DeviceClass"): ((("spec",), "DeviceClassSpec"),),
    ("scheduling.k8s.io", "PodGroup"): ((("spec",), "PodGroupSpec"), (("status",), "PodGroupStatus")),
    ("scheduling.k8s.io", "Workload"): ((("spec",), "WorkloadSpec"),),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): ((("status",), "CustomResourceDefinitionStatus"),),
}
"""The paths of structs with guarded fields, by the group and name of the kind."""
