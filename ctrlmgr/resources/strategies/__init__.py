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
from ctrlmgr.resources.strategies.resource_quota import ResourceQuotaStrategy
from ctrlmgr.resources.strategies.secret import SecretStrategy
from ctrlmgr.resources.strategies.service import ServiceStrategy
from ctrlmgr.resources.strategies.service_account import ServiceAccountStrategy
from ctrlmgr.resources.strategies.service_cidr import ServiceCIDRStrategy
from ctrlmgr.resources.strategy import Strategy

STRATEGIES: dict[str, Strategy] = {
    **PLAIN,
    "v1/ConfigMap": ConfigMapStrategy(),
    "v1/Endpoints": EndpointsStrategy(),
    "v1/Event": EventStrategy(),
    "v1/LimitRange": LimitRangeStrategy(),
    "v1/Namespace": NamespaceStrategy(),
    "v1/Node": NodeStrategy(),
    "v1/ResourceQuota": ResourceQuotaStrategy(),
    "v1/Secret": SecretStrategy(),
    "v1/Service": ServiceStrategy(),
    "v1/ServiceAccount": ServiceAccountStrategy(),
    "certificates.k8s.io/v1/CertificateSigningRequest": CertificateSigningRequestStrategy(),
    "coordination.k8s.io/v1/Lease": LeaseStrategy(),
    "discovery.k8s.io/v1/EndpointSlice": EndpointSliceStrategy(),
    "events.k8s.io/v1/Event": StrictEventStrategy(),
    "networking.k8s.io/v1/IPAddress": IPAddressStrategy(),
    "networking.k8s.io/v1/IngressClass": IngressClassStrategy(),
    "networking.k8s.io/v1/ServiceCIDR": ServiceCIDRStrategy(),
    "scheduling.k8s.io/v1/PriorityClass": PriorityClassStrategy(),
    "storage.k8s.io/v1/StorageClass": StorageClassStrategy(),
}
"""Strategies by `apiVersion/Kind`; every other kind has the base class's."""


def strategies(ranges: Ranges) -> dict[str, Strategy]:
    """Return the strategies for a cluster whose Services are given addresses and node ports of `ranges`."""
    return STRATEGIES | {"v1/Service": ServiceStrategy(ranges)}
