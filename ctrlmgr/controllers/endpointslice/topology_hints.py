"""Assigns hints to endpoints; kube-proxy reads the hints to keep traffic in the same zone or on the same node.

Guarantees (KEP-4444 and KEP-2433; Kubernetes' `k8s.io/endpointslice/{trafficdist,topologycache}`):
- Only ready endpoints get topology hints. The hints depend only on the endpoints, their current hints and the CPU
  capacity of nodes. Assigning the hints again changes nothing, except in one case that `balance` describes.
- If `spec.trafficDistribution` is set, the hint is the endpoint's own zone. With `PreferSameNode`, the hint also
  contains the endpoint's own node.
- The annotation `service.kubernetes.io/topology-mode: Auto` has precedence over `spec.trafficDistribution`. With this
  annotation, the hint of an endpoint is one zone, mostly the endpoint's own zone. Zones get endpoints in proportion to
  their CPU. A zone gets at least four fifths of its share of endpoints. If a distribution in proportion to CPU is
  impossible, or an endpoint's zone is unknown, there are no hints.
- Slices with acceptable hints are not changed, so that few slices are written.

If several zones are equal candidates, Kubernetes chooses one of them at random. ctrlmgr chooses the first zone in the
order of names.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from msgspec.structs import replace

from ctrlmgr.api.discovery import Endpoint, EndpointHints, ForNode, ForZone
from ctrlmgr.controllers.endpointslice.slice_packing import Changes, Draft

OVERLOAD = 0.2
"""The maximum relative overload of an endpoint (`overloadThreshold`)."""

Shares: TypeAlias = Mapping[str, float]
"""The share of each zone in the CPU of all nodes."""

_HINTS = "service.kubernetes.io/topology-aware-hints"  # This annotation is deprecated, but it still has precedence.
_MODE = "service.kubernetes.io/topology-mode"


class Allocation(NamedTuple):
    """The number of endpoints that a zone should have."""

    minimum: int
    maximum: int
    desired: float


def asks_for_topology(annotations: Mapping[str, str]) -> bool:
    """Return whether a Service with these annotations requests hints that are based on the CPU of zones."""
    return annotations.get(_HINTS, annotations.get(_MODE)) in ("Auto", "auto")


def hint(changes: Changes, traffic_distribution: str) -> None:
    """Assign the hints that `spec.trafficDistribution` requests; if it requests none, remove existing hints."""
    match traffic_distribution:
        case "PreferClose" | "PreferSameZone":
            _assign(changes, lambda endpoint: _near(endpoint.zone, None))
        case "PreferSameNode":
            _assign(changes, lambda endpoint: _near(endpoint.zone, endpoint.node_name))
        case _:
            if any(endpoint.hints for draft in changes for endpoint in draft.endpoints):
                _assign(changes, lambda endpoint: None)


@lru_cache(maxsize=4096)
def _near(zone: str | None, node: str | None) -> EndpointHints | None:
    if zone is None and node is None:
        return None
    return EndpointHints(None if zone is None else [ForZone(zone)], None if node is None else [ForNode(node)])


def _assign(changes: Changes, hints_of: Callable[[Endpoint], EndpointHints | None]) -> None:
    """Assign hints to ready endpoints and remove all other hints; move changed slices to the list of updates."""
    for draft in changes.create + changes.update:
        draft.endpoints = [_hinted(endpoint, hints_of) for endpoint in draft.endpoints]
    unchanged = []
    for draft in changes.unchanged:
        endpoints = [_hinted(endpoint, hints_of) for endpoint in draft.endpoints]
        if endpoints == draft.endpoints:
            unchanged.append(draft)
        else:
            draft.endpoints = endpoints
            changes.update.append(draft)
    changes.unchanged = unchanged


def _hinted(endpoint: Endpoint, hints_of: Callable[[Endpoint], EndpointHints | None]) -> Endpoint:
    hints = hints_of(endpoint) if endpoint.is_ready else None
    return endpoint if endpoint.hints == hints else replace(endpoint, hints=hints)


def hint_by_cpu(changes: Changes, shares: Shares | None) -> bool:
    """Assign hints in proportion to the zones' `shares` of CPU.

    The argument `shares` is None if the zone or CPU of a node is unknown.

    The function returns whether it has assigned hints. If no hints were assigned, existing hints are removed.
    """
    count = sum(endpoint.is_ready for draft in changes for endpoint in draft.endpoints)
    allocations = allocate(shares, count)
    if allocations is None or not _allot(changes, allocations):
        hint(changes, "")
        return False
    return True


def allocate(shares: Shares | None, count: int) -> dict[str, Allocation] | None:
    """Return how many of `count` endpoints each zone should have; None if there are too few endpoints."""
    if shares is None or len(shares) < 2 or len(shares) > count:
        return None
    desired = {zone: share * count for zone, share in sorted(shares.items())}
    minimum = {zone: math.ceil(each * (1 / (1 + OVERLOAD))) for zone, each in desired.items()}
    spare = count - sum(minimum.values())
    if spare < 0:
        return None
    return {zone: Allocation(least, least + spare, max(desired[zone], float(least))) for zone, least in minimum.items()}


def _allot(changes: Changes, allocations: Mapping[str, Allocation]) -> bool:
    """Assign hints in those slices that will be written anyway.

    First, the hint of each endpoint is its own zone. Finally, the hints of some endpoints change to zones that lack
    endpoints. If the zone of an endpoint is unknown, the function returns False, and some hints are already assigned.
    """
    allotted = _keep_good(changes, allocations)
    drafts = changes.create + changes.update
    for draft in drafts:
        if not all(endpoint.zone for endpoint in draft.endpoints if endpoint.is_ready):
            return False
        draft.endpoints = [_hinted(endpoint, lambda each: _near(each.zone, None)) for endpoint in draft.endpoints]
        allotted.update(endpoint.zone or "" for endpoint in draft.endpoints if endpoint.is_ready)
    giving, receiving = balance(allocations, allotted)
    for draft in drafts:
        draft.endpoints = [_given_away(endpoint, giving, receiving) for endpoint in draft.endpoints]
    return bool(allotted)


def _keep_good(changes: Changes, allocations: Mapping[str, Allocation]) -> Counter[str]:
    """Move unchanged slices with unsuitable hints to the updates.

    Return the number of hints per zone in the remaining slices.
    """
    allotted: Counter[str] = Counter()
    unchanged = []
    for draft in changes.unchanged:
        hints = _hints_by_zone(draft, allocations)
        if hints is None or any(allotted[zone] + more > allocations[zone].maximum for zone, more in hints.items()):
            changes.update.append(draft)
        else:
            unchanged.append(draft)
            allotted.update(hints)
    changes.unchanged = unchanged
    return allotted


def _hints_by_zone(draft: Draft, allocations: Mapping[str, Allocation]) -> Counter[str] | None:
    """Return the number of hints per zone in one slice; None if a hint is missing or its zone has no CPU."""
    found: Counter[str] = Counter()
    for endpoint in draft.endpoints:
        if endpoint.is_ready:
            zones = [zone.name for zone in (endpoint.hints and endpoint.hints.for_zones) or ()]
            if not zones or any(zone not in allocations for zone in zones):
                return None
            found.update(zones)
    return found


def balance(allocations: Mapping[str, Allocation], allotted: Mapping[str, int]) -> tuple[Counter[str], Counter[str]]:
    """Return how many endpoints each zone transfers to each other zone (`getGivingAndReceivingZones`).

    One endpoint is moved at a time, from the zone with the largest surplus to the zone with the largest deficit. An
    endpoint is moved if both the surplus and the deficit are at least 0.5, and one of them is at least 1. Therefore the
    number of endpoints of a zone may exceed its desired number by up to one half, and may exceed the zone's maximum. If
    a zone exceeds its maximum, the next call updates one more unchanged slice.
    """
    distance = {zone: allotted.get(zone, 0) - allocation.desired for zone, allocation in allocations.items()}
    spare = {zone: each for zone, each in distance.items() if each > 0}
    wanting = {zone: -each for zone, each in distance.items() if each < 0}
    giving: Counter[str] = Counter()
    receiving: Counter[str] = Counter()
    while spare and wanting:
        giver, receiver = max(spare, key=spare.__getitem__), max(wanting, key=wanting.__getitem__)
        gives, wants = spare[giver], wanting[receiver]
        if min(gives, wants) < 0.5 or max(gives, wants) < 1.0:
            break
        spare[giver] -= 1
        wanting[receiver] -= 1
        giving[giver] += 1
        receiving[receiver] += 1
    return giving, receiving


def _given_away(endpoint: Endpoint, giving: Counter[str], receiving: Counter[str]) -> Endpoint:
    """Return the endpoint; its hint is another zone if its own zone transfers an endpoint to that zone."""
    zone = endpoint.zone or ""
    if not endpoint.is_ready or not giving[zone]:
        return endpoint
    receiver = next((each for each in sorted(receiving) if receiving[each]), None)
    if receiver is None:
        return endpoint
    giving[zone] -= 1
    receiving[receiver] -= 1
    return replace(endpoint, hints=_near(receiver, None))
