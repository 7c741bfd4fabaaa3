"""A naive implementation of the documented allocation of devices (DRA), which tries every assignment.

The naive implementation shares no code with the allocator under test. Device selectors have the form
`device.attributes["d"].model == "a"`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

Thing = dict[str, Any]
Choice = tuple[str, str, tuple[str, ...]]
"""A claim with one of its requests, and the names of the devices for this request."""


def selected(device: Thing, selectors: Sequence[Thing]) -> bool:
    for each in selectors:
        found = re.fullmatch(r'device\.attributes\["d"\]\.(\w+) == "(\w+)"', each["cel"]["expression"])
        assert found is not None
        if device["attributes"][found[1]]["string"] != found[2]:
            return False
    return True


def tolerated(request: Thing, device: Thing) -> bool:
    keys = {each["key"] for each in request.get("tolerations", [])}
    return all(each["key"] in keys for each in device.get("taints", []))


def choices(request: Thing, devices: Sequence[Thing]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each possible set of devices for a request, with the name of the request, or of the alternative that is
    used.
    """
    options = (
        [(request["name"], request["exactly"])]
        if "exactly" in request
        else [(f"{request['name']}/{each['name']}", each) for each in request["firstAvailable"]]
    )
    for name, option in options:
        fit = [each for each in devices if selected(each, option.get("selectors", []))]
        if option["allocationMode"] == "All":
            sets = [tuple(each["name"] for each in fit)] if fit and all(tolerated(option, each) for each in fit) else []
        else:
            usable = [each["name"] for each in fit if tolerated(option, each)]
            sets = [*combinations(usable, option["count"])]
        for chosen in sets:
            yield name, chosen


def is_valid(claims: Mapping[str, Thing], chosen: Sequence[Choice], world: Thing) -> bool:
    """Return whether each device is allocated only once, counters suffice and constraints hold; `world` contains the
    devices.
    """
    devices = {each["name"]: each for each in world["devices"]}
    given = [name for _, _, names in chosen for name in names]
    if len(given) != len(set(given)) or set(given) & set(world["taken"]):
        return False
    used = sum(int(devices[name].get("needs", 0)) for name in [*given, *world["taken"]])
    if used > world["counter"]:
        return False
    for claim, spec in claims.items():
        for each in spec.get("constraints", []):
            names = [
                name
                for owner, request, found in chosen
                if owner == claim and (not each.get("requests") or request.split("/")[0] in each["requests"])
                for name in found
            ]
            which = each.get("matchAttribute") or each["distinctAttribute"]
            values = [devices[name]["attributes"][which.split("/")[1]]["string"] for name in names]
            if "matchAttribute" in each and len(set(values)) > 1:
                return False
            if "distinctAttribute" in each and len(set(values)) != len(values):
                return False
    return True


def is_feasible(claims: Mapping[str, Thing], world: Thing) -> bool:
    requests = [(claim, each) for claim, spec in claims.items() for each in spec["requests"]]
    return any(is_valid(claims, each, world) for each in assignments(requests, world, []))


def assignments(requests: Sequence[tuple[str, Thing]], world: Thing, before: list[Choice]) -> Iterator[list[Choice]]:
    if not requests:
        yield before
        return
    (claim, request), *rest = requests
    for name, names in choices(request, world["devices"]):
        yield from assignments(rest, world, [*before, (claim, name, names)])
