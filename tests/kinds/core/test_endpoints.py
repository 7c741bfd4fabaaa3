from typing import Any

import pytest

from ctrlmgr.engine.validation import name_formats
from ctrlmgr.engine.validation.ip_validation import NOT_AN_IP
from ctrlmgr.kinds.core.endpoints import EndpointsStrategy
from tests.kinds.write import create, update

STRATEGY = EndpointsStrategy()
METADATA: dict[str, Any] = {"name": "e", "namespace": "ns"}
ADDRESS = {"ip": "203.0.113.1"}


def endpoints(*subsets: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {"metadata": {**METADATA, **metadata}, "subsets": list(subsets)}


def test_ports_default_to_tcp() -> None:
    subset = {
        "addresses": [ADDRESS],
        "ports": [{"name": "a", "port": 80}, {"name": "b", "port": 53, "protocol": "UDP"}],
    }
    written = create(STRATEGY, endpoints(subset))
    assert written.errors == []
    assert [port["protocol"] for port in written.object["subsets"][0]["ports"]] == ["TCP", "UDP"]


@pytest.mark.parametrize(
    ("subset", "messages"),
    [
        ({"notReadyAddresses": [{**ADDRESS, "nodeName": "n.example", "hostname": "h"}]}, []),
        ({}, [": Required value: must specify `addresses` or `notReadyAddresses`"]),
        ({"ports": []}, [": Required value: must specify `addresses` or `notReadyAddresses`"]),
        (
            {"addresses": [{"ip": "x"}]},
            [
                f'.addresses[0].ip: Invalid value: "x": {NOT_AN_IP}',
                '.addresses[0].ip: Invalid value: "x": must be a valid IP address',
            ],
        ),
        (
            {"notReadyAddresses": [ADDRESS, {"ip": "127.0.0.1"}]},
            [
                '.notReadyAddresses[1].ip: Invalid value: "127.0.0.1": '
                "may not be in the loopback range (127.0.0.0/8, ::1/128)"
            ],
        ),
        (
            {"addresses": [{**ADDRESS, "hostname": "a.b"}]},
            ['.addresses[0].hostname: Invalid value: "a.b": must not contain dots'],
        ),
        (
            {"addresses": [{**ADDRESS, "nodeName": ""}]},
            [f'.addresses[0].nodeName: Invalid value: "": {name_formats.dns1123_subdomain("")[0]}'],
        ),
        (
            {"addresses": [ADDRESS], "ports": [{"port": 0, "protocol": "X"}]},
            [
                ".ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
                '.ports[0].protocol: Unsupported value: "X": supported values: "SCTP", "TCP", "UDP"',
            ],
        ),
        (
            {"addresses": [ADDRESS], "ports": [{"port": 1, "name": "a"}, {"port": 2}]},
            [".ports[1].name: Required value"],
        ),
        (
            {"addresses": [ADDRESS], "ports": [{"port": 1, "name": "a.b", "appProtocol": "x~"}]},
            [
                '.ports[0].name: Invalid value: "a.b": must not contain dots',
                f'.ports[0].appProtocol: Invalid value: "x~": {name_formats.qualified_name("x~")[0]}',
            ],
        ),
    ],
)
def test_subsets(subset: dict[str, Any], messages: list[str]) -> None:
    expected = [f"subsets[0]{each}" for each in messages]
    assert create(STRATEGY, endpoints(subset)).messages == expected
    assert update(STRATEGY, endpoints(), {"subsets": [subset]}).messages == expected


def test_unchanged_subsets_are_tolerated() -> None:
    old = endpoints({"addresses": [{"ip": "010.0.0.1"}]})
    labels = {"metadata": {**METADATA, "labels": {"a": "b"}, "uid": "u", "resourceVersion": "5"}}
    assert update(STRATEGY, old, labels).errors == []
    assert len(update(STRATEGY, old, {"subsets": [*old["subsets"], {"addresses": [ADDRESS]}]}).errors) == 1


def test_non_canonical_addresses_cause_warnings_unless_the_controller_writes_them() -> None:
    odd = {"addresses": [ADDRESS], "notReadyAddresses": [{"ip": "2001:DB8::1"}]}
    words = 'IPv6 address "2001:DB8::1" should be in RFC 5952 canonical format ("2001:db8::1")'
    assert create(STRATEGY, endpoints(odd)).warnings == [f"subsets[0].notReadyAddresses[0].ip: {words}"]
    labels = {"endpoints.kubernetes.io/managed-by": "endpoint-controller"}
    assert create(STRATEGY, endpoints(odd, labels=labels)).warnings == []


def test_endpoints_are_created_by_a_put() -> None:
    assert STRATEGY.allow_create_on_update
