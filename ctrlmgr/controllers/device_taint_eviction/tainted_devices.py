"""Finds the time from which pods may no longer use an allocated ResourceClaim because of device taints.

Guarantees, those of `claimEvictionTime` and `getDevice` in Kubernetes' `pkg/controller/devicetainteviction`:
- Only taints with the effect NoExecute count. Only slices of the newest generation of a pool count.
- A DeviceTaintRule taints the allocated devices that its selector matches, even if no slice contains the device.
- A pod is evicted when the taint is added, or after the shortest time for which a toleration with the effect NoExecute
  tolerates the taint. A toleration without a time tolerates the taint forever. A toleration with an empty effect lets
  the scheduler choose the device, but does not delay an eviction.
- Of several taints, the earliest time counts.

All times in this module are in microseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.clock import parse_time
from ctrlmgr.controllers.resourceclaim.decide import Consumer
from ctrlmgr.scheduling.structured.allocator import tolerates
from ctrlmgr.scheduling.structured.pools import DeviceID
from ctrlmgr.scheduling.structured.tainting_rules import DeviceTaintRule
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

    @property
    def id(self) -> DeviceID:
        """The identity of the device."""
        return DeviceID(self.driver, self.pool, self.device)


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


class Eviction(NamedTuple):
    """The time of an eviction in microseconds since 1970, and the uids of the rules that are among its reasons."""

    due: int
    rules: frozenset[str] = frozenset()


def joined(evictions: Iterable[Eviction]) -> Eviction | None:
    """Return the eviction at the earliest time, for the reasons of all evictions; None if there are none."""
    found = [*evictions]
    if not found:
        return None
    return Eviction(min(each.due for each in found), frozenset().union(*(each.rules for each in found)))


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


def allocated_devices(claim: Object) -> list[AllocatedDevice]:
    """Return the devices that are allocated to a ResourceClaim."""
    return _allocated(_decode_claim(claim.body))


def device_names(slices: Iterable[Object]) -> Iterator[DeviceID]:
    """Yield the devices of the newest generation of each pool."""
    specs = [_decode_slice(each.body).spec for each in slices]
    newest: dict[tuple[str, str], int] = {}
    for each in specs:
        pool = (each.driver, each.pool.name)
        newest[pool] = max(newest.get(pool, each.pool.generation), each.pool.generation)
    for each in specs:
        if each.pool.generation == newest[each.driver, each.pool.name]:
            yield from (DeviceID(each.driver, each.pool.name, one.name) for one in each.devices or ())


def eviction_of(claim: Object, uid: str, slices_of: SlicesOf, rules: Sequence[DeviceTaintRule] = ()) -> Eviction | None:
    """Return when and why the pod with this uid must stop using a ResourceClaim; None if it may use the claim.

    `rules` are the rules with the effect NoExecute. A pod for which the claim is not reserved is not affected.
    """
    view = _decode_claim(claim.body)
    if all(each.uid != uid for each in view.status.reserved_for or ()):
        return None
    return joined(_evictions(_allocated(view), slices_of, rules))


def _allocated(claim: _Claim) -> list[AllocatedDevice]:
    allocation = claim.status.allocation
    return (allocation.devices.results or []) if allocation is not None else []


def _evictions(
    devices: Iterable[AllocatedDevice], slices_of: SlicesOf, rules: Sequence[DeviceTaintRule]
) -> Iterator[Eviction]:
    for device in devices:
        tolerations = device.tolerations or ()
        for taint in _taints(device, slices_of(device.pool_name)):
            if (due := _due(taint, tolerations)) is not None:
                yield Eviction(due)
        for rule in rules:
            is_matched = rule.selector is not None and rule.selector.matches(device.id)
            if is_matched and (due := _due(rule.taint, tolerations)) is not None:
                yield Eviction(due, frozenset((rule.object.uid,)))


def _due(taint: Mapping[str, Any], tolerations: Iterable[Fields]) -> int | None:
    """Return when a device with a taint may no longer be used; None if the taint is tolerated forever."""
    delay = _tolerated_for(taint, tolerations)
    return parse_time(taint["timeAdded"]) + delay if delay is not None and taint.get("timeAdded") else None


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


def _tolerated_for(taint: Mapping[str, Any], tolerations: Iterable[Fields]) -> int | None:
    """Return the microseconds for which a taint is tolerated, 0 if it is not tolerated, and None for forever."""
    matching = [each for each in tolerations if each.get("effect") == NO_EXECUTE and tolerates(each, taint)]
    seconds = [each.get("tolerationSeconds") for each in matching]
    if None in seconds:
        return None
    return max(0, min((each for each in seconds if each is not None), default=0)) * _SECOND
