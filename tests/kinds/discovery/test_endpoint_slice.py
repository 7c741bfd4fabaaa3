from typing import Any

import pytest

from ctrlmgr.engine.validation import name_formats
from ctrlmgr.engine.validation.ip_validation import NOT_AN_IP
from ctrlmgr.kinds.discovery.endpoint_slice import EndpointSliceStrategy
from tests.kinds.write import create, update

STRATEGY = EndpointSliceStrategy()
METADATA: dict[str, Any] = {"name": "e", "namespace": "ns", "generation": 3}
ENDPOINT: dict[str, Any] = {"addresses": ["203.0.113.1"]}
SLICE: dict[str, Any] = {
    "metadata": METADATA,
    "addressType": "IPv4",
    "endpoints": [ENDPOINT],
    "ports": [{"name": "", "port": 80, "protocol": "TCP"}],
}


def zones(*each: str) -> dict[str, Any]:
    return {"forZones": [{"name": name} for name in each]}


def test_ports_default_to_tcp_and_an_empty_name() -> None:
    written = create(STRATEGY, {**SLICE, "ports": [{"port": 80}, {"name": "b", "protocol": "UDP"}]})
    assert written.errors == []
    assert written.object["ports"] == [
        {"port": 80, "name": "", "protocol": "TCP"},
        {"name": "b", "protocol": "UDP"},
    ]


@pytest.mark.parametrize(
    ("change", "messages"),
    [
        ({}, []),
        ({"addressType": ""}, ["addressType: Required value"]),
        (
            {"addressType": "IP"},
            ['addressType: Unsupported value: "IP": supported values: "FQDN", "IPv4", "IPv6"'],
        ),
        ({"endpoints": [ENDPOINT] * 1001}, ["endpoints: Too many: 1001: must have at most 1000 items"]),
        ({"ports": [{}] * 20001}, ["ports: Too many: 20001: must have at most 20000 items"]),
        ({"ports": [{}, {}]}, ['ports[1].name: Duplicate value: ""']),
        (
            {"ports": [{"name": "a.b", "protocol": "X", "appProtocol": ""}]},
            [
                'ports[0].name: Invalid value: "a.b": must not contain dots',
                'ports[0].protocol: Unsupported value: "X": supported values: "SCTP", "TCP", "UDP"',
                *[f'ports[0].appProtocol: Invalid value: "": {each}' for each in name_formats.qualified_name("")],
            ],
        ),
    ],
)
def test_slices(change: dict[str, Any], messages: list[str]) -> None:
    assert create(STRATEGY, {**SLICE, **change}).messages == messages


@pytest.mark.parametrize(
    ("endpoint", "messages"),
    [
        ({"addresses": []}, ["addresses: Required value: must contain at least 1 address"]),
        (
            {"addresses": ["203.0.113.1"] * 101},
            ["addresses: Too many: 101: must have at most 100 items"],
        ),
        ({"nodeName": "-"}, [f'nodeName: Invalid value: "-": {name_formats.dns1123_subdomain("-")[0]}']),
        ({"hostname": "a.b"}, ['hostname: Invalid value: "a.b": must not contain dots']),
        ({"hints": zones(*"abcdefghi")}, ["hints.forZones: Too many: 9: must have at most 8 items"]),
        ({"hints": zones("a", "a")}, ['hints.forZones[1].name: Duplicate value: "a"']),
        (
            {"hints": {"forNodes": [{"name": "A"}]}},
            [f'hints.forNodes[0].name: Invalid value: "A": {name_formats.dns1123_subdomain("A")[0]}'],
        ),
        ({"hints": zones("a", "b")}, []),
    ],
)
def test_endpoints(endpoint: dict[str, Any], messages: list[str]) -> None:
    written = create(STRATEGY, {**SLICE, "endpoints": [{**ENDPOINT, **endpoint}]})
    assert written.messages == [f"endpoints[0].{each}" for each in messages]


