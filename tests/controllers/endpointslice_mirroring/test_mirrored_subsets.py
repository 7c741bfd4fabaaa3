"""Tests of the conversion of Endpoints subsets to endpoints of slices, by IP family and ports."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctrlmgr.api.core import EndpointAddress, EndpointPort, EndpointSubset
from ctrlmgr.controllers import endpointslice_mirroring
from ctrlmgr.controllers.endpointslice_mirroring.mirrored_subsets import mirrored_groups, repack

MAX_ADDRESSES = endpointslice_mirroring.Options().mirroring_max_endpoints_per_subset


def subset(ready: str = "", not_ready: str = "", ports: str = "") -> EndpointSubset:
    """Return a subset of addresses and ports; a letter names each address and each port."""
    return EndpointSubset(
        [EndpointAddress(f"10.0.0.{ord(each)}") for each in ready] or None,
        [EndpointAddress(f"10.0.0.{ord(each)}") for each in not_ready] or None,
        [EndpointPort(each, ord(each), "TCP") for each in ports] or None,
    )


def letters(subset: EndpointSubset) -> tuple[str, str, str]:
    def of(addresses: list[EndpointAddress] | None) -> str:
        return "".join(chr(int(each.ip.rpartition(".")[2])) for each in addresses or ())

    return of(subset.addresses), of(subset.not_ready_addresses), "".join(port.name for port in subset.ports or ())


@pytest.mark.parametrize(
    ("subsets", "expected"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param([subset("ab", "c", "xy")], [("ab", "c", "xy")], id="as it should be"),
        pytest.param([subset("ba", "", "x")], [("ab", "", "x")], id="in order"),
        pytest.param([subset("a", "", "x"), subset("a", "", "y")], [("a", "", "xy")], id="one address, cut by ports"),
        pytest.param([subset("a", "", "x"), subset("b", "", "x")], [("ab", "", "x")], id="one port, cut by addresses"),
        pytest.param(
            [subset("ab", "", "x"), subset("a", "", "y")],
            [("ab", "", "x"), ("a", "", "y")],
            id="ports with other addresses stay apart",
        ),
        pytest.param(
            [subset("a", "", "x"), subset("", "a", "x")], [("", "a", "x")], id="not ready somewhere is not ready"
        ),
        pytest.param([subset("", "a", "x"), subset("a", "", "x")], [("", "a", "x")], id="whichever comes first"),
        pytest.param(
            [subset("a", "", "x"), subset("", "a", "y")],
            [("a", "", "x"), ("", "a", "y")],
            id="ready at one port and not at another",
        ),
        pytest.param([subset("a")], [("a", "", "")], id="no ports"),
        pytest.param([subset("a"), subset("a", "", "x")], [("a", "", "x")], id="with and without ports"),
        pytest.param([subset("aa", "", "xx")], [("a", "", "x")], id="said twice"),
        pytest.param([subset("", "", "x")], [], id="a port without addresses"),
    ],
)
def test_repacking(subsets: list[EndpointSubset], expected: list[tuple[str, str, str]]) -> None:
    assert [letters(each) for each in repack(subsets)] == expected


some_letters = st.text("abc", max_size=3)


@given(st.lists(st.builds(subset, some_letters, some_letters, some_letters), max_size=4))
def test_repacking_again_changes_nothing(subsets: list[EndpointSubset]) -> None:
    once = repack(subsets)
    assert sorted(map(letters, repack(once))) == sorted(map(letters, once))


def groups(*subsets: dict[str, Any]) -> dict[str, list[tuple[list[str], list[Any]]]]:
    found = mirrored_groups(msgspec.convert(subsets, list[EndpointSubset]), MAX_ADDRESSES)
    return {
        address_type: [
            ([f"{port.name}:{port.port}" for port in group.ports], msgspec.to_builtins([*group.endpoints.values()]))
            for group in groups.values()
        ]
        for address_type, groups in found.items()
    }


PORT = {"name": "http", "port": 80, "protocol": "TCP", "appProtocol": "h2c"}


def test_an_endpoint_has_the_fields_of_its_address() -> None:
    target = {"kind": "Pod", "namespace": "default", "name": "p", "resourceVersion": "7"}
    address = {"ip": "10.0.0.1", "hostname": "h", "nodeName": "n", "targetRef": target}
    assert groups({"addresses": [address], "notReadyAddresses": [{"ip": "10.0.0.2"}], "ports": [PORT]}) == {
        "IPv4": [
            (
                ["http:80"],
                [
                    {
                        "addresses": ["10.0.0.1"],
                        "conditions": {"ready": True},
                        "hostname": "h",
                        "targetRef": target,
                        "nodeName": "n",
                    },
                    {"addresses": ["10.0.0.2"], "conditions": {"ready": False}},
                ],
            )
        ],
        "IPv6": [],
    }


def test_an_empty_node_name_becomes_none() -> None:
    [(_, [endpoint])] = groups({"addresses": [{"ip": "10.0.0.1", "nodeName": ""}]})["IPv4"]
    assert "nodeName" not in endpoint


def test_families_are_separated_and_addresses_formatted_like_go() -> None:
    found = groups({"addresses": [{"ip": "FD00::01"}, {"ip": "010.0.0.1"}, {"ip": "nonsense"}], "ports": [PORT]})
    assert {family: [each["addresses"] for _, group in of for each in group] for family, of in found.items()} == {
        "IPv4": [["10.0.0.1"]],
        "IPv6": [["fd00::1"]],
    }


def test_at_most_the_maximum_is_mirrored_and_ready_addresses_have_priority() -> None:
    def addresses(count: int, block: int) -> list[dict[str, str]]:
        return [{"ip": f"10.{block}.{number // 250}.{number % 250}"} for number in range(count)]

    [(_, endpoints)] = groups({"addresses": addresses(900, 9), "notReadyAddresses": addresses(300, 1)})["IPv4"]
    assert len(endpoints) == MAX_ADDRESSES
    assert sum(each["conditions"]["ready"] for each in endpoints) == 900


def test_ports_have_the_order_of_kubernetes() -> None:
    ports = [{"name": "web", "port": 8080, "protocol": "TCP"}, {"name": "udp", "port": 53, "protocol": "UDP"}]
    [(found, _)] = groups({"addresses": [{"ip": "10.0.0.1"}], "ports": ports})["IPv4"]
    assert found == ["udp:53", "web:8080"]
