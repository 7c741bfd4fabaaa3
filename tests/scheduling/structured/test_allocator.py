from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.scheduling.structured.allocator import Claim, UsedDevices, allocate
from ctrlmgr.scheduling.structured.device_selectors import AllocationError
from ctrlmgr.scheduling.structured.pools import DeviceID, NodePlace, Slice, gather
from ctrlmgr.scheduling.structured.results import allocations

Thing = dict[str, Any]
NODE = NodePlace("n", {"zone": "z"})


def slice_(name: str = "s", *devices: Thing, count: int = 1, generation: int = 1, **spec: Any) -> Slice:
    pool = {"name": "p", "generation": generation, "resourceSliceCount": count}
    place = {} if {"allNodes", "nodeSelector", "perDeviceNodeSelection"} & {*spec} else {"nodeName": "n"}
    return Slice(name, {"driver": "d", "pool": pool, **place, "devices": [*devices], **spec})


def device(name: str, **fields: Any) -> Thing:
    return {"name": name, **fields}


def ask(name: str = "r", **fields: Any) -> Thing:
    return {"name": name, "exactly": exactly(**fields)}


def exactly(**fields: Any) -> Thing:
    return {"deviceClassName": "c", "allocationMode": "ExactCount", "count": 1, **fields}


def results(
    slices: list[Slice], *requests: Thing, taken: UsedDevices | None = None, config: Any = (), **class_: Any
) -> list[Thing] | None:
    """Return the allocation of one ResourceClaim; return None if no allocation is possible."""
    claims = [Claim("a/x", {"devices": {"requests": [*requests], "config": config}})]
    classes = {"c": {"metadata": {"name": "c"}, "spec": class_}}
    solution = allocate(gather(NODE, slices), claims, classes.get, taken or UsedDevices())
    return None if solution is None else allocations(claims, solution, "n", lambda: "id")


def chosen(slices: list[Slice], *requests: Thing, taken: UsedDevices | None = None) -> list[str] | None:
    found = results(slices, *requests, taken=taken)
    return None if found is None else [each["device"] for each in found[0]["devices"]["results"]]


def selector(expression: str) -> list[Thing]:
    return [{"cel": {"expression": expression}}]


def test_devices_are_tried_in_the_order_of_slices_by_name_and_of_the_slice() -> None:
    slices = [slice_("t", device("c"), count=2), slice_("s", device("b"), device("a"), count=2)]
    assert chosen(slices, ask(count=3)) == ["b", "a", "c"]


def test_an_incomplete_pool_allocates_no_device() -> None:
    slices = [slice_("s", device("a"), count=2)]
    assert chosen(slices, ask()) is None
    with pytest.raises(AllocationError, match="resource pool d/p is currently being updated"):
        chosen(slices, ask(allocationMode="All", count=0))


def test_slices_of_older_generations_do_not_count() -> None:
    slices = [slice_("s", device("old")), slice_("t", device("new"), generation=2)]
    assert chosen(slices, ask()) == ["new"]


def test_a_pool_with_two_devices_of_one_name_is_invalid() -> None:
    with pytest.raises(AllocationError, match="invalid resource pools were encountered"):
        chosen([slice_("s", device("a"), device("a"))], ask())


@pytest.mark.parametrize(
    ("place", "fits"),
    [
        ({"nodeName": "other"}, False),
        ({"allNodes": True}, True),
        (
            {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}]}},
            True,
        ),
        (
            {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "rack", "operator": "Exists"}]}]}},
            False,
        ),
    ],
)
def test_only_devices_reachable_from_the_node_are_allocated(place: Thing, fits: bool) -> None:
    assert (chosen([slice_("s", device("a"), **place)], ask()) is not None) is fits
    each = [slice_("s", device("a", **place), perDeviceNodeSelection=True)]
    assert (chosen(each, ask()) is not None) is fits


def test_the_node_selector_of_an_allocation_equals_the_devices() -> None:
    terms = [{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}]
    found = results([slice_("s", device("a"), nodeSelector={"nodeSelectorTerms": terms})], ask())
    assert found is not None
    assert found[0]["nodeSelector"] == {"nodeSelectorTerms": terms}
    everywhere = results([slice_("s", device("a"), allNodes=True)], ask())
    assert everywhere is not None
    assert "nodeSelector" not in everywhere[0]


