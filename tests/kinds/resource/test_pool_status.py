"""Tests of the status of ResourcePoolStatusRequests."""

from typing import Any

import pytest

from ctrlmgr.kinds.resource.resource_pool_status_requests import ResourcePoolStatusRequestStrategy
from tests.kinds.resource.test_resource_pool_status_requests import CASELESS, SUBDOMAIN, request
from tests.kinds.write import create, update

STRATEGY = ResourcePoolStatusRequestStrategy()
POOL = {"driver": "test.example.com", "poolName": "pool-1", "generation": 1}
CONDITION = {"type": "Complete", "status": "True", "lastTransitionTime": "2024-05-01T12:00:00Z", "reason": "R"}


def status(**fields: Any) -> dict[str, Any]:
    return {"poolCount": 1, "pools": [POOL], "conditions": [CONDITION], **fields}


def messages(new: dict[str, Any] | None, old: dict[str, Any] | None = None) -> list[str]:
    stored = {**request(limit=100), **({} if old is None else {"status": old})}
    return update(STRATEGY, stored, {"status": new}, subresource="status", namespaced=False).messages


@pytest.mark.parametrize(
    ("new", "errors"),
    [
        (None, []),
        (status(), []),
        (status(poolCount=0, pools=[], conditions=[]), []),
        ({}, ["status.poolCount: Required value"]),
        (status(poolCount=-1), ["status.poolCount: Invalid value: -1: must be greater than or equal to 0"]),
        (status(poolCount=1001, pools=[{}] * 1001), ["status.pools: Too many: 1001: must have at most 1000 items"]),
        (status(conditions=[{**CONDITION, "reason": ""}]), ["status.conditions[0].reason: Required value"]),
        (
            status(conditions=[CONDITION, CONDITION]),
            [
                'status.conditions[1].type: Duplicate value: "Complete"',
                'status.conditions[1]: Duplicate value: {"type":"Complete","status":"True",'
                '"lastTransitionTime":"2024-05-01T12:00:00Z","reason":"R","message":""}',
            ],
        ),
        (
            status(conditions=[{**CONDITION, "type": f"T{at}"} for at in range(11)]),
            ["status.conditions: Too many: 11: must have at most 10 items"],
        ),
    ],
)
def test_the_first_status_is_validated(new: dict[str, Any] | None, errors: list[str]) -> None:
    assert messages(new) == errors


@pytest.mark.parametrize(
    ("fields", "errors"),
    [
        ({"resourceSliceCount": 1, "totalDevices": 0, "nodeName": "n", "validationError": "x" * 256}, []),
        ({"driver": ""}, ["driver: Required value"]),
        ({"driver": "a b"}, [f'driver: Invalid value: "a b": {CASELESS}']),
        ({"poolName": ""}, ["poolName: Required value"]),
        ({"poolName": "a/"}, ['poolName: Invalid value: "a/": segment 1: must not be empty']),
        ({"generation": 0}, ["generation: Required value"]),
        ({"generation": -1}, ["generation: Invalid value: -1: must be greater than or equal to 0"]),
        ({"resourceSliceCount": 0}, ["resourceSliceCount: Invalid value: 0: must be greater than or equal to 1"]),
        ({"totalDevices": -1}, ["totalDevices: Invalid value: -1: must be greater than or equal to 0"]),
        ({"allocatedDevices": -1}, ["allocatedDevices: Invalid value: -1: must be greater than or equal to 0"]),
        ({"availableDevices": -1}, ["availableDevices: Invalid value: -1: must be greater than or equal to 0"]),
        ({"unavailableDevices": -1}, ["unavailableDevices: Invalid value: -1: must be greater than or equal to 0"]),
        ({"nodeName": "a b"}, [f'nodeName: Invalid value: "a b": {SUBDOMAIN}']),
        ({"validationError": "ä" * 129}, ["validationError: Too long: may not be more than 256 bytes"]),
    ],
)
def test_a_pool_is_validated(fields: dict[str, Any], errors: list[str]) -> None:
    assert messages(status(pools=[{**POOL, **fields}])) == [f"status.pools[0].{each}" for each in errors]


def test_a_status_that_is_set_is_immutable() -> None:
    old = {"poolCount": 2}
    assert messages({**old, "pools": []}, old) == []
    shown = '{"PoolCount":5,"Pools":null,"Conditions":null}'
    assert messages({"poolCount": 5}, old) == [f"status: Invalid value: {shown}: field is immutable"]
    assert messages(None, old) == ["status: Invalid value: null: field is immutable"]


def test_changed_parts_of_a_status_are_validated_too() -> None:
    invalid = {"poolCount": -1, "pools": [{**POOL, "totalDevices": 0}]}
    found = messages({**invalid, "conditions": [CONDITION, CONDITION]}, invalid)
    pool = (
        '{"Driver":"test.example.com","PoolName":"pool-1","Generation":1,"ResourceSliceCount":null,"TotalDevices":0,'
        '"AllocatedDevices":null,"AvailableDevices":null,"UnavailableDevices":null,"NodeName":null,'
        '"ValidationError":null}'
    )
    each = '{"type":"Complete","status":"True","lastTransitionTime":"2024-05-01T12:00:00Z","reason":"R","message":""}'
    assert found == [
        f'status: Invalid value: {{"PoolCount":-1,"Pools":[{pool}],"Conditions":[{each},{each}]}}: field is immutable',
        f"status.conditions[1]: Duplicate value: {each}",
    ]
    assert messages({"pools": [POOL]}, {"poolCount": 1, "pools": [POOL]})[1:] == ["status.poolCount: Required value"]


def test_a_condition_shows_its_observed_generation() -> None:
    observed = {**CONDITION, "observedGeneration": 3}
    (_, shown) = messages(status(conditions=[CONDITION, observed]))
    assert '"status":"True","observedGeneration":3,"lastTransitionTime"' in shown


def test_a_new_request_with_a_status_is_valid() -> None:
    """The engine removes the status of a new object, so that the strategy need not validate it."""
    assert create(STRATEGY, {**request(), "status": {"poolCount": -1}}, namespaced=False).messages == []
