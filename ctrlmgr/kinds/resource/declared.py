"""What the project knows of each kind of `resource.k8s.io`."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.engine.managedfields.reset_fields import METADATA
from ctrlmgr.engine.strategy import Strategy
from ctrlmgr.kinds.declaration import Declaration
from ctrlmgr.kinds.resource import printers


class DeviceStrategy(Strategy):
    """All of them (Kubernetes `pkg/registry/resource`)."""

    returns_deleted = True


class ResourceClaimStrategy(DeviceStrategy):
    """What devices are claimed."""

    status_keeps = METADATA


class _Slice(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    node_name: str = ""
    driver: str = ""


class _ResourceSlice(msgspec.Struct, frozen=True, gc=False):
    spec: _Slice = _Slice()


class CountedDeviceStrategy(DeviceStrategy):
    """Those of them whose changes are counted."""

    has_generation = True


class ResourceSliceStrategy(CountedDeviceStrategy):
    """What a node offers: its own are found by its name."""

    fields = ("spec.nodeName", "spec.driver")

    def field_refusal(self, field: str) -> str:
        """Say that `field` cannot be selected by."""
        return f"field label not supported for {_V1}, Kind=ResourceSlice: {field}"

    def selectable(self, obj: Object) -> Mapping[str, str]:
        """Return the node and the driver that a slice is of."""
        spec = obj.view(_ResourceSlice).spec
        return {"spec.nodeName": spec.node_name, "spec.driver": spec.driver}


_V1 = "resource.k8s.io/v1"
_UNUSED = "neither validated nor defaulted; no device is allocated"

KINDS = (
    Declaration(_V1, "DeviceClass", strategy=CountedDeviceStrategy(), printer=printers.AGE, unused=_UNUSED),
    Declaration(
        _V1, "ResourceClaim", strategy=ResourceClaimStrategy(), printer=printers.RESOURCE_CLAIM, unused=_UNUSED
    ),
    Declaration(_V1, "ResourceClaimTemplate", strategy=DeviceStrategy(), printer=printers.AGE, unused=_UNUSED),
    Declaration(
        _V1, "ResourceSlice", strategy=ResourceSliceStrategy(), printer=printers.RESOURCE_SLICE, unused=_UNUSED
    ),
)
