"""The feature gates that guard fields or values, and their states.

The table contains only gates that guard a field (`engine.features.guards`) or a value (validation calls `is_on`).

Source: Kubernetes 1.36.2, `pkg/features/kube_features.go`, the defaults of kube-apiserver.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

DEFAULTS: Final[Mapping[str, bool]] = {
    "CRDObservedGenerationTracking": True,
    "ClusterTrustBundleProjection": False,
    "ContainerRestartRules": True,
    "ContainerStopSignals": False,
    "CoordinatedLeaderElection": False,
    "CrossNamespaceVolumeDataSource": False,
    "DRAConsumableCapacity": True,
    "DRADeviceBindingConditions": True,
    "DRADeviceTaints": True,
    "DRAExtendedResource": True,
    "DRAListTypeAttributes": False,
    "DRANodeAllocatableResources": False,
    "DRAPartitionableDevices": True,
    "DRAResourceClaimDeviceStatus": True,
    "DeploymentReplicaSetTerminatingReplicas": True,
    "EnvFiles": True,
    "GenericWorkload": False,
    "HPAConfigurableTolerance": True,
    "HostnameOverride": True,
    "ImageVolumeWithDigest": False,
    "InPlacePodLevelResourcesVerticalScaling": True,
    "MatchLabelKeysInPodTopologySpread": True,
    "MaxUnavailableStatefulSet": False,
    "NodeDeclaredFeatures": True,
    "PodCertificateRequest": False,
    "PodLevelResources": True,
    "ResourceHealthStatus": True,
    "ResourceHealthStatusMessage": True,
    "RestartAllContainersOnContainerExits": True,
    "SELinuxMount": False,
    "TaintTolerationComparisonOperators": False,
    "UserNamespacesHostNetworkSupport": False,
    "VolumeLimitScaling": False,
}
"""Each gate's default."""

ENABLED: Final[dict[str, bool]] = dict(DEFAULTS)
"""Each gate's state in this process."""


def is_on(gate: str) -> bool:
    """Return whether a gate is on; raises KeyError for a gate that is not in the table."""
    return ENABLED[gate]
