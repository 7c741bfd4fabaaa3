"""Finds the time from which pods may no longer use an allocated ResourceClaim because of device taints.

Guarantees, those of `claimEvictionTime` and `getDevice` in Kubernetes' `pkg/controller/devicetainteviction`:
- Only taints with the effect NoExecute count. Only slices of the newest generation of a pool count.
- A pod is evicted when the taint is added, or after the shortest time for which a toleration with the effect NoExecute
  tolerates the taint. A toleration without a time tolerates the taint forever. A toleration with an empty effect lets
  the scheduler choose the device, but does not delay an eviction.
- Of several taints, the earliest time counts.

Times are microseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.clock import parse_time
from ctrlmgr.controllers.resourceclaim.decide import Consumer
from ctrlmgr.scheduling.structured.allocator import tolerates
from ctrlmgr.scheduling.taints import NO_EXECUTE

_SECOND: Final = 1_000_000
_EFFECT: Final = f'"{NO_EXECUTE}"'.encode()

Fields = dict[str, Any]
"""Decoded JSON."""


class AllocatedDevice(msgspec.Struct, frozen=True, gc=False):
    """A device of an allocated claim (DeviceRequestAllocationResult)."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    tolerations: list[Fields] | None = None

    @property
    def pool_name(self) -> str:
        """The driver and the name of the device's pool, as `DRIVER/POOL`."""
        return f"{self.driver}/{self.pool}"


class _Devices(msgspec.Struct, frozen=True, gc=False):
    results: list[AllocatedDevice] | None = None


class _Allocation(msgspec.Struct, frozen=True, gc=False):
    devices: _Devices = _Devices()


class _Status(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    allocation: _Allocation | None = None
    reserved_for: list[Consumer] | None = None


class _Claim(msgspec.Struct, frozen=True, gc=False):
    status: _Status = _Status()


class _Pool(msgspec.Struct, frozen=True, gc=False):
    name: str = ""
    generation: int = 0


class _Device(msgspec.Struct, frozen=True, gc=False):
    name: str = ""
    taints: list[Fields] | None = None


class _SliceSpec(msgspec.Struct, frozen=True, gc=False):
    driver: str = ""
    pool: _Pool = _Pool()
    devices: list[_Device] | None = None


class _Slice(msgspec.Struct, frozen=True, gc=False):
    spec: _SliceSpec = _SliceSpec()


# The views are not cached, because other controllers decode other fields.
_decode_claim = msgspec.json.Decoder(_Claim).decode
_decode_slice = msgspec.json.Decoder(_Slice).decode

SlicesOf = Callable[[str], Iterable[Object]]
"""A function that returns the ResourceSlices of a pool `DRIVER/POOL`."""


def pool_of(slice_: Object) -> list[str]:
    """Return the pool of a ResourceSlice, as `DRIVER/POOL`, for an index."""
    spec = _decode_slice(slice_.body).spec
    return [f"{spec.driver}/{spec.pool.name}"]


def pools_of(claim: Object) -> list[str]:
    """Return the pools of a ResourceClaim's allocated devices, as `DRIVER/POOL`, for an index."""
    return sorted({each.pool_name for each in _allocated(_decode_claim(claim.body))})


def users_of(claim: Object) -> list[Consumer]:
    """Return the pods for which a ResourceClaim is reserved."""
    return [each for each in _decode_claim(claim.body).status.reserved_for or () if each.is_pod]


def may_be_tainted(slices: Iterable[Object]) -> bool:
    """Return whether any of these ResourceSlices may have a NoExecute taint."""
    return any(each.mentions(_EFFECT) for each in slices)


def eviction_time(claim: Object, uid: str, slices_of: SlicesOf) -> int | None:
    """Return the time from which the pod with this uid may not use a ResourceClaim; None if there is no such time.

    A pod for which the claim is not reserved is not affected.
    """
    view = _decode_claim(claim.body)
    if all(each.uid != uid for each in view.status.reserved_for or ()):
        return None
    return min(_times(_allocated(view), slices_of), default=None)


def _allocated(claim: _Claim) -> list[AllocatedDevice]:
    allocation = claim.status.allocation
    return (allocation.devices.results or []) if allocation is not None else []


def _times(devices: Iterable[AllocatedDevice], slices_of: SlicesOf) -> Iterator[int]:
    for device in devices:
        for taint in _taints(device, slices_of(device.pool_name)):
            delay = _tolerated_for(taint, device.tolerations or ())
            if delay is not None and taint.get("timeAdded"):
                yield parse_time(taint["timeAdded"]) + delay


def _taints(device: AllocatedDevice, slices: Iterable[Object]) -> list[Fields]:
    """Return the NoExecute taints of a device; without any NoExecute taint in the pool, nothing is decoded."""
    slices = list(slices)
    if not may_be_tainted(slices):
        return []
    specs = [_decode_slice(each.body).spec for each in slices]
    newest = max(each.pool.generation for each in specs)
    found = (one for each in specs if each.pool.generation == newest for one in each.devices or ())
    named = next((each for each in found if each.name == device.device), _Device())
    return [each for each in named.taints or () if each["effect"] == NO_EXECUTE]


def _tolerated_for(taint: Fields, tolerations: Iterable[Fields]) -> int | None:
    """Return the microseconds for which a taint is tolerated, 0 if it is not tolerated, and None for forever."""
    matching = [each for each in tolerations if each.get("effect") == NO_EXECUTE and tolerates(each, taint)]
    seconds = [each.get("tolerationSeconds") for each in matching]
    if None in seconds:
        return None
    return max(0, min((each for each in seconds if each is not None), default=0)) * _SECOND
