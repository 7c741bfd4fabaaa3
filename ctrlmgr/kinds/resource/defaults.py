"""The defaults of the kinds for dynamic resource allocation.

Source: Kubernetes `pkg/apis/resource/v1/defaults.go`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

ALL = "All"
EXACT_COUNT = "ExactCount"


def default_claim_spec(spec: Mapping[str, Any]) -> None:
    """Set the default count in device requests, which is 1, in place."""
    for request in _requests(spec):
        if not request.get("allocationMode"):
            request["allocationMode"] = EXACT_COUNT
        if request["allocationMode"] == EXACT_COUNT and not request.get("count"):
            request["count"] = 1


def _requests(spec: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for request in (spec.get("devices") or {}).get("requests") or ():
        if request.get("exactly") is not None:
            yield request["exactly"]
        yield from request.get("firstAvailable") or ()


def default_slice_spec(spec: Mapping[str, Any]) -> None:
    """Set the default multipliers with which devices use node resources, which are 1, in place."""
    for device in spec.get("devices") or ():
        for mapping in (device.get("nodeAllocatableResourceMappings") or {}).values():
            if mapping.get("allocationMultiplier") is None:
                mapping["allocationMultiplier"] = "1"


def stamp_taints(spec: Mapping[str, Any], now: str) -> None:
    """Set the timestamps of taints that have no timestamp to the current time (RFC 3339), in place."""
    for device in spec.get("devices") or ():
        for taint in device.get("taints") or ():
            if taint.get("timeAdded") is None:
                taint["timeAdded"] = now
