"""Whose clients should use an endpoint: the hints that kube-proxy keeps traffic close by.

Guarantees (KEP-4444 and KEP-2433; Kubernetes' `k8s.io/endpointslice/{trafficdist,topologycache}`):
- Only ready endpoints have hints; what is said here is a function of the endpoints, the hints that they have and the
  nodes' CPU. Saying it again changes nothing, but for one case by CPU: see `balance`.
- `spec.trafficDistribution`: an endpoint is for its own zone, with `PreferSameNode` for its own node too.
- The annotation `service.kubernetes.io/topology-mode: Auto`, which comes first: an endpoint is for one zone, mostly its
  own. A zone gets endpoints in proportion to its CPU, and may have a fifth too few at most; where that cannot be, or
  one endpoint's zone is unknown, there are no hints.
- Slices whose hints are good enough stay as they are, so that few have to be written.

Where Go takes any of several zones that are as good, here it is the first by name.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from msgspec.structs import replace

from ctrlmgr.api.discovery import Endpoint, EndpointHints, ForNode, ForZone
from ctrlmgr.controllers.endpointslice.packing import Changes, Draft

OVERLOAD = 0.2
"""By how much an endpoint may be loaded more than if all were loaded alike (`overloadThreshold`)."""

Shares: TypeAlias = Mapping[str, float]
"""The share of each zone in the CPU of all nodes."""

_HINTS = "service.kubernetes.io/topology-aware-hints"  # deprecated, but where it is it counts
_MODE = "service.kubernetes.io/topology-mode"


class Allocation(NamedTuple):
    """How many endpoints a zone should have."""

    minimum: int
    maximum: int
    desired: float


def asks_for_topology(annotations: Mapping[str, str]) -> bool:
    """Whether a service with these annotations wants hints by zones' CPU."""
    return annotations.get(_HINTS, annotations.get(_MODE)) in ("Auto", "auto")


def hint(changes: Changes, traffic_distribution: str) -> None:
    """Give endpoints the hints that a `spec.trafficDistribution` asks for; take them away if it asks for none."""
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
    """Give each ready endpoint its hints and the others none; slices where that changes something are updated."""
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
    """Give endpoints hints such that zones have their `shares` (None: those of some node are not known).

    Returns whether there are any; if not, hints are taken away.
    """
    count = sum(endpoint.is_ready for draft in changes for endpoint in draft.endpoints)
    allocations = allocate(shares, count)
    if allocations is None or not _allot(changes, allocations):
        hint(changes, "")
        return False
    return True


def allocate(shares: Shares | None, count: int) -> dict[str, Allocation] | None:
    """Return how many of `count` endpoints each zone should have; None if they are too few for that."""
    if shares is None or len(shares) < 2 or len(shares) > count:
        return None
    desired = {zone: share * count for zone, share in sorted(shares.items())}
    minimum = {zone: math.ceil(each * (1 / (1 + OVERLOAD))) for zone, each in desired.items()}
    spare = count - sum(minimum.values())
    if spare < 0:
        return None
    return {zone: Allocation(least, least + spare, max(desired[zone], float(least))) for zone, least in minimum.items()}


def _allot(changes: Changes, allocations: Mapping[str, Allocation]) -> bool:
    """Give the endpoints of slices that change hints for their own zone, then some of them for zones that lack any.

    Returns False, with the work half done, if the zone of one of them is unknown.
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
    """Let unchanged slices be updated whose hints do not fit; return how many hints for each zone the others have."""
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
    """Return how many hints for each zone a slice has; None if some are missing, or are for a zone that has no CPU."""
    found: Counter[str] = Counter()
    for endpoint in draft.endpoints:
        if endpoint.is_ready:
            zones = [zone.name for zone in (endpoint.hints and endpoint.hints.for_zones) or ()]
            if not zones or any(zone not in allocations for zone in zones):
                return None
            found.update(zones)
    return found


def balance(allocations: Mapping[str, Allocation], allotted: Mapping[str, int]) -> tuple[Counter[str], Counter[str]]:
    """Return how many endpoints each zone gives to others, and how many each receives (`getGivingAndReceivingZones`).

    One is moved at a time, from where most are to spare to where most are wanting, as long as both are half an endpoint
    at least and one of them a whole one. So a zone may keep more than its maximum, by less than half an endpoint more
    than it desires: the next time an unchanged slice with its hints does not fit, is written once more, and then fits.
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
    """Return an endpoint with a hint for a zone that is to receive one, if its own is to give one."""
    zone = endpoint.zone or ""
    if not endpoint.is_ready or not giving[zone]:
        return endpoint
    receiver = next((each for each in sorted(receiving) if receiving[each]), None)
    if receiver is None:
        return endpoint
    giving[zone] -= 1
    receiving[receiver] -= 1
    return replace(endpoint, hints=_near(receiver, None))
