from ipaddress import IPv4Address, IPv6Address

import pytest

from ctrlmgr.api.field import Path
from ctrlmgr.engine.validation.ip_validation import (
    NOT_A_CIDR,
    NOT_AN_IP,
    canonical_network,
    cidr_warnings,
    ip_warnings,
    is_ipv6,
    is_usual,
    parse_cidr,
    parse_ip,
    validate_cidr,
    validate_endpoint_ip,
    validate_ip,
    validate_legacy_cidr,
    validate_legacy_ip,
)

FIELD = Path("f")
LEADING_ZEROS = "must not have leading 0s"
MAPPED = "must not be an IPv4-mapped IPv6 address"


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("1.2.3.4", IPv4Address("1.2.3.4")),
        ("010.002.3.0000004", IPv4Address("10.2.3.4")),
        ("::ffff:1.2.3.4", IPv4Address("1.2.3.4")),
        ("::ffff:01.2.3.4", IPv4Address("1.2.3.4")),
        ("FE80:0:0:0:0:0:0:0abc", IPv6Address("fe80::abc")),
        ("00001::", IPv6Address("1::")),
        ("::", IPv6Address("::")),
    ],
)
def test_an_address_is_parsed_leniently(text: str, address: IPv4Address | IPv6Address) -> None:
    assert parse_ip(text) == address
    assert is_ipv6(text) == isinstance(address, IPv6Address)


@pytest.mark.parametrize(
    "text", ["", "x", "1.2.3", "1.2.3.256", "1.2.3.4.5", "1.2.3.-4", " 1.2.3.4", "１.2.3.4", "fe80::1%eth0", "1::2::3"]
)
def test_an_invalid_address_is_refused(text: str) -> None:
    assert parse_ip(text) is None
    assert [error.body for error in validate_legacy_ip(FIELD, text)] == [f'Invalid value: "{text}": {NOT_AN_IP}']
    assert ip_warnings(FIELD, text) == []


@pytest.mark.parametrize(
    ("text", "legacy", "canonical"),
    [
        ("1.2.3.4", [], []),
        ("fe80::abc", [], []),
        ("010.2.3.4", [LEADING_ZEROS], [LEADING_ZEROS]),
        ("::ffff:1.2.3.4", [MAPPED], [MAPPED]),
        ("::ffff:1.02.3.4", [LEADING_ZEROS], [LEADING_ZEROS]),
        ("00001::", [LEADING_ZEROS], [LEADING_ZEROS]),
        ("FE80::ABC", [], ['must be in canonical form ("fe80::abc")']),
        ("::00ff", [], ['must be in canonical form ("::ff")']),
    ],
)
def test_new_addresses_are_strict(text: str, legacy: list[str], canonical: list[str]) -> None:
    assert [error.body for error in validate_legacy_ip(FIELD, text)] == [
        f'Invalid value: "{text}": {e}' for e in legacy
    ]
    assert [error.body for error in validate_ip(FIELD, text)] == [f'Invalid value: "{text}": {e}' for e in canonical]


@pytest.mark.parametrize(
    ("text", "usual"),
    [
        ("203.0.113.1", True),
        ("2001:db8::1", True),
        ("x", False),
        ("", False),
        ("2001:DB8::1", False),
        ("010.2.3.4", False),
        ("::ffff:1.2.3.4", False),
        ("127.0.0.1", False),
        ("0" * 100 + "1.2.3.4", False),
    ],
)
def test_addresses_without_an_error(text: str, usual: bool) -> None:
    assert is_usual(text) == usual


def test_an_unchanged_legacy_address_is_kept() -> None:
    assert validate_legacy_ip(FIELD, "010.2.3.4", ["010.2.3.4"]) == []
    assert validate_legacy_cidr(FIELD, "10.0.0.1/8", ["10.0.0.1/8"]) == []


@pytest.mark.parametrize(
    ("text", "warnings"),
    [
        ("1.2.3.4", []),
        ("fe80::abc", []),
        (
            "010.2.3.4",
            ['f: non-standard IP address "010.2.3.4" is invalid: use "10.2.3.4"'],
        ),
        (
            "::ffff:1.2.3.4",
            ['f: non-standard IP address "::ffff:1.2.3.4" is invalid: use "1.2.3.4"'],
        ),
        ("FE80::ABC", ['f: IPv6 address "FE80::ABC" should be in RFC 5952 canonical format ("fe80::abc")']),
    ],
)  # fmt: skip
def test_non_canonical_addresses_cause_warnings(text: str, warnings: list[str]) -> None:
    assert ip_warnings(FIELD, text) == warnings


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("203.0.113.1", ""),
        ("2001:db8::1", ""),
        ("x", "must be a valid IP address"),
        ("0.0.0.0", "may not be unspecified (0.0.0.0)"),
        ("::", "may not be unspecified (::)"),
        ("127.1.2.3", "may not be in the loopback range (127.0.0.0/8, ::1/128)"),
        ("::1", "may not be in the loopback range (127.0.0.0/8, ::1/128)"),
        ("169.254.1.1", "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
        ("fe80::1", "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
        ("224.0.0.9", "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"),
        ("ff12::9", "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"),
        ("224.0.1.9", ""),
    ],
)
def test_addresses_of_endpoints(text: str, problem: str) -> None:
    expected = [f'Invalid value: "{text}": {problem}'] if problem else []
    assert [error.body for error in validate_endpoint_ip(FIELD, text)] == expected


