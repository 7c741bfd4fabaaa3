"""The feature gates that ctrlmgr reads, and the state of each gate in this process.

The table contains only gates that guard a field (`engine.features.guards`), a value (validation calls `is_on`), a
debugging page or a controller. The module `engine.features.chosen_gates` reads the flag `--feature-gates`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ctrlmgr.engine.features.known_gates import KNOWN_GATES

READ: Final = (
    "APIServerIdentity",
    "CRDObservedGenerationTracking",
    "ClusterTrustBundle",
    "ClusterTrustBundleProjection",
    "ComponentFlagz",
    "ComponentStatusz",
    "ContainerRestartRules",
    "ContainerStopSignals",
    "CoordinatedLeaderElection",
    "CrossNamespaceVolumeDataSource",
    "DRAConsumableCapacity",
    "DRADeviceBindingConditions",
    "DRADeviceTaintRules",
    "DRADeviceTaints",
    "DRAExtendedResource",
    "DRAListTypeAttributes",
    "DRANodeAllocatableResources",
    "DRAPartitionableDevices",
    "DRAResourceClaimDeviceStatus",
    "DRAResourcePoolStatus",
    "DRAWorkloadResourceClaims",
    "DeploymentReplicaSetTerminatingReplicas",
    "EnvFiles",
    "GangScheduling",
    "GenericWorkload",
    "HPAConfigurableTolerance",
    "HostnameOverride",
    "ImageVolumeWithDigest",
    "InPlacePodLevelResourcesVerticalScaling",
    "MatchLabelKeysInPodTopologySpread",
    "MaxUnavailableStatefulSet",
    "NodeDeclaredFeatures",
    "PodCertificateRequest",
    "PodLevelResources",
    "ResourceHealthStatus",
    "ResourceHealthStatusMessage",
    "RestartAllContainersOnContainerExits",
    "SELinuxMount",
    "StorageVersionAPI",
    "StorageVersionMigrator",
    "TaintTolerationComparisonOperators",
    "TopologyAwareWorkloadScheduling",
    "UnknownVersionInteroperabilityProxy",
    "UserNamespacesHostNetworkSupport",
    "VolumeLimitScaling",
    "WorkloadAwarePreemption",
)
"""The gates that code of ctrlmgr reads and that can therefore be switched on or off."""

DEFAULTS: Final[Mapping[str, bool]] = {gate: KNOWN_GATES[gate].default for gate in READ}
"""The default state of each gate."""

ENABLED: Final[dict[str, bool]] = dict(DEFAULTS)
"""The state of each gate in this process."""


def is_on(gate: str) -> bool:
    """Return whether a feature gate is on; raises KeyError if the gate is not in the table."""
    return ENABLED[gate]


def switch(states: Mapping[str, bool]) -> None:
    """Set the gates in `states`, and reset all other gates to their defaults.

    The caller must do this before the process handles requests.

    Raises KeyError if a gate is not in the table.
    """
    if unknown := states.keys() - DEFAULTS.keys():
        raise KeyError(min(unknown))
    ENABLED.update({**DEFAULTS, **states})