def test_selectors_of_the_class_and_of_the_request_must_match() -> None:
    devices = [device(name, attributes={"x": {"int": number}}) for name, number in (("a", 1), ("b", 2), ("c", 3))]
    request = ask(selectors=selector('device.attributes["d"].x > 1'))
    found = results([slice_("s", *devices)], request, selectors=selector('device.attributes["d"].x < 3'))
    assert found is not None
    assert [each["device"] for each in found[0]["devices"]["results"]] == ["b"]


def test_selectors_read_versions_capacities_and_the_driver() -> None:
    fields = {"attributes": {"v": {"version": "1.2.3"}}, "capacity": {"memory": {"value": "10Gi"}}}
    where = 'device.driver == "d" && device.attributes["d"].v.compareTo(semver("1.2.0")) > 0'
    bigger = 'device.capacity["d"].memory.compareTo(quantity("8Gi")) > 0'
    slices = [slice_("s", device("a", **fields))]
    assert chosen(slices, ask(selectors=selector(f"{where} && {bigger}"))) == ["a"]
    assert chosen(slices, ask(selectors=selector(f"{where} && !({bigger})"))) is None


def test_the_first_alternative_with_devices_is_used() -> None:
    wanted = [{"name": "many", **exactly(count=3)}, {"name": "few", **exactly(count=2)}]
    request = {"name": "r", "firstAvailable": wanted}
    config = [{"requests": ["r/few"], "opaque": {"driver": "d", "parameters": {"a": 1}}}]
    found = results([slice_("s", device("a"), device("b"))], request, config=config)
    assert found is not None
    assert [each["request"] for each in found[0]["devices"]["results"]] == ["r/few", "r/few"]
    assert [each["requests"] for each in found[0]["devices"]["config"]] == [["r/few"]]
    assert results(
        [slice_("s", device("a"), device("b"))], request, config=[{**config[0], "requests": ["r/many"]}]
    ) == [{"devices": {"results": found[0]["devices"]["results"]}, "nodeSelector": found[0]["nodeSelector"]}]


def test_the_configuration_of_a_class_is_added_once_for_all_its_requests() -> None:
    opaque = {"opaque": {"driver": "d", "parameters": {"a": 1}}}
    claims = [Claim("a/x", {"devices": {"requests": [ask("r"), ask("t")], "config": [opaque]}})]
    classes = {"c": {"metadata": {"name": "c"}, "spec": {"config": [opaque]}}}
    solution = allocate(gather(NODE, [slice_("s", device("a"), device("b"))]), claims, classes.get, UsedDevices())
    assert solution is not None
    assert allocations(claims, solution, "n", lambda: "id")[0]["devices"]["config"] == [
        {"source": "FromClass", "requests": ["r", "t"], **opaque},
        {"source": "FromClaim", **opaque},
    ]


def test_more_than_32_devices_of_a_claim_are_refused() -> None:
    with pytest.raises(AllocationError, match="number of requested devices 33 exceeds the claim limit of 32"):
        chosen([slice_("s")], ask(count=33))


def test_all_devices_are_allocated_or_none() -> None:
    slices = [slice_("s", device("a"), device("b"))]
    request = ask(allocationMode="All", count=0)
    assert chosen(slices, request) == ["a", "b"]
    taken = UsedDevices()
    taken.add(DeviceID("d", "p", "a"), None, 1)
    assert chosen(slices, request, taken=taken) is None
    assert chosen([slice_("s")], request) is None


def test_admin_access_occupies_nothing_and_finds_devices_in_use() -> None:
    taken = UsedDevices()
    taken.add(DeviceID("d", "p", "a"), None, 1)
    slices = [slice_("s", device("a"))]
    assert chosen(slices, ask(), taken=taken) is None
    found = results(slices, ask(adminAccess=True), taken=taken)
    assert found is not None
    assert found[0]["devices"]["results"][0]["adminAccess"] is True