@pytest.mark.parametrize(
    ("address_type", "address", "problem"),
    [
        ("IPv4", "203.0.113.1", ""),
        ("IPv4", "x", NOT_AN_IP),
        ("IPv4", "010.0.0.1", "must not have leading 0s"),
        ("IPv4", "2001:db8::1", "must be an IPv4 address"),
        ("IPv4", "127.0.0.1", "may not be in the loopback range (127.0.0.0/8, ::1/128)"),
        ("IPv6", "2001:db8::1", ""),
        ("IPv6", "203.0.113.1", "must be an IPv6 address"),
        ("FQDN", "a.example.com.", ""),
        ("FQDN", "example", "should be a domain with at least two segments separated by dots"),
        ("FQDN", "-.example", name_formats.dns1123_subdomain("-")[0]),
    ],
)
def test_addresses_must_have_the_slices_type(address_type: str, address: str, problem: str) -> None:
    written = create(STRATEGY, {**SLICE, "addressType": address_type, "endpoints": [{"addresses": [address]}]})
    path = "endpoints[0].addresses" if problem.startswith("must be an IPv") else "endpoints[0].addresses[0]"
    expected = [f'{path}: Invalid value: "{address}": {problem}'] if problem else []
    assert written.messages == expected


def test_a_domain_name_must_exist_and_consist_of_labels() -> None:
    label = "a" * 64
    written = create(STRATEGY, {**SLICE, "addressType": "FQDN", "endpoints": [{"addresses": ["", f"{label}.com"]}]})
    assert written.messages == [
        "endpoints[0].addresses[0]: Required value",
        f'endpoints[0].addresses[1]: Invalid value: "{label}": must be no more than 63 characters',
    ]


def test_the_type_is_immutable() -> None:
    change = {"addressType": "IPv6", "endpoints": []}
    assert update(STRATEGY, SLICE, change).messages == ['addressType: Invalid value: "IPv6": field is immutable']


def test_unchanged_endpoints_are_tolerated() -> None:
    old = {**SLICE, "endpoints": [{"addresses": ["010.0.0.1"]}]}
    assert update(STRATEGY, old, {"ports": []}).errors == []
    assert len(update(STRATEGY, old, {"endpoints": [*old["endpoints"], ENDPOINT]}).errors) == 1


@pytest.mark.parametrize(
    ("change", "generation"),
    [
        ({}, 3),
        ({"metadata": {**METADATA, "annotations": {"a": "b"}}}, 3),
        ({"metadata": {**METADATA, "labels": {"a": "b"}}}, 4),
        ({"endpoints": []}, 4),
        ({"ports": []}, 4),
    ],
)
def test_the_generation_counts_changes_including_labels(change: dict[str, Any], generation: int) -> None:
    assert update(STRATEGY, SLICE, change).object["metadata"]["generation"] == generation


def test_the_first_generation_is_1() -> None:
    assert create(STRATEGY, {**SLICE, "metadata": {"name": "e", "generation": 9}}).object["metadata"]["generation"] == 1


def test_deprecated_topology_is_dropped_except_the_node() -> None:
    old_style = {"addresses": ["203.0.113.2"], "deprecatedTopology": {"kubernetes.io/hostname": "n"}}
    assert create(STRATEGY, {**SLICE, "endpoints": [old_style]}).object["endpoints"] == [{"addresses": ["203.0.113.2"]}]
    old = {**SLICE, "endpoints": [old_style]}
    assert update(STRATEGY, old, {"ports": []}).object["endpoints"] == [old_style]
    changed = update(STRATEGY, old, {"endpoints": [old_style, ENDPOINT]})
    assert changed.object["endpoints"] == [{"addresses": ["203.0.113.2"], "nodeName": "n"}, ENDPOINT]


def test_slices_that_cause_warnings() -> None:
    domains = {**SLICE, "addressType": "FQDN", "endpoints": [{"addresses": ["a.example"]}]}
    assert create(STRATEGY, domains).warnings == ["spec.addressType: FQDN endpoints are deprecated"]
    assert update(STRATEGY, domains, {"ports": []}).warnings == []
    odd = {**SLICE, "addressType": "IPv6", "endpoints": [{"addresses": ["2001:DB8::1"]}]}
    (warning,) = create(STRATEGY, odd).warnings
    assert warning.startswith('endpoints[0].addresses[0]: IPv6 address "2001:DB8::1" should be in RFC 5952')
    labels = {"endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"}
    assert create(STRATEGY, {**odd, "metadata": {"name": "e", "labels": labels}}).warnings == []
