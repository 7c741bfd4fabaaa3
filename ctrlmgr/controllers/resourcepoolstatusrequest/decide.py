"""Computes the status of a ResourcePoolStatusRequest, and the time at which a request is deleted.

Source: Kubernetes `pkg/controller/resourcepoolstatusrequest/controller.go`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from ctrlmgr.api.object import Object
from ctrlmgr.clock import format_time_seconds, parse_time
from ctrlmgr.errors import CtrlmgrError

COMPLETE, FAILED = "Complete", "Failed"
_HOUR: Final = 3600 * 1_000_000
_COMPLETED_TTL: Final = _HOUR
_PENDING_TTL: Final = 24 * _HOUR

Fields = Mapping[str, Any]
Pool = tuple[str, str]
"""A driver and the name of one of its pools."""


class IncompletePools(CtrlmgrError):
    """A driver has not published all slices of a pool yet."""


def status_of(request: Object, slices: Iterable[Object], claims: Iterable[Object], now: int) -> dict[str, Any]:
    """Return the status that answers a request at the time `now`; raises `IncompletePools`."""
    spec = request.to_dict()["spec"]
    pools = _pools(spec, [each.to_dict()["spec"] for each in slices])
    shown = [pools[each] for each in sorted(pools)][: spec["limit"]]
    if any(len(each) < each[0]["pool"]["resourceSliceCount"] for each in shown):
        raise IncompletePools("incomplete pools detected, requeueing")
    allocated = _allocated(claims)
    condition = {
        "type": COMPLETE,
        "status": "True",
        "lastTransitionTime": format_time_seconds(now),
        "reason": "CalculationComplete",
        "message": f"Calculated status for {len(shown)} pools",
    }
    statuses = [_pool_status(each, allocated[_pool_of(each[0])]) for each in shown]
    return {"poolCount": len(pools), **({"pools": statuses} if statuses else {}), "conditions": [condition]}


def is_expired(request: Object, now: int) -> bool:
    """Return whether a request was answered more than an hour ago, or has waited for more than a day."""
    status = request.to_dict().get("status")
    created = request.metadata.creation_timestamp
    if status is None:
        return _is_past(created, _PENDING_TTL, now)
    ends = (each for each in status.get("conditions") or () if each.get("type") in (COMPLETE, FAILED))
    end = next(ends, None)
    return _is_past(created if end is None else end.get("lastTransitionTime"), _COMPLETED_TTL, now)


def _is_past(time: str | None, ttl: int, now: int) -> bool:
    return bool(time) and now - parse_time(time or "") > ttl


def _pools(spec: Fields, slices: Iterable[Fields]) -> dict[Pool, list[Fields]]:
    """Return the matching slices of the newest generation of each pool."""
    pools: dict[Pool, list[Fields]] = {}
    for each in slices:
        pool = _pool_of(each)
        if pool[0] == spec["driver"] and spec.get("poolName") in (None, "", pool[1]):
            pools.setdefault(pool, []).append(each)
    return {pool: _newest(each) for pool, each in pools.items()}


def _newest(slices: Sequence[Fields]) -> list[Fields]:
    newest = max(_generation(each) for each in slices)
    return [each for each in slices if _generation(each) == newest]


def _generation(slice_: Fields) -> int:
    return int(slice_["pool"].get("generation") or 0)


def _pool_of(slice_: Fields) -> Pool:
    return slice_["driver"], slice_["pool"]["name"]


def _allocated(claims: Iterable[Object]) -> Counter[Pool]:
    """Return the number of allocated devices of each pool."""
    return Counter((each["driver"], each["pool"]) for claim in claims for each in _results(claim))


def _results(claim: Object) -> Iterator[Fields]:
    allocation = (claim.to_dict().get("status") or {}).get("allocation") or {}
    yield from (allocation.get("devices") or {}).get("results") or ()


def _pool_status(slices: Sequence[Fields], allocated: int) -> dict[str, Any]:
    (driver, name), total = _pool_of(slices[0]), sum(len(each.get("devices") or ()) for each in slices)
    nodes = {each.get("nodeName") or "" for each in slices}
    node = nodes.pop() if len(nodes) == 1 else ""
    return {
        "driver": driver,
        "poolName": name,
        "generation": _generation(slices[0]),
        **({"nodeName": node} if node else {}),
        "resourceSliceCount": len(slices),
        "totalDevices": total,
        "allocatedDevices": allocated,
        "availableDevices": max(0, total - allocated),
        "unavailableDevices": 0,
    }
