"""The strategies of the kinds that need one, by what they serve."""

from __future__ import annotations

from ctrlmgr.resources.allocators.ranges import Ranges
from ctrlmgr.resources.strategies.certificate_signing_request import CertificateSigningRequestStrategy
from ctrlmgr.resources.strategies.classes import IngressClassStrategy, PriorityClassStrategy, StorageClassStrategy
from ctrlmgr.resources.strategies.config_map import ConfigMapStrategy
from ctrlmgr.resources.strategies.endpoint_slice import EndpointSliceStrategy
from ctrlmgr.resources.strategies.endpoints import EndpointsStrategy
from ctrlmgr.resources.strategies.event import EventStrategy, StrictEventStrategy
from ctrlmgr.resources.strategies.ip_address import IPAddressStrategy
from ctrlmgr.resources.strategies.lease import LeaseStrategy
from ctrlmgr.resources.strategies.limit_range import LimitRangeStrategy
from ctrlmgr.resources.strategies.namespace import NamespaceStrategy
from ctrlmgr.resources.strategies.node import NodeStrategy
from ctrlmgr.resources.strategies.plain import PLAIN
from ctrlmgr.resources.strategies.pod import PodStrategy
from ctrlmgr.resources.strategies.resource_quota import ResourceQuotaStrategy
from ctrlmgr.resources.strategies.secret import SecretStrategy
from ctrlmgr.resources.strategies.service import ServiceStrategy
from ctrlmgr.resources.strategies.service_account import ServiceAccountStrategy
from ctrlmgr.resources.strategies.service_cidr import ServiceCIDRStrategy
from ctrlmgr.resources.strategies.workloads_apps import (
    DaemonSetStrategy,
    DeploymentStrategy,
    PodTemplateStrategy,
    ReplicaSetStrategy,
    ReplicationControllerStrategy,
)
from ctrlmgr.resources.strategies.workloads_autoscaling import HorizontalPodAutoscalerStrategy
from ctrlmgr.resources.strategies.workloads_claims import PersistentVolumeClaimStrategy
from ctrlmgr.resources.strategies.workloads_cron_job import CronJobStrategy
from ctrlmgr.resources.strategies.workloads_disruption import PodDisruptionBudgetStrategy
from ctrlmgr.resources.strategies.workloads_ingress import IngressStrategy
from ctrlmgr.resources.strategies.workloads_job import JobStrategy
from ctrlmgr.resources.strategies.workloads_network_policy import NetworkPolicyStrategy
from ctrlmgr.resources.strategies.workloads_rbac import RoleBindingStrategy, RoleStrategy
from ctrlmgr.resources.strategies.workloads_stateful import ControllerRevisionStrategy, StatefulSetStrategy
from ctrlmgr.resources.strategies.workloads_volumes import PersistentVolumeStrategy
from ctrlmgr.resources.strategy import Strategy

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
