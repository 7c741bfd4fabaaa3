"""What the project knows of each kind of `resource.k8s.io`."""

from __future__ import annotations

from ctrlmgr.engine.strategy import Strategy
from ctrlmgr.kinds.declaration import Declaration
from ctrlmgr.kinds.resource import printers


class DeviceStrategy(Strategy):
    """All of them (Kubernetes `pkg/registry/resource`)."""

    returns_deleted = True


class CountedDeviceStrategy(DeviceStrategy):
    """Those of them whose changes are counted."""

    has_generation = True


_V1 = "resource.k8s.io/v1"

KINDS = (
    Declaration(_V1, "DeviceClass", strategy=CountedDeviceStrategy(), printer=printers.AGE),
    Declaration(_V1, "ResourceClaim", strategy=DeviceStrategy(), printer=printers.RESOURCE_CLAIM),
    Declaration(_V1, "ResourceClaimTemplate", strategy=DeviceStrategy(), printer=printers.AGE),
    Declaration(_V1, "ResourceSlice", strategy=CountedDeviceStrategy(), printer=printers.RESOURCE_SLICE),
)
