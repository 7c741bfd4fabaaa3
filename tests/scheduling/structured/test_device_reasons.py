"""Tests of the reasons why devices are not allocated to claims."""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.scheduling.dynamic_resources import Allocating, SliceIndex
from ctrlmgr.scheduling.structured.allocator import Claim, UsedDevices
from ctrlmgr.scheduling.structured.device_reasons import SUITABLE
from ctrlmgr.scheduling.structured.pools import DeviceID, Slice

DRIVER = "gpus.example.com"
CLASSES = {
    "gpus": {"metadata": {"name": "gpus"}, "spec": {"selectors": [{"cel": {"expression": "device.driver != 'x'"}}]}},
    "none": {"metadata": {"name": "none"}, "spec": {"selectors": [{"cel": {"expression": "false"}}]}},
}


def reasons(request: dict[str, Any], *, taken: tuple[str, ...] = (), count: int = 1) -> dict[str, str]:
    """Return the reason of each device of a node that has devices `a` and `b`, of which `b` has a taint."""
    taint = {"key": "broken", "effect": "NoSchedule"}
    devices = [
        {"name": "a", "attributes": {"model": {"string": "one"}}},
        {"name": "b", "attributes": {"model": {"string": "two"}}, "taints": [taint]},
    ]
    pool = {"name": "n", "generation": 1, "resourceSliceCount": count}
    spec = {"driver": DRIVER, "nodeName": "n", "pool": pool, "devices": devices}
    used = UsedDevices()
    for each in taken:
        used.add(DeviceID(DRIVER, "n", each), None, 1)
    exactly = {"deviceClassName": "gpus", "allocationMode": "ExactCount", "count": 1, **request}
    claim = Claim("a/mine", {"devices": {"requests": [{"name": "r", "exactly": exactly}]}})
    allocating = Allocating([claim], SliceIndex([Slice("s", spec)]), CLASSES.get, used)
    found = (each.partition(": ") for each in allocating.reasons("n", {}))
    return {head.partition(f"{DRIVER}/n/")[2] or head: reason for head, _, reason in found}


HEAD_A, HEAD_B = "a, claim a/mine, request r", "b, claim a/mine, request r"
TAINTED = "taint broken:NoSchedule is not tolerated"


@pytest.mark.parametrize(
    ("request_fields", "taken", "first", "second"),
    [
        ({}, (), SUITABLE, TAINTED),
        ({}, ("a",), "allocated to another claim", TAINTED),
        ({"adminAccess": True}, ("a",), SUITABLE, TAINTED),
        ({"tolerations": [{"operator": "Exists"}]}, (), SUITABLE, SUITABLE),
        ({"deviceClassName": "missing"}, (), *["device class missing does not exist"] * 2),
        ({"deviceClassName": "none"}, (), *["selector #0 of class none does not match: false"] * 2),
        (
            {"selectors": [{"cel": {"expression": "true"}}, {"cel": {"expression": "device.driver == 'other'"}}]},
            (),
            *["selector #1 of the request does not match: device.driver == 'other'"] * 2,
        ),
    ],
)
def test_each_device_has_the_reason_of_the_first_check_that_excludes_it(
    request_fields: dict[str, Any], taken: tuple[str, ...], first: str, second: str
) -> None:
    assert reasons(request_fields, taken=taken) == {HEAD_A: first, HEAD_B: second}


def test_an_incomplete_pool_is_named() -> None:
    assert reasons({}, count=2)[f"pool {DRIVER}/n"] == "incomplete"


def test_an_expression_that_fails_is_a_reason() -> None:
    broken = {"selectors": [{"cel": {"expression": "device.attributes['other.example.com'].model == 'x'"}}]}
    assert "CEL runtime error" in reasons(broken)[HEAD_A]
