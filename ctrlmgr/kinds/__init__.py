"""The strategies of the kinds that need one, by what they serve."""

from __future__ import annotations

from ctrlmgr.engine.strategy import Strategy
from ctrlmgr.kinds.allocators.ranges import Ranges
from ctrlmgr.kinds.apps.deployments import (
    DaemonSetStrategy,
    DeploymentStrategy,
    PodTemplateStrategy,
    ReplicaSetStrategy,
    ReplicationControllerStrategy,
)
from ctrlmgr.kinds.apps.stateful_set import ControllerRevisionStrategy, StatefulSetStrategy
from ctrlmgr.kinds.autoscaling.horizontal_pod_autoscaler import HorizontalPodAutoscalerStrategy
from ctrlmgr.kinds.batch.cron_job import CronJobStrategy
from ctrlmgr.kinds.batch.job import JobStrategy
from ctrlmgr.kinds.certificates.certificate_signing_request import CertificateSigningRequestStrategy
from ctrlmgr.kinds.classes import IngressClassStrategy, PriorityClassStrategy, StorageClassStrategy
from ctrlmgr.kinds.coordination.lease import LeaseStrategy
from ctrlmgr.kinds.core.config_map import ConfigMapStrategy
from ctrlmgr.kinds.core.endpoints import EndpointsStrategy
from ctrlmgr.kinds.core.event import EventStrategy, StrictEventStrategy
from ctrlmgr.kinds.core.limit_range import LimitRangeStrategy
from ctrlmgr.kinds.core.namespace import NamespaceStrategy
from ctrlmgr.kinds.core.node import NodeStrategy
from ctrlmgr.kinds.core.persistent_volume import PersistentVolumeStrategy
from ctrlmgr.kinds.core.persistent_volume_claim import PersistentVolumeClaimStrategy
from ctrlmgr.kinds.core.pod.strategy import PodStrategy
from ctrlmgr.kinds.core.resource_quota import ResourceQuotaStrategy
from ctrlmgr.kinds.core.secret import SecretStrategy
from ctrlmgr.kinds.core.service.strategy import ServiceStrategy
from ctrlmgr.kinds.core.service_account import ServiceAccountStrategy
from ctrlmgr.kinds.discovery.endpoint_slice import EndpointSliceStrategy
from ctrlmgr.kinds.networking.ingress import IngressStrategy
from ctrlmgr.kinds.networking.ip_address import IPAddressStrategy
from ctrlmgr.kinds.networking.network_policy import NetworkPolicyStrategy
from ctrlmgr.kinds.networking.service_cidr import ServiceCIDRStrategy
from ctrlmgr.kinds.plain import PLAIN
from ctrlmgr.kinds.policy.pod_disruption_budget import PodDisruptionBudgetStrategy
from ctrlmgr.kinds.rbac.roles import RoleBindingStrategy, RoleStrategy

STRATEGIES: dict[str, Strategy] = {
    **PLAIN,
    "v1/ConfigMap": ConfigMapStrategy(),
    "v1/Endpoints": EndpointsStrategy(),
    "v1/Event": EventStrategy(),
    "v1/LimitRange": LimitRangeStrategy(),
    "v1/Namespace": NamespaceStrategy(),
    "v1/Node": NodeStrategy(),
    "v1/PersistentVolume": PersistentVolumeStrategy(),
    "v1/PersistentVolumeClaim": PersistentVolumeClaimStrategy(),
    "v1/Pod": PodStrategy(),
    "v1/PodTemplate": PodTemplateStrategy(),
    "v1/ReplicationController": ReplicationControllerStrategy(),
    "v1/ResourceQuota": ResourceQuotaStrategy(),
    "v1/Secret": SecretStrategy(),
    "v1/Service": ServiceStrategy(),
    "v1/ServiceAccount": ServiceAccountStrategy(),
    "apps/v1/ControllerRevision": ControllerRevisionStrategy(),
    "apps/v1/DaemonSet": DaemonSetStrategy(),
    "apps/v1/Deployment": DeploymentStrategy(),
    "apps/v1/ReplicaSet": ReplicaSetStrategy(),
    "apps/v1/StatefulSet": StatefulSetStrategy(),
    "autoscaling/v2/HorizontalPodAutoscaler": HorizontalPodAutoscalerStrategy(),
    "batch/v1/CronJob": CronJobStrategy(),
    "batch/v1/Job": JobStrategy(),
    "certificates.k8s.io/v1/CertificateSigningRequest": CertificateSigningRequestStrategy(),
    "coordination.k8s.io/v1/Lease": LeaseStrategy(),
    "discovery.k8s.io/v1/EndpointSlice": EndpointSliceStrategy(),
    "events.k8s.io/v1/Event": StrictEventStrategy(),
    "networking.k8s.io/v1/IPAddress": IPAddressStrategy(),
    "networking.k8s.io/v1/Ingress": IngressStrategy(),
    "networking.k8s.io/v1/IngressClass": IngressClassStrategy(),
    "networking.k8s.io/v1/NetworkPolicy": NetworkPolicyStrategy(),
    "networking.k8s.io/v1/ServiceCIDR": ServiceCIDRStrategy(),
    "policy/v1/PodDisruptionBudget": PodDisruptionBudgetStrategy(),
    "rbac.authorization.k8s.io/v1/ClusterRole": RoleStrategy(namespaced=False),
    "rbac.authorization.k8s.io/v1/ClusterRoleBinding": RoleBindingStrategy(namespaced=False),
    "rbac.authorization.k8s.io/v1/Role": RoleStrategy(namespaced=True),
    "rbac.authorization.k8s.io/v1/RoleBinding": RoleBindingStrategy(namespaced=True),
    "scheduling.k8s.io/v1/PriorityClass": PriorityClassStrategy(),
    "storage.k8s.io/v1/StorageClass": StorageClassStrategy(),
}
"""Strategies by `apiVersion/Kind`; every other kind has the base class's."""


def strategies(ranges: Ranges) -> dict[str, Strategy]:
    """Return the strategies for a cluster whose Services are given addresses and node ports of `ranges`."""
    return STRATEGIES | {"v1/Service": ServiceStrategy(ranges)}
