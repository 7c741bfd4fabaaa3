"""The declarations of the kinds of the core group."""

from __future__ import annotations

from ctrlmgr.engine.managedfields.field_set import EVERY
from ctrlmgr.engine.managedfields.reset_fields import STATUS, USUAL, all_but, only
from ctrlmgr.kinds.allocators.service_ranges import Ranges
from ctrlmgr.kinds.apps import printers as apps_printers
from ctrlmgr.kinds.apps.replica_set import ReplicationControllerStrategy
from ctrlmgr.kinds.core import printers
from ctrlmgr.kinds.core.config_map import ConfigMapStrategy
from ctrlmgr.kinds.core.core_event import EventStrategy
from ctrlmgr.kinds.core.endpoints import EndpointsStrategy
from ctrlmgr.kinds.core.limit_range import LimitRangeStrategy
from ctrlmgr.kinds.core.namespace import NamespaceStrategy
from ctrlmgr.kinds.core.node import NodeStrategy
from ctrlmgr.kinds.core.persistent_volume import PersistentVolumeStrategy
from ctrlmgr.kinds.core.persistent_volume_claim import PersistentVolumeClaimStrategy
from ctrlmgr.kinds.core.pod.pod_printer import PODS
from ctrlmgr.kinds.core.pod.strategy import PodStrategy
from ctrlmgr.kinds.core.pod_template import PodTemplateStrategy
from ctrlmgr.kinds.core.resource_quota import ResourceQuotaStrategy
from ctrlmgr.kinds.core.secret import SecretStrategy
from ctrlmgr.kinds.core.service.strategy import ServiceStrategy
from ctrlmgr.kinds.core.service_account import ServiceAccountStrategy
from ctrlmgr.kinds.kind_declaration import Declaration

_POD_RESETS = {
    "": all_but(STATUS),
    "status": all_but(("spec",), ("metadata", "deletionTimestamp"), ("metadata", "ownerReferences")),
    "ephemeralcontainers": only(("spec", "ephemeralContainers")),
    "resize": only(
        *(
            ("spec", containers, EVERY, field)
            for containers in ("containers", "initContainers")
            for field in ("resources", "resizePolicy")
        )
    ),
}

KINDS = (
    Declaration(
        "v1",
        "ComponentStatus",
        printer=printers.COMPONENT_STATUS,
        deprecation="v1 ComponentStatus is deprecated in v1.19+",
    ),
    Declaration("v1", "ConfigMap", strategy=ConfigMapStrategy(), printer=printers.CONFIG_MAP),
    Declaration(
        "v1",
        "Endpoints",
        strategy=EndpointsStrategy(),
        printer=printers.ENDPOINTS,
        registry_path="services/endpoints",
        deprecation="v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    ),
    Declaration("v1", "Event", strategy=EventStrategy(), printer=printers.EVENT),
    Declaration("v1", "LimitRange", strategy=LimitRangeStrategy()),
    Declaration(
        "v1",
        "Namespace",
        strategy=NamespaceStrategy(),
        printer=printers.NAMESPACE,
        resets={**USUAL, "finalize": all_but(STATUS)},
    ),
    Declaration("v1", "Node", strategy=NodeStrategy(), printer=printers.NODE, registry_path="minions"),
    Declaration("v1", "PersistentVolume", strategy=PersistentVolumeStrategy(), printer=printers.PERSISTENT_VOLUME),
    Declaration(
        "v1",
        "PersistentVolumeClaim",
        strategy=PersistentVolumeClaimStrategy(),
        printer=printers.PERSISTENT_VOLUME_CLAIM,
    ),
    Declaration("v1", "Pod", strategy=PodStrategy(), printer=PODS, resets=_POD_RESETS),
    Declaration("v1", "PodTemplate", strategy=PodTemplateStrategy(), printer=printers.POD_TEMPLATE),
    Declaration(
        "v1",
        "ReplicationController",
        strategy=ReplicationControllerStrategy(),
        printer=apps_printers.REPLICATION_CONTROLLER,
        registry_path="controllers",
    ),
    Declaration("v1", "ResourceQuota", strategy=ResourceQuotaStrategy(), printer=printers.RESOURCE_QUOTA),
    Declaration("v1", "Secret", strategy=SecretStrategy(), printer=printers.SECRET),
    Declaration("v1", "ServiceAccount", strategy=ServiceAccountStrategy(), printer=printers.SERVICE_ACCOUNT),
)


def service(ranges: Ranges | None = None) -> Declaration:
    """Return the declaration of the kind Service; addresses and node ports are allocated from `ranges`."""
    strategy = ServiceStrategy() if ranges is None else ServiceStrategy(ranges)
    return Declaration("v1", "Service", strategy=strategy, printer=printers.SERVICE, registry_path="services/specs")
