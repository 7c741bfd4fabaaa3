from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.api.field import FieldError
from ctrlmgr.engine.strategy import Strategy
from ctrlmgr.kinds.networking.ip_address import IPAddressStrategy, address_name
from ctrlmgr.kinds.networking.service_cidr import ServiceCIDRStrategy
from tests.kinds.core.service.service_stage import Stage

IMMUTABLE = "field is immutable"
PARENT = {"resource": "services", "namespace": "ns", "name": "s"}


def found(errors: list[FieldError]) -> list[tuple[str, str]]:
    return [(error.field, error.body) for error in errors]


def check(strategy: Strategy, obj: dict[str, Any]) -> list[tuple[str, str]]:
    return found(strategy.validate(Stage().context(), obj))


def check_change(strategy: Strategy, new: dict[str, Any], old: dict[str, Any]) -> list[tuple[str, str]]:
    return found(strategy.validate_update(Stage().context(old=old), new, old))


NAMES = [
    ("10.96.0.1", []),
    ("fd00:10:96::1", []),
    ("10.96.0.01", ["must not have leading 0s"]),
    ("FD00:10:96::1", ['must be in canonical form ("fd00:10:96::1")']),
    ("::ffff:10.96.0.1", ["must not be an IPv4-mapped IPv6 address"]),
    ("a: b", ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]),
]


@pytest.mark.parametrize(("name", "problems"), NAMES)
def test_an_ip_address_is_named_by_its_canonical_form(name: str, problems: list[str]) -> None:
    assert IPAddressStrategy.name_check(name, False) == address_name(name) == problems


PARENTS = [
    (PARENT, []),
    (PARENT | {"group": "example.com"}, []),
    (None, [("spec.parentRef", "Required value")]),
    ({}, [("spec.parentRef.resource", "Required value"), ("spec.parentRef.name", "Required value")]),
    (
        {"group": "a_b", "resource": "a/b", "namespace": "..", "name": "a%b"},
        [
            (
                "spec.parentRef.group",
                'Invalid value: "a_b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric '
                "characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', "
                r"regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
            ),
            ("spec.parentRef.resource", "Invalid value: \"a/b\": may not contain '/'"),
            ("spec.parentRef.name", "Invalid value: \"a%b\": may not contain '%'"),
            ("spec.parentRef.namespace", "Invalid value: \"..\": may not be '..'"),
        ],
    ),
]


@pytest.mark.parametrize(("parent", "errors"), PARENTS)
def test_an_ip_address_names_its_owner(parent: dict[str, Any] | None, errors: list[tuple[str, str]]) -> None:
    assert check(IPAddressStrategy(), {"spec": {"parentRef": parent}}) == errors


def test_the_owner_of_an_ip_address_is_immutable() -> None:
    old = {"spec": {"parentRef": PARENT}}
    assert check_change(IPAddressStrategy(), {"spec": {"parentRef": PARENT | {"group": ""}}}, old) == []
    shown = '{"Group":"","Resource":"services","Namespace":"ns","Name":"t"}'
    assert check_change(IPAddressStrategy(), {"spec": {"parentRef": PARENT | {"name": "t"}}}, old) == [
        ("spec.parentRef", f"Invalid value: {shown}: {IMMUTABLE}")
    ]
    assert check_change(IPAddressStrategy(), {}, old) == [("spec.parentRef", f"Invalid value: null: {IMMUTABLE}")]


def cidrs(*values: str) -> dict[str, Any]:
    return {"spec": {"cidrs": list(values)}}


RANGES = [
    (cidrs("10.96.0.0/16"), []),
    (cidrs("fd00:10:96::/112", "10.96.0.0/16"), []),
    (cidrs(), [("spec.cidrs", "Required value: at least one CIDR required")]),
    (
        cidrs("10.0.0.0/16", "10.1.0.0/16", "10.2.0.0/16"),
        [
            (
                "spec.cidrs",
                'Invalid value: {"CIDRs":["10.0.0.0/16","10.1.0.0/16","10.2.0.0/16"]}: may only hold up to 2 values',
            )
        ],
    ),
    (
        cidrs("10.0.0.0/16", "10.1.0.0/16"),
        [
            (
                "spec.cidrs",
                'Invalid value: ["10.0.0.0/16","10.1.0.0/16"]: may specify no more than one IP for each IP family, i.e '
                "192.168.0.0/24 and 2001:db8::/64",
            )
        ],
    ),
    (
        cidrs("10.96.0.1/16"),
        [("spec.cidrs[0]", 'Invalid value: "10.96.0.1/16": must not have bits set beyond the prefix length')],
    ),
    (
        cidrs("FD00:10:96::/112"),
        [("spec.cidrs[0]", 'Invalid value: "FD00:10:96::/112": must be in canonical form ("fd00:10:96::/112")')],
    ),
]


@pytest.mark.parametrize(("obj", "errors"), RANGES)
def test_a_service_cidr_has_one_range_or_one_per_family(obj: dict[str, Any], errors: list[tuple[str, str]]) -> None:
    assert check(ServiceCIDRStrategy(), obj) == errors


FOUR, SIX, OTHER = "10.96.0.0/16", "fd00:10:96::/112", "10.97.0.0/16"
CHANGES = [
    (cidrs(FOUR), cidrs(FOUR), []),
    (cidrs(FOUR), cidrs(FOUR, SIX), []),
    (cidrs(FOUR), cidrs(OTHER), [("spec.cidrs[0]", f'Invalid value: "{OTHER}": {IMMUTABLE}')]),
    (cidrs(FOUR), cidrs(SIX, FOUR), [("spec.cidrs[0]", f'Invalid value: "{SIX}": {IMMUTABLE}')]),
    (cidrs(FOUR, SIX), cidrs(FOUR), [("spec.cidrs", f'Invalid value: ["{FOUR}"]: {IMMUTABLE}')]),
    (cidrs(FOUR), cidrs(), [("spec.cidrs", f"Invalid value: null: {IMMUTABLE}")]),
    (cidrs(FOUR), cidrs("x"), [("spec.cidrs[0]", f'Invalid value: "x": {IMMUTABLE}')]),
    (
        cidrs(FOUR),
        cidrs(FOUR, FOUR),
        [
            (
                "spec.cidrs",
                f'Invalid value: ["{FOUR}","{FOUR}"]: may specify no more than one IP for each IP family, i.e '
                "192.168.0.0/24 and 2001:db8::/64",
            )
        ],
    ),
    (
        cidrs(FOUR, SIX),
        cidrs(SIX, FOUR),
        [
            ("spec.cidrs[0]", f'Invalid value: "{SIX}": {IMMUTABLE}'),
            ("spec.cidrs[1]", f'Invalid value: "{FOUR}": {IMMUTABLE}'),
        ],
    ),
]


@pytest.mark.parametrize(("old", "new", "errors"), CHANGES)
def test_a_service_cidr_can_only_gain_a_second_range(
    old: dict[str, Any], new: dict[str, Any], errors: list[tuple[str, str]]
) -> None:
    assert check_change(ServiceCIDRStrategy(), new, old) == errors


def test_every_client_can_write_the_status_of_a_service_cidr() -> None:
    ctx = Stage().context(old=cidrs(FOUR), subresource="status")
    assert ServiceCIDRStrategy().validate(ctx, {}) == ServiceCIDRStrategy().validate_update(ctx, {}, cidrs(FOUR)) == []
