"""Property tests of the device allocator: it finds devices if and only if a valid assignment exists, and its result is
valid.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from ctrlmgr.scheduling.structured.allocator import Claim, UsedDevices, allocate
from ctrlmgr.scheduling.structured.device_selectors import AllocationError
from ctrlmgr.scheduling.structured.pools import DeviceID, NodePlace, Slice, gather
from tests.scheduling.structured.naive_devices import Choice, Thing, is_feasible, is_valid, selected, tolerated

CASES = 500
CLASS: Thing = {"metadata": {"name": "gpus"}, "spec": {}}


def device(random: Random, name: str) -> Thing:
    attributes = {"model": {"string": random.choice("ab")}, "numa": {"string": random.choice("xyz")}}
    found: Thing = {"name": name, "attributes": attributes}
    if random.random() < 0.15:
        found["taints"] = [{"key": "broken", "effect": random.choice(["NoSchedule", "NoExecute"])}]
    if random.random() < 0.4:
        found["needs"] = random.randint(1, 3)
    return found


def option(random: Random) -> Thing:
    found: Thing = {"deviceClassName": "gpus", "allocationMode": "ExactCount", "count": random.choice([1, 1, 2, 3])}
    if random.random() < 0.15:
        del found["count"]
        found["allocationMode"] = "All"
    if random.random() < 0.5:
        found["selectors"] = [{"cel": {"expression": f'device.attributes["d"].model == "{random.choice("ab")}"'}}]
    if random.random() < 0.3:
        found["tolerations"] = [{"key": "broken", "operator": "Exists"}]
    return found


def request(random: Random, name: str) -> Thing:
    if random.random() < 0.3:
        return {"name": name, "firstAvailable": [{"name": each, **option(random)} for each in "pq"]}
    return {"name": name, "exactly": option(random)}


def claim(random: Random) -> Thing:
    found: Thing = {"requests": [request(random, name) for name in "rs"[: random.randint(1, 2)]]}
    if random.random() < 0.4:
        kind, which = random.choice([("matchAttribute", "d/numa"), ("distinctAttribute", "d/numa")])
        found["constraints"] = [{kind: which, **({"requests": ["r"]} if random.random() < 0.4 else {})}]
    return found


def world(random: Random) -> Thing:
    devices = [device(random, f"d{number}") for number in range(random.randint(2, 6))]
    taken = [each["name"] for each in devices if random.random() < 0.15]
    return {"devices": devices, "taken": taken, "counter": random.randint(4, 8)}


def published(each: Thing) -> Thing:
    """Return a device in the form in which its driver publishes it."""
    needs = each.get("needs")
    counters = [{"counterSet": "set", "counters": {"slots": {"value": str(needs)}}}]
    fields = {key: value for key, value in each.items() if key != "needs"}
    return {**fields, **({"consumesCounters": counters} if needs else {})}


def slices(of: Thing) -> list[Slice]:
    head = {"driver": "d", "nodeName": "n", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 2}}
    shared = [{"name": "set", "counters": {"slots": {"value": str(of["counter"])}}}]
    devices = [published(each) for each in of["devices"]]
    return [Slice("a", {**head, "devices": devices}), Slice("b", {**head, "sharedCounters": shared})]


def found(claims: dict[str, Thing], of: Thing) -> list[Choice] | str | None:
    taken = UsedDevices()
    for name in of["taken"]:
        taken.add(DeviceID("d", "p", name), None, 1)
    asked = [Claim(name, {"devices": spec}) for name, spec in claims.items()]
    try:
        solution = allocate(gather(NodePlace("n", {}), slices(of)), asked, {"gpus": CLASS}.get, taken)
    except AllocationError as error:
        return str(error)
    if solution is None:
        return None
    chosen: list[Choice] = []
    for each, results in zip(asked, solution.chosen, strict=True):
        names: dict[str, list[str]] = {}
        for one in results:
            names.setdefault(one.request, []).append(one.device.id.device)
        chosen += [(each.name, name, tuple(given)) for name, given in names.items()]
    return chosen


def fits_request(claims: dict[str, Thing], of: Thing, choice: Choice) -> bool:
    owner, name, names = choice
    base, _, alternative = name.partition("/")
    request = next(each for each in claims[owner]["requests"] if each["name"] == base)
    option: Any = request.get("exactly") or next(
        each for each in request["firstAvailable"] if each["name"] == alternative
    )
    devices = {each["name"]: each for each in of["devices"]}
    fit = [each["name"] for each in of["devices"] if selected(each, option.get("selectors", []))]
    wanted = len(fit) if option["allocationMode"] == "All" else option["count"]
    return len(names) == wanted and set(names) <= set(fit) and all(tolerated(option, devices[each]) for each in names)


@pytest.mark.parametrize("start", range(0, CASES, 50))
def test_devices_are_found_exactly_when_an_assignment_is_valid(start: int) -> None:
    outcomes = set()
    for seed in range(start, start + 50):
        random = Random(seed)
        of = world(random)
        claims = {f"a/{name}": claim(random) for name in "xy"[: random.randint(1, 2)]}
        chosen = found(claims, of)
        # as in Kubernetes, a request for all devices is an error if a constraint refuses them
        if isinstance(chosen, str):
            assert chosen.endswith("because a claim constraint would not be satisfied")
            continue
        assert (chosen is not None) is is_feasible(claims, of), (seed, claims, of)
        outcomes.add(chosen is not None)
        if chosen is not None:
            assert is_valid(claims, chosen, of), (seed, chosen)
            assert all(fits_request(claims, of, each) for each in chosen), (seed, chosen)
    assert outcomes == {True, False}
