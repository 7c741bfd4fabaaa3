"""Tests of ResourcePoolStatusRequests: their version, default, spec and columns."""

from collections.abc import Iterator
from typing import Any

import pytest

from ctrlmgr.engine.features.gates import switch
from ctrlmgr.engine.tables.ages import ages_at
from ctrlmgr.kinds.builtin import builtin_kinds
from ctrlmgr.kinds.resource.printers import RESOURCE_POOL_STATUS_REQUEST
from ctrlmgr.kinds.resource.resource_pool_status_requests import ResourcePoolStatusRequestStrategy
from tests.kinds.write import create, update

GROUP = "resource.k8s.io"
STRATEGY = ResourcePoolStatusRequestStrategy()
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
CASELESS = (
    "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'Example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


@pytest.fixture(autouse=True)
def default_gates() -> Iterator[None]:
    yield
    switch({})


def request(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "r"}, "spec": {"driver": "test.example.com", **spec}}


@pytest.mark.parametrize("is_on", [False, True])
def test_the_kind_needs_the_gate(is_on: bool) -> None:
    switch({"DRAResourcePoolStatus": is_on})
    kinds = builtin_kinds(served=[f"{GROUP}/v1alpha3"])
    kind = kinds.find(GROUP, "v1alpha3", "resourcepoolstatusrequests")
    assert (kind is not None) == is_on
    if kind is not None:
        assert (kind.namespaced, kind.stored_version) == (False, "v1alpha3")


@pytest.mark.parametrize(
    ("spec", "errors"),
    [
        ({}, []),
        ({"poolName": "a.b/c", "limit": 1000, "driver": "Test.Example.Com"}, []),
        ({"driver": ""}, ["spec.driver: Required value"]),
        ({"driver": "a_b"}, [f'spec.driver: Invalid value: "a_b": {CASELESS}']),
        (
            {"driver": "A" * 254},
            [f'spec.driver: Invalid value: "{"A" * 254}": must be no more than 253 bytes'],
        ),
        ({"poolName": ""}, ['spec.poolName: Invalid value: "": segment 0: must not be empty']),
        ({"poolName": "a/b_"}, [f'spec.poolName: Invalid value: "b_": segment 1: {SUBDOMAIN}']),
        (
            {"poolName": "a" * 254},
            [
                "spec.poolName: Too long: may not be more than 253 bytes",
                f'spec.poolName: Invalid value: "{"a" * 254}": segment 0: must be no more than 253 bytes',
            ],
        ),
        ({"limit": 0}, ["spec.limit: Invalid value: 0: must be greater than or equal to 1"]),
        ({"limit": 1001}, ["spec.limit: Invalid value: 1001: must be less than or equal to 1000"]),
    ],
)
def test_a_new_request_is_validated(spec: dict[str, Any], errors: list[str]) -> None:
    assert create(STRATEGY, request(**spec), namespaced=False).messages == errors


def test_a_request_is_limited_to_100_pools_by_default() -> None:
    assert create(STRATEGY, request(), namespaced=False).object["spec"]["limit"] == 100
    assert create(STRATEGY, request(limit=3), namespaced=False).object["spec"]["limit"] == 3


def test_the_spec_is_immutable() -> None:
    old = request(limit=100)
    assert update(STRATEGY, old, {"spec": {**old["spec"], "limit": None}}, namespaced=False).messages == []
    changed = update(STRATEGY, old, {"spec": {"driver": ""}}, namespaced=False)
    assert changed.messages == ["spec: Invalid value: null: field is immutable"]


NOW = 1_714_568_400_000_000
NAMES = ("totalDevices", "availableDevices", "allocatedDevices", "unavailableDevices")
POOLS = [dict(zip(NAMES, numbers, strict=True)) for numbers in [(4, 2, 1, 1), (8, 8, 0, 0)]]


def ended(type_: str, status: str = "True") -> dict[str, str]:
    return {"type": type_, "status": status, "lastTransitionTime": "2024-05-01T12:00:00Z"}


@pytest.mark.parametrize(
    ("status", "cells"),
    [
        (None, ["-", "-", "-", "-", "-", 0, "Pending", "<none>"]),
        ({"poolCount": 0}, ["0", "0", "0", "0", "0", 0, "Pending", "<none>"]),
        (
            {"poolCount": 2, "pools": POOLS, "conditions": [ended("Other"), ended("Complete")]},
            ["12", "10", "1", "1", "0", 2, "Complete", "60m"],
        ),
        (
            {"poolCount": 5, "pools": [{"validationError": "x"}], "conditions": [ended("Complete")]},
            ["0", "0", "0", "0", "1", 5, "Complete (1/5 pools)", "60m"],
        ),
        (
            {"poolCount": 2, "pools": POOLS, "conditions": [ended("Complete", "False"), ended("Failed")]},
            ["-", "-", "-", "-", "-", 2, "Failed", "<none>"],
        ),
    ],
)
def test_the_columns_sum_the_devices(status: dict[str, Any] | None, cells: list[Any]) -> None:
    row = RESOURCE_POOL_STATUS_REQUEST.row(
        {**request(), **({} if status is None else {"status": status})}, ages_at(NOW)
    )
    assert list(row) == ["test.example.com", *cells]
