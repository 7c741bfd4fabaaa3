"""The declarations of the kinds of `resource.k8s.io`."""

from __future__ import annotations

from ctrlmgr.kinds.kind_declaration import Declaration, same_as
from ctrlmgr.kinds.resource import printers
from ctrlmgr.kinds.resource.device_class import DeviceClassStrategy
from ctrlmgr.kinds.resource.device_taint_rules import DeviceTaintRuleStrategy
from ctrlmgr.kinds.resource.resource_claims import ResourceClaimStrategy, ResourceClaimTemplateStrategy
from ctrlmgr.kinds.resource.resource_pool_status_requests import ResourcePoolStatusRequestStrategy
from ctrlmgr.kinds.resource.resource_slices import ResourceSliceStrategy

_V1 = "resource.k8s.io/v1"
_ALPHA, _BETA = "resource.k8s.io/v1alpha3", "resource.k8s.io/v1beta2"
_RULES = "DRADeviceTaintRules"

KINDS = (
    Declaration(_V1, "DeviceClass", strategy=DeviceClassStrategy(), printer=printers.AGE),
    Declaration(_V1, "ResourceClaim", strategy=ResourceClaimStrategy(), printer=printers.RESOURCE_CLAIM),
    Declaration(_V1, "ResourceClaimTemplate", strategy=ResourceClaimTemplateStrategy(), printer=printers.AGE),
    Declaration(_V1, "ResourceSlice", strategy=ResourceSliceStrategy(), printer=printers.RESOURCE_SLICE),
    Declaration(
        _BETA,
        "DeviceTaintRule",
        strategy=DeviceTaintRuleStrategy(),
        printer=printers.DEVICE_TAINT_RULE,
        feature_gate=_RULES,
        stored_version="v1alpha3",
    ),
    Declaration(
        _ALPHA,
        "DeviceTaintRule",
        printer=printers.DEVICE_TAINT_RULE,
        feature_gate=_RULES,
        stored_as=same_as(_BETA, "DeviceTaintRule", _ALPHA),
        stored_version="v1alpha3",
    ),
    Declaration(
        _ALPHA,
        "ResourcePoolStatusRequest",
        strategy=ResourcePoolStatusRequestStrategy(),
        printer=printers.RESOURCE_POOL_STATUS_REQUEST,
        feature_gate="DRAResourcePoolStatus",
    ),
)