@pytest.mark.parametrize(
    ("text", "network"),
    [
        ("10.0.0.0/8", "10.0.0.0/8"),
        ("10.1.2.3/8", "10.0.0.0/8"),
        ("10.0.0.0/008", "10.0.0.0/8"),
        ("::ffff:1.2.3.4/120", "1.2.3.0/24"),
        ("2001:DB8::1/32", "2001:db8::/32"),
        ("::/0", "::/0"),
    ],
)
def test_a_network_is_parsed_leniently(text: str, network: str) -> None:
    assert str(parse_cidr(text)) == network


@pytest.mark.parametrize("text", ["", "x/8", "1.2.3.4", "1.2.3.4/", "1.2.3.4/33", "1.2.3.4/+8", "::/129", "::/9999"])
def test_an_invalid_network_is_refused(text: str) -> None:
    assert parse_cidr(text) is None
    assert [error.body for error in validate_cidr(FIELD, text)] == [f'Invalid value: "{text}": {NOT_A_CIDR}']
    assert cidr_warnings(FIELD, text) == []


@pytest.mark.parametrize(
    ("text", "legacy", "canonical"),
    [
        ("10.0.0.0/8", "", ""),
        ("10.0.0.0/08", "must not have leading 0s in IP or prefix length", "same"),
        ("010.0.0.0/8", "must not have leading 0s in IP or prefix length", "same"),
        ("::ffff:1.2.3.0/120", "must not have an IPv4-mapped IPv6 address", "same"),
        ("10.0.0.1/8", "must not have bits set beyond the prefix length", "same"),
        ("2001:DB8::/32", "", 'must be in canonical form ("2001:db8::/32")'),
    ],
)
def test_new_networks_are_strict(text: str, legacy: str, canonical: str) -> None:
    strict = legacy if canonical == "same" else canonical
    for check, problem in ((validate_legacy_cidr, legacy), (validate_cidr, strict)):
        expected = [f'Invalid value: "{text}": {problem}'] if problem else []
        assert [error.body for error in check(FIELD, text)] == expected


@pytest.mark.parametrize(
    ("text", "warnings"),
    [
        ("10.0.0.0/8", []),
        ("10.0.0.1/8", ['CIDR value "10.0.0.1/8" is ambiguous in this context (should be "10.0.0.0/8" or '
                        '"10.0.0.1/32"?)']),
        ("10.0.0.0/08", ['non-standard CIDR value "10.0.0.0/08" is invalid: use "10.0.0.0/8"']),
        ("2001:DB8::/32", ['IPv6 CIDR value "2001:DB8::/32" should be in RFC 5952 canonical format '
                           '("2001:db8::/32")']),
    ],
)  # fmt: skip
def test_non_canonical_networks_cause_warnings(text: str, warnings: list[str]) -> None:
    assert cidr_warnings(FIELD, text) == [f"f: {each}" for each in warnings]


@pytest.mark.parametrize(
    "text", ["10.0.0.0/8", "0.0.0.0/0", "1.2.3.4/32", "::/0", "fd00::/8", "fd00:1::/32", "::1/128", "1::2:0:0:3/128"]
)
def test_canonical_networks_use_the_fast_path(text: str) -> None:
    network = parse_cidr(text)
    assert network is not None
    assert canonical_network(text) == (network.address.version, int(network.address), network.length)


@pytest.mark.parametrize(
    "text",
    [
        *("", "x", "1.2.3.4", "1.2.3.4/", "1.2.3.4/33", "010.0.0.0/8", "10.0.0.0/08", "10.0.0.1/8", "1.2.3.4/+8"),
        *("::", "::/129", "::/08", "::1/8", "FD00::/8", "fd00:0::/8", "::ffff:1.2.3.4/128", "::ffff:102:304/128"),
        *("fe80::1%eth0/128", "::\0/0", "１::/16", ":/0"),
    ],
)
def test_other_networks_use_the_slow_path(text: str) -> None:
    assert canonical_network(text) is None