@pytest.mark.parametrize(
    ("effect", "tolerations", "fits"),
    [
        ("NoSchedule", [], False),
        ("NoExecute", [], False),
        ("None", [], True),
        ("NoSchedule", [{"key": "k", "operator": "Exists"}], True),
        ("NoSchedule", [{"operator": "Exists"}], True),
        ("NoSchedule", [{"key": "k", "operator": "Equal", "value": "v"}], True),
        ("NoSchedule", [{"key": "k", "operator": "Equal", "value": "w"}], False),
        ("NoSchedule", [{"key": "k", "operator": "Exists", "effect": "NoExecute"}], False),
    ],
)
def test_taints_exclude_devices_unless_they_are_tolerated(effect: str, tolerations: list[Thing], fits: bool) -> None:
    slices = [slice_("s", device("a", taints=[{"key": "k", "value": "v", "effect": effect}]))]
    assert (chosen(slices, ask(tolerations=tolerations)) is not None) is fits


SHARED = {"allowMultipleAllocations": True, "capacity": {"memory": {"value": "10Gi"}}}


def portion(amount: str) -> Thing:
    return ask(capacity={"requests": {"memory": amount}})


def test_claims_share_a_device_until_its_capacity_is_consumed() -> None:
    slices = [slice_("s", device("a", **SHARED))]
    taken = UsedDevices()
    taken.add(DeviceID("d", "p", "a"), {"memory": 4 * 1024**3 * 10**9}, 1)
    found = results(slices, portion("6Gi"), taken=taken)
    assert found is not None
    result = found[0]["devices"]["results"][0]
    assert (result["shareID"], result["consumedCapacity"]) == ("id", {"memory": "6Gi"})
    assert chosen(slices, portion("7Gi"), taken=taken) is None
    assert chosen(slices, ask(), taken=taken) is None  # without a requested capacity, the whole capacity is allocated
    taken.add(DeviceID("d", "p", "a"), {"memory": 4 * 1024**3 * 10**9}, -1)
    assert chosen(slices, portion("7Gi"), taken=taken) == ["a"]


@pytest.mark.parametrize(
    ("policy", "wanted", "given"),
    [
        ({"default": "2Gi", "validRange": {"min": "1Gi", "step": "1Gi"}}, None, "2Gi"),
        ({"default": "2Gi", "validRange": {"min": "1Gi", "step": "1Gi"}}, "1500Mi", "2Gi"),
        ({"default": "2Gi", "validRange": {"min": "1Gi", "step": "1Gi"}}, "1Mi", "1Gi"),
        ({"default": "2Gi", "validRange": {"min": "1Gi", "max": "4Gi"}}, "5Gi", None),
        ({"default": "2Gi", "validValues": ["2Gi", "4Gi"]}, "3Gi", "4Gi"),
        ({"default": "2Gi", "validValues": ["2Gi", "4Gi"]}, "5Gi", None),
    ],
)
def test_portions_are_rounded_by_the_policy(policy: Thing, wanted: str | None, given: str | None) -> None:
    fields = {**SHARED, "capacity": {"memory": {"value": "10Gi", "requestPolicy": policy}}}
    found = results([slice_("s", device("a", **fields))], ask() if wanted is None else portion(wanted))
    assert (None if found is None else found[0]["devices"]["results"][0]["consumedCapacity"]["memory"]) == given


def test_a_missing_capacity_excludes_the_device() -> None:
    slices = [slice_("s", device("a"), device("b", **SHARED))]
    assert chosen(slices, portion("1Gi")) == ["b"]


def test_devices_do_not_exceed_the_shared_counters() -> None:
    def part(name: str, slots: int) -> Thing:
        counters = {"slots": {"value": str(slots)}}
        return device(name, consumesCounters=[{"counterSet": "set", "counters": counters}])

    counters = [{"name": "set", "counters": {"slots": {"value": "4"}}}]
    slices = [slice_("s", part("half", 2), part("most", 3), part("rest", 2), count=2)]
    slices.append(slice_("t", sharedCounters=counters, count=2))
    assert chosen(slices, ask(count=2)) == ["half", "rest"]
    taken = UsedDevices()
    taken.add(DeviceID("d", "p", "most"), None, 1)
    assert chosen(slices, ask(), taken=taken) is None
