"""Tests of the addresses of Services with additional ServiceCIDRs."""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.errors import InternalError, Invalid
from ctrlmgr.eventlog.event import EventType, Proposal
from ctrlmgr.kinds.allocators.service_cidrs import SERVICE_CIDRS
from ctrlmgr.kinds.allocators.service_ranges import Ranges
from tests.kinds.core.service.service_stage import NOW, Stage

PORTS: dict[str, Any] = {"ports": [{"port": 80}]}
SMALL = Ranges.parse("10.96.0.0/29", "30000-30003")
FIRST = [f"10.96.0.{last}" for last in range(2, 7)]
"""The addresses that are allocated automatically; the first address belongs to the Service `kubernetes`."""
NOT_OF_IT = "the provided network does not match the current range"


def service_cidr(name: str, *cidrs: str, ready: str = "", **metadata: Any) -> Object:
    head = {"kind": "ServiceCIDR", "apiVersion": "networking.k8s.io/v1", "metadata": {"name": name, **metadata}}
    status = {"conditions": [{"type": "Ready", "status": ready}]} if ready else {}
    return Object.from_dict({**head, "spec": {"cidrs": cidrs}, "status": status})


def put(stage: Stage, obj: Object) -> None:
    known = stage.state.get(obj.resource, obj.key)
    kind = EventType.MODIFIED if known else EventType.ADDED
    stage.state.append([Proposal(kind, obj, known.revision if known else 0)])


def remove(stage: Stage, name: str) -> None:
    [found] = [each for each in stage.state.list(SERVICE_CIDRS) if each.name == name]
    stage.state.append([Proposal(EventType.DELETED, found, found.revision)])


def fill(stage: Stage) -> list[str]:
    """Create Services until no address is free; return the allocated addresses."""
    given: list[str] = []
    while True:
        try:
            given.append(stage.create(PORTS, f"s{len(stage.state.objects)}")["spec"]["clusterIP"])
        except InternalError as error:
            if str(error).endswith("failed to allocate a serviceIP: range is full"):
                return given
            raise


def error_of_request(stage: Stage, address: str, **options: Any) -> str:
    """Return the error for a request of a certain address; the string is empty if the address is free."""
    try:
        stage.create(PORTS | {"clusterIP": address}, f"s{len(stage.state.objects)}", **options)
    except Invalid as error:
        return str(error).rpartition(f"failed to allocate IP {address}: ")[2]
    return ""


def test_a_full_range_is_extended_by_another_service_cidr() -> None:
    stage = Stage(SMALL)
    assert sorted(fill(stage)) == FIRST
    put(stage, service_cidr("more", "10.97.0.0/29", ready="True"))
    assert sorted(fill(stage)) == [f"10.97.0.{last}" for last in range(1, 7)]
    put(stage, service_cidr("still-more", "10.98.0.0/30"))  # without a condition Ready
    assert sorted(fill(stage)) == ["10.98.0.1", "10.98.0.2"]


def test_ranges_can_overlap() -> None:
    stage = Stage(SMALL)
    put(stage, service_cidr("wider", "10.96.0.0/28"))
    assert sorted(fill(stage), key=lambda each: int(each.rpartition(".")[2])) == [
        f"10.96.0.{last}" for last in range(1, 15)
    ]


@pytest.mark.parametrize(
    ("obj", "problem"),
    [
        pytest.param(service_cidr("more", "10.97.0.0/24", ready="True"), "", id="ready"),
        pytest.param(service_cidr("more", "10.97.0.0/24"), "", id="nobody says that it is not"),
        pytest.param(service_cidr("more", "10.97.0.0/24", ready="False"), NOT_OF_IT, id="not ready"),
        pytest.param(service_cidr("more", "10.97.0.0/24", ready="Unknown"), NOT_OF_IT, id="nobody knows"),
        pytest.param(
            service_cidr("more", "10.97.0.0/24", ready="True", deletionTimestamp=NOW), NOT_OF_IT, id="on its way out"
        ),
        pytest.param(service_cidr("more", "10.98.0.0/24", ready="True"), NOT_OF_IT, id="another range"),
    ],
)
def test_an_address_of_a_ready_range_can_be_requested(obj: Object, problem: str) -> None:
    stage = Stage(SMALL)
    put(stage, obj)
    assert error_of_request(stage, "10.97.0.9") == problem
    assert error_of_request(stage, "10.96.0.5") == ""


def test_an_address_in_overlapping_ranges_is_allocated_once() -> None:
    stage = Stage(SMALL)
    for name in ("a", "b"):
        put(stage, service_cidr(name, "10.97.0.0/24"))
    assert error_of_request(stage, "10.97.0.9") == ""
    assert error_of_request(stage, "10.97.0.9") == "provided IP is already allocated"


@pytest.mark.parametrize(
    ("others", "given"),
    [([], []), (["10.96.0.0/29"], FIRST), (["10.97.0.0/30"], ["10.97.0.1", "10.97.0.2"])],
    ids=["alone", "another of the same", "another"],
)
def test_the_default_range_allocates_nothing_while_its_service_cidr_is_deleted(
    others: list[str], given: list[str]
) -> None:
    stage = Stage(SMALL)
    put(stage, service_cidr("kubernetes", "10.96.0.0/29", ready="True", deletionTimestamp=NOW))
    for cidr in others:
        put(stage, service_cidr("another", cidr, ready="True"))
    assert sorted(fill(stage)) == given


def test_a_deleted_range_allocates_nothing() -> None:
    stage = Stage(SMALL)
    put(stage, service_cidr("more", "10.97.0.0/24"))
    assert error_of_request(stage, "10.97.0.9") == ""
    remove(stage, "more")
    assert error_of_request(stage, "10.97.0.10") == NOT_OF_IT
    assert sorted(fill(stage)) == FIRST


@pytest.mark.parametrize(
    "cidr", ["fd00::/112", "10.97.0.0/31", "10.97.0.0/32"], ids=["another family", "two addresses", "one address"]
)
def test_ranges_that_allocate_nothing(cidr: str) -> None:
    stage = Stage(SMALL)
    put(stage, service_cidr("more", cidr))
    assert sorted(fill(stage)) == FIRST


def test_a_range_of_the_second_family_enables_dual_stack() -> None:
    stage = Stage(Ranges.parse("10.96.0.0/29,fd00::/125", "30000-30003"))
    put(stage, service_cidr("more", "10.97.0.0/29", "fd01::/64"))
    put(stage, service_cidr("too-large", "fd02::/48"))
    dual = PORTS | {"ipFamilyPolicy": "RequireDualStack"}
    given = [stage.create(dual, f"s{number}")["spec"]["clusterIPs"] for number in range(11)]
    assert len({each for pair in given for each in pair}) == 22
    assert sum(address.startswith("fd01::") for _, address in given) == 11 - 6


def test_a_dry_run_uses_the_first_range() -> None:
    stage = Stage(SMALL)
    put(stage, service_cidr("more", "10.97.0.0/29"))
    assert stage.create(PORTS, dry_run=True)["spec"]["clusterIP"] == "10.96.0.0"
    assert error_of_request(stage, "10.97.0.3", dry_run=True) == ""
    assert error_of_request(stage, "10.99.0.3", dry_run=True) == (
        "the provided IP (10.99.0.3) is not in the valid range. The range of valid IPs is 10.96.0.0/29"
    )
