from __future__ import annotations

from itertools import permutations

import pytest

from ctrlmgr.api.core import EndpointAddress, EndpointPort, EndpointSubset, ObjectReference
from ctrlmgr.controllers.go_hash import fnv1a_128, port_order, subset_order


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(b"", 0x6C62272E07BB014262B821756295C58D, id="of nothing: the offset basis"),
        pytest.param(b"a", 0xD228CB696F1A8CAF78912B704E4A8964, id="of a"),
        pytest.param(b"foobar", 0x343E1662793C64BF6F0D3597BA446F18, id="of foobar"),
    ],
)
def test_fnv1a_128_has_the_published_values(data: bytes, expected: int) -> None:
    assert fnv1a_128(data) == expected


def tcp(name: str, number: int) -> EndpointPort:
    return EndpointPort(name, number, "TCP")


@pytest.mark.parametrize(
    "recorded",
    [
        pytest.param([tcp("b", 9999), tcp("a", 8000)], id="two"),
        pytest.param([tcp("http", 8080), tcp("metrics", 9100)], id="two more"),
        pytest.param([tcp("b", 2000), tcp("a", 2000)], id="one number under two names"),
        pytest.param([EndpointPort("num", 7778, "SCTP"), EndpointPort("sctp", 7777, "SCTP")], id="SCTP"),
        pytest.param([EndpointPort("dns-udp", 5353, "UDP"), EndpointPort("dns-tcp", 5353, "TCP")], id="two protocols"),
        pytest.param(
            [tcp("p0", 200), tcp("p2", 202), tcp("p4", 204), tcp("p1", 201), tcp("p5", 205), tcp("p3", 203)], id="six"
        ),
    ],
)
def test_ports_sort_as_kubernetes_1_36_recorded_them(recorded: list[EndpointPort]) -> None:
    for shuffled in permutations(recorded):
        assert sorted(shuffled, key=port_order) == recorded


def address(ip: str, node: str, namespace: str, pod: str, uid: str) -> EndpointAddress:
    return EndpointAddress(ip, node_name=node, target_ref=ObjectReference("Pod", namespace, pod, uid))


P0 = address("192.0.2.10", "node-a", "ee7-a", "p0", "90153fd1-fa20-4829-adb7-aa464f9309d0")
P1 = address("192.0.2.11", "node-b", "ee7-a", "p1", "47c06dbb-1ee8-452b-8bfe-1038815b0534")

ONE_PORT_AT_TWO_NUMBERS = [
    EndpointSubset([P0, P1], None, [tcp("b", 9999)]),
    EndpointSubset([P1], None, [tcp("a", 8001)]),
    EndpointSubset([P0], None, [tcp("a", 8000)]),
]

READY_AND_NOT = [
    EndpointSubset(
        [address("10.139.0.4", "node-d", "ee11-a", "p2", "4883f6e2-015d-4328-a99b-b678d2be4639")],
        [
            address("10.139.0.10", "node-b", "ee11-a", "p8", "7dddffe1-363e-4a03-89f5-78d17676714f"),
            address("10.139.0.3", "node-d", "ee11-a", "p1", "b81d12ae-b3de-42be-a5c0-968031449f84"),
        ],
        [tcp("web", 8080)],
    ),
    EndpointSubset(
        [address("10.139.0.9", "node-d", "ee11-a", "p7", "cab90fd4-4185-4a0e-92be-210d37e96f9a")],
        None,
        [tcp("web", 9090)],
    ),
    EndpointSubset(
        None,
        [address("10.139.0.8", "node-a", "ee11-a", "p6", "bc86d4d2-4339-4cbf-8d53-3ee9be5f0fd9")],
        [tcp("metrics", 9100)],
    ),
]


@pytest.mark.parametrize(
    "recorded",
    [
        pytest.param(ONE_PORT_AT_TWO_NUMBERS, id="one port at two numbers"),
        pytest.param(READY_AND_NOT, id="ready and not ready addresses"),
    ],
)
def test_subsets_sort_as_kubernetes_1_36_recorded_them(recorded: list[EndpointSubset]) -> None:
    for shuffled in permutations(recorded):
        assert sorted(shuffled, key=subset_order) == recorded


def test_an_app_protocol_and_a_nil_one_hash_differently() -> None:
    assert port_order(EndpointPort("a", 1, "TCP", "")) != port_order(EndpointPort("a", 1, "TCP", None))


def test_a_subset_is_hashed_as_go_prints_it() -> None:
    target = ObjectReference("Pod", "ns", "p", "u", "v1", "7", "spec")
    subset = EndpointSubset(
        [EndpointAddress("10.0.0.1", "h", "n", target), EndpointAddress("10.0.0.2")],
        None,
        [EndpointPort("a", 1, "TCP", "x"), EndpointPort("b", 2, "UDP")],
    )
    printed = (
        "(v1.EndpointSubset){Addresses:([]v1.EndpointAddress)["
        "{IP:(string)10.0.0.1 Hostname:(string)h NodeName:(*string)n TargetRef:(*v1.ObjectReference){Kind:(string)Pod "
        "Namespace:(string)ns Name:(string)p UID:(types.UID)u APIVersion:(string)v1 ResourceVersion:(string)7 "
        "FieldPath:(string)spec}} "
        "{IP:(string)10.0.0.2 Hostname:(string) NodeName:(*string)<nil> TargetRef:(*v1.ObjectReference)<nil>}] "
        "NotReadyAddresses:([]v1.EndpointAddress)<nil> Ports:([]v1.EndpointPort)["
        "{Name:(string)a Port:(int32)1 Protocol:(v1.Protocol)TCP AppProtocol:(*string)x} "
        "{Name:(string)b Port:(int32)2 Protocol:(v1.Protocol)UDP AppProtocol:(*string)<nil>}]}"
    )
    assert subset_order(subset) == fnv1a_128(printed.encode())
