"""Explains why the devices of a node were not allocated to claims.

For each device, the reason is the selector, taint or claim that excluded the device.

Guarantees: the reasons are those of the allocator, in the order of its checks; each device has one reason for each
request. A device without a reason fits the request. A node's fitting devices are not allocated if the node has too few
of them, or if a constraint of the claim forbids their combination.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from ctrlmgr.scheduling.structured.allocator import Claim, UsedDevices, tolerates
from ctrlmgr.scheduling.structured.device_selectors import AllocationError, selects
from ctrlmgr.scheduling.structured.pools import Device, Fields, Pool

_EXCLUDING: Final = ("NoSchedule", "NoExecute")
SUITABLE: Final = "suitable, but too few devices are, or a constraint excludes the combination"


def device_reasons(
    pools: Sequence[Pool], claims: Sequence[Claim], classes: Callable[[str], Fields | None], taken: UsedDevices
) -> Iterator[str]:
    """Yield a line for each device of a node and each request of the claims, with the reason of the device."""
    for pool in pools:
        if pool.is_incomplete or pool.is_invalid:
            yield f"pool {pool.driver}/{pool.name}: {'incomplete' if pool.is_incomplete else 'invalid'}"
    for claim in claims:
        for name, request in _requests(claim):
            for device in (each for pool in pools for each in pool.devices):
                where = f"device {device.id.driver}/{device.id.pool}/{device.id.device}"
                yield f"{where}, claim {claim.name}, request {name}: {_reason(device, request, classes, taken)}"


def _requests(claim: Claim) -> Iterator[tuple[str, Fields]]:
    for each in claim.devices.get("requests") or ():
        if each.get("exactly") is not None:
            yield each["name"], each["exactly"]
        for one in each.get("firstAvailable") or ():
            yield f"{each['name']}/{one['name']}", one


def _reason(device: Device, request: Fields, classes: Callable[[str], Fields | None], taken: UsedDevices) -> str:
    name = request.get("deviceClassName") or ""
    class_ = classes(name)
    if class_ is None:
        return f"device class {name} does not exist"
    of_class = (class_.get("spec") or {}).get("selectors") or ()
    refused = _refusing(device, of_class, f"of class {name}") or _refusing(
        device, request.get("selectors") or (), "of the request"
    )
    if refused:
        return refused
    for taint in device.fields.get("taints") or ():
        if taint["effect"] in _EXCLUDING and not any(tolerates(x, taint) for x in request.get("tolerations") or ()):
            return f"taint {taint['key']}:{taint['effect']} is not tolerated"
    if taken.has(device.id) and not device.is_shared and not request.get("adminAccess"):
        return "allocated to another claim"
    return SUITABLE


def _refusing(device: Device, selectors: Sequence[Mapping[str, Any]], whose: str) -> str:
    """Return the first selector that does not match a device; "" if all selectors match."""
    for at, selector in enumerate(selectors):
        try:
            if not selects(device, [selector], whose):
                return f"selector #{at} {whose} does not match: {selector['cel']['expression']}"
        except AllocationError as error:
            return str(error)
    return ""
