"""Reads a KubeControllerManagerConfiguration, whose fields correspond to flags of kube-controller-manager.

Guarantees: each field of the file either has the same effect as the corresponding flag, or the file is refused. In the
second case, the error names the line of the field.

Source: `k8s.io/kube-controller-manager/config/v1alpha1` and `cmd/kube-controller-manager/app/options`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from ctrlmgr.settings.configuration_files import Document, read_document

KIND: Final = "KubeControllerManagerConfiguration"
_VERSIONS: Final = ("kubecontrollermanager.config.k8s.io/v1alpha1",)

FIELDS: Final[Mapping[str, str]] = {
    "Generic.Address": "--address",
    "Generic.ClientConnection.burst": "--kube-api-burst",
    "Generic.ClientConnection.contentType": "--kube-api-content-type",
    "Generic.ClientConnection.kubeconfig": "--kubeconfig",
    "Generic.ClientConnection.qps": "--kube-api-qps",
    "Generic.ControllerStartInterval": "--controller-start-interval",
    "Generic.Controllers": "--controllers",
    "Generic.Debugging.enableContentionProfiling": "--contention-profiling",
    "Generic.Debugging.enableProfiling": "--profiling",
    "Generic.LeaderElection.leaderElect": "--leader-elect",
    "Generic.LeaderElection.leaseDuration": "--leader-elect-lease-duration",
    "Generic.LeaderElection.renewDeadline": "--leader-elect-renew-deadline",
    "Generic.LeaderElection.resourceLock": "--leader-elect-resource-lock",
    "Generic.LeaderElection.resourceName": "--leader-elect-resource-name",
    "Generic.LeaderElection.resourceNamespace": "--leader-elect-resource-namespace",
    "Generic.LeaderElection.retryPeriod": "--leader-elect-retry-period",
    "Generic.LeaderMigrationEnabled": "--enable-leader-migration",
    "Generic.MinResyncPeriod": "--min-resync-period",
    "Generic.Port": "--port",
    "KubeCloudShared.AllocateNodeCIDRs": "--allocate-node-cidrs",
    "KubeCloudShared.CIDRAllocatorType": "--cidr-allocator-type",
    "KubeCloudShared.CloudProvider.CloudConfigFile": "--cloud-config",
    "KubeCloudShared.CloudProvider.Name": "--cloud-provider",
    "KubeCloudShared.ClusterCIDR": "--cluster-cidr",
    "KubeCloudShared.ClusterName": "--cluster-name",
    "KubeCloudShared.ConfigureCloudRoutes": "--configure-cloud-routes",
    "KubeCloudShared.ExternalCloudVolumePlugin": "--external-cloud-volume-plugin",
    "KubeCloudShared.NodeMonitorPeriod": "--node-monitor-period",
    "KubeCloudShared.RouteReconciliationPeriod": "--route-reconciliation-period",
    "KubeCloudShared.UseServiceAccountCredentials": "--use-service-account-credentials",
    "AttachDetachController.DisableAttachDetachReconcilerSync": "--disable-attach-detach-reconcile-sync",
    "AttachDetachController.ReconcilerSyncLoopPeriod": "--attach-detach-reconcile-sync-period",
    "AttachDetachController.disableForceDetachOnTimeout": "--disable-force-detach-on-timeout",
    "CSRSigningController.ClusterSigningCertFile": "--cluster-signing-cert-file",
    "CSRSigningController.ClusterSigningDuration": "--cluster-signing-duration",
    "CSRSigningController.ClusterSigningKeyFile": "--cluster-signing-key-file",
    **{
        f"CSRSigningController.{signer}SignerConfiguration.{part}File": f"--cluster-signing-{name}-{part.lower()}-file"
        for signer, name in (
            ("KubeletServing", "kubelet-serving"),
            ("KubeletClient", "kubelet-client"),
            ("KubeAPIServerClient", "kube-apiserver-client"),
            ("LegacyUnknown", "legacy-unknown"),
        )
        for part in ("Cert", "Key")
    },
    "CronJobController.ConcurrentCronJobSyncs": "--concurrent-cron-job-syncs",
    "DaemonSetController.ConcurrentDaemonSetSyncs": "--concurrent-daemonset-syncs",
    "DeploymentController.ConcurrentDeploymentSyncs": "--concurrent-deployment-syncs",
    "DeviceTaintEvictionController.ConcurrentSyncs": "--concurrent-device-taint-eviction-syncs",
    "EndpointController.ConcurrentEndpointSyncs": "--concurrent-endpoint-syncs",
    "EndpointController.EndpointUpdatesBatchPeriod": "--endpoint-updates-batch-period",
    "EndpointSliceController.ConcurrentServiceEndpointSyncs": "--concurrent-service-endpoint-syncs",
    "EndpointSliceController.EndpointUpdatesBatchPeriod": "--endpointslice-updates-batch-period",
    "EndpointSliceController.MaxEndpointsPerSlice": "--max-endpoints-per-slice",
    "EndpointSliceMirroringController.MirroringConcurrentServiceEndpointSyncs": (
        "--mirroring-concurrent-service-endpoint-syncs"
    ),
    "EndpointSliceMirroringController.MirroringEndpointUpdatesBatchPeriod": (
        "--mirroring-endpointslice-updates-batch-period"
    ),
    "EndpointSliceMirroringController.MirroringMaxEndpointsPerSubset": "--mirroring-max-endpoints-per-subset",
    "EphemeralVolumeController.ConcurrentEphemeralVolumeSyncs": "--concurrent-ephemeralvolume-syncs",
    "GarbageCollectorController.ConcurrentGCSyncs": "--concurrent-gc-syncs",
    "GarbageCollectorController.EnableGarbageCollector": "--enable-garbage-collector",
    "HPAController.ConcurrentHorizontalPodAutoscalerSyncs": "--concurrent-horizontal-pod-autoscaler-syncs",
    "HPAController.HorizontalPodAutoscalerCPUInitializationPeriod": (
        "--horizontal-pod-autoscaler-cpu-initialization-period"
    ),
    "HPAController.HorizontalPodAutoscalerDownscaleStabilizationWindow": (
        "--horizontal-pod-autoscaler-downscale-stabilization"
    ),
    "HPAController.HorizontalPodAutoscalerInitialReadinessDelay": "--horizontal-pod-autoscaler-initial-readiness-delay",
    "HPAController.HorizontalPodAutoscalerSyncPeriod": "--horizontal-pod-autoscaler-sync-period",
    "HPAController.HorizontalPodAutoscalerTolerance": "--horizontal-pod-autoscaler-tolerance",
    "JobController.ConcurrentJobSyncs": "--concurrent-job-syncs",
    "LegacySATokenCleaner.CleanUpPeriod": "--legacy-service-account-token-clean-up-period",
    "NamespaceController.ConcurrentNamespaceSyncs": "--concurrent-namespace-syncs",
    "NamespaceController.NamespaceSyncPeriod": "--namespace-sync-period",
    "NodeIPAMController.NodeCIDRMaskSize": "--node-cidr-mask-size",
    "NodeIPAMController.NodeCIDRMaskSizeIPv4": "--node-cidr-mask-size-ipv4",
    "NodeIPAMController.NodeCIDRMaskSizeIPv6": "--node-cidr-mask-size-ipv6",
    "NodeIPAMController.ServiceCIDR": "--service-cluster-ip-range",
    "NodeLifecycleController.LargeClusterSizeThreshold": "--large-cluster-size-threshold",
    "NodeLifecycleController.NodeEvictionRate": "--node-eviction-rate",
    "NodeLifecycleController.NodeMonitorGracePeriod": "--node-monitor-grace-period",
    "NodeLifecycleController.NodeStartupGracePeriod": "--node-startup-grace-period",
    "NodeLifecycleController.PodEvictionTimeout": "--pod-eviction-timeout",
    "NodeLifecycleController.SecondaryNodeEvictionRate": "--secondary-node-eviction-rate",
    "NodeLifecycleController.UnhealthyZoneThreshold": "--unhealthy-zone-threshold",
    "PersistentVolumeBinderController.PVClaimBinderSyncPeriod": "--pvclaimbinder-sync-period",
    "PersistentVolumeBinderController.VolumeConfiguration.EnableDynamicProvisioning": "--enable-dynamic-provisioning",
    "PersistentVolumeBinderController.VolumeConfiguration.EnableHostPathProvisioning": "--enable-hostpath-provisioner",
    "PersistentVolumeBinderController.VolumeConfiguration.FlexVolumePluginDir": "--flex-volume-plugin-dir",
    "PodGCController.TerminatedPodGCThreshold": "--terminated-pod-gc-threshold",
    "ReplicaSetController.ConcurrentRSSyncs": "--concurrent-replicaset-syncs",
    "ReplicationController.ConcurrentRCSyncs": "--concurrent-rc-syncs",
    "ResourceClaimController.ConcurrentSyncs": "--concurrent-resourceclaim-syncs",
    "ResourceQuotaController.ConcurrentResourceQuotaSyncs": "--concurrent-resource-quota-syncs",
    "ResourceQuotaController.ResourceQuotaSyncPeriod": "--resource-quota-sync-period",
    "SAController.ConcurrentSATokenSyncs": "--concurrent-serviceaccount-token-syncs",
    "SAController.RootCAFile": "--root-ca-file",
    "SAController.ServiceAccountKeyFile": "--service-account-private-key-file",
    "ServiceController.ConcurrentServiceSyncs": "--concurrent-service-syncs",
    "StatefulSetController.ConcurrentStatefulSetSyncs": "--concurrent-statefulset-syncs",
    "TTLAfterFinishedController.ConcurrentTTLSyncs": "--concurrent-ttl-after-finished-syncs",
    "ValidatingAdmissionPolicyStatusController.ConcurrentPolicySyncs": (
        "--concurrent-validating-admission-policy-status-syncs"
    ),
}
"""The flag of each field, by the field's dotted path. A field that is not listed here is refused."""


def read_configuration(file: Path) -> dict[str, str]:
    """Return the flags that a configuration file sets, with their values; raises `SettingsError`."""
    document = read_document(file)
    fields = document.read(KIND, _VERSIONS, dict[str, Any])
    return {flag: _text(value) for flag, value in _flags(document, fields, ())}


def _flags(document: Document, fields: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    for name, value in fields.items():
        here = (*path, name)
        field = ".".join(here)
        if field in FIELDS and not isinstance(value, dict):
            if value is not None:
                yield FIELDS[field], value
        elif isinstance(value, dict) and any(known.startswith(f"{field}.") for known in FIELDS):
            yield from _flags(document, value, here)
        else:
            raise document.refuse(f"the field {field} is not supported", *here)


def _text(value: Any) -> str:
    """Return a field's value in the form in which the corresponding flag would contain it."""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
