from __future__ import annotations

from ipaddress import ip_address, ip_network

import pytest

from ctrlmgr.errors import SettingsError
from ctrlmgr.kinds.allocators.service_ranges import AddressRange, PortRange, Ranges

PORTS = "30000-32767"
# (range, first and last usable address, addresses in the static band)
ADDRESSES = [
    ("10.96.0.0/16", "10.96.0.1", "10.96.255.254", 256),
    ("10.0.0.0/12", "10.0.0.1", "10.15.255.254", 256),
    ("10.96.0.0/22", "10.96.0.1", "10.96.3.254", 64),
    ("10.96.0.0/24", "10.96.0.1", "10.96.0.254", 16),
    ("10.96.0.0/27", "10.96.0.1", "10.96.0.30", 16),
    ("10.96.0.16/28", "10.96.0.17", "10.96.0.30", 0),
    ("10.96.0.8/29", "10.96.0.9", "10.96.0.14", 0),
    ("fd00:10:96::/112", "fd00:10:96::1", "fd00:10:96::ffff", 256),
    ("fd00:10:96::/108", "fd00:10:96::1", "fd00:10:96::f:ffff", 256),
    ("fd00:10:96::/64", "fd00:10:96::1", "fd00:10:96:0:ffff:ffff:ffff:ffff", 256),
    ("fd00:10:96::/125", "fd00:10:96::1", "fd00:10:96::7", 0),
]


@pytest.mark.parametrize(("cidr", "first", "last", "static"), ADDRESSES)
def test_the_size_and_bands_of_a_range(cidr: str, first: str, last: str, static: int) -> None:
    (addresses,) = Ranges.parse(cidr, PORTS).addresses
    assert (addresses[0], addresses[addresses.count - 1]) == (first, last)
    assert ip_address(first) in addresses
    assert ip_address(last) in addresses
    assert ip_address(addresses.base) not in addresses
    assert ip_address(last) + 1 not in addresses
    assert addresses.bands == ((max(static, 1), addresses.count), (1, static))
    assert str(addresses) == cidr


CIDRS = ["10.96.0.0/29", "10.95.255.0/24", "fd00:10:96::/121", "fd00:0:0:1:1:1:0:0/112", "1:0:0:2:3:4:5:0/118"]


@pytest.mark.parametrize("cidr", CIDRS)
def test_addresses_are_formatted_like_python(cidr: str) -> None:
    network = ip_network(cidr)
    addresses = AddressRange(network)
    for index in [*range(min(addresses.count, 300)), addresses.count - 1]:
        assert addresses[index] == str(network[index + 1])


def test_addresses_are_formatted_alike_across_the_last_group() -> None:
    network = ip_network("fd00:10:96::/108")
    for index in (0, 0xFFFD, 0xFFFE, 0xFFFF, 0x10000, 0xFFFFE):
        assert AddressRange(network)[index] == str(network[index + 1])


def test_ranges_of_one_family_exclude_addresses_of_the_other() -> None:
    four, six = Ranges.parse("0.0.0.0/8,::/104", PORTS).addresses
    assert ip_address("0.0.0.9") in four
    assert ip_address("::9") not in four
    assert ip_address("0.0.0.9") not in six


PORT_RANGES = [
    ("30000-32767", (30000, 32767), 86),
    ("30000+2767", (30000, 32767), 86),
    (" 30000-30199 ", (30000, 30199), 16),
    ("1-65535", (1, 65535), 128),
    ("30000-30015", (30000, 30015), 0),
    ("30000", (30000, 30000), 0),
]


@pytest.mark.parametrize(("text", "ends", "static"), PORT_RANGES)
def test_ports_are_ranges_including_both_ends(text: str, ends: tuple[int, int], static: int) -> None:
    ports = Ranges.parse("10.96.0.0/16", text).ports
    assert (ports.first, ports.last) == ends
    assert ports.bands == ((static, ports.count), (0, static))
    assert (ports[0], ports[ports.count - 1]) == (str(ends[0]), str(ends[1]))
    assert ends[0] in ports
    assert ends[1] in ports
    assert ends[0] - 1 not in ports
    assert ends[1] + 1 not in ports
    assert str(PortRange(*ends)) == f"{ends[0]}-{ends[1]}"


@pytest.mark.parametrize("cidr", [*CIDRS, "fd00:10:96::/108", "::/112"])
def test_addresses_are_parsed_back_from_their_text(cidr: str) -> None:
    addresses = AddressRange(ip_network(cidr))
    last = addresses.count - 1
    for index in [*range(min(addresses.count, 300)), min(0xFFFE, last), min(0xFFFF, last), last]:
        assert addresses.index(addresses[index]) == index


OTHERS = ["10.96.0.0", "10.96.0.255", "10.95.255.255", "fd00::1", "::1", "x", "", "1.2.3", "1.2.3.4.5"]


@pytest.mark.parametrize("name", OTHERS)
def test_an_invalid_address_has_no_index(name: str) -> None:
    assert AddressRange(ip_network("10.96.0.0/24")).index(name) is None


OTHERS_THAN_IPV6 = [
    "fd00:10:96::",
    "fd00:10:96::1:0",
    "fd00:10:95::1",
    "10.96.0.1",
    "x",
    "",
    ":",
    "::",
    "fd00:10:96::x",
]


@pytest.mark.parametrize("name", OTHERS_THAN_IPV6)
def test_an_invalid_ipv6_address_has_no_index(name: str) -> None:
    assert AddressRange(ip_network("fd00:10:96::/112")).index(name) is None


def test_ports_are_parsed_back_from_their_text() -> None:
    ports = PortRange(30000, 30009)
    assert [ports.index(ports[index]) for index in range(10)] == list(range(10))
    assert [ports.index(name) for name in ("29999", "30010", "x", "", "-1")] == [None] * 5


def test_the_first_range_determines_the_default_family() -> None:
    ranges = Ranges.parse("fd00:10:96::/112, 10.96.0.0/16", PORTS)
    assert ranges.families == ("IPv6", "IPv4")
    assert str(ranges.of("IPv4")) == "10.96.0.0/16"
    assert Ranges.parse("10.96.0.0/16", PORTS).of("IPv6") is None


WRONG = [
    ("", PORTS, 'service.cluster_ip_range: .*; should be a range such as "10.96.0.0/16"'),
    ("10.96.0.1/16", PORTS, "service.cluster_ip_range: 10.96.0.1/16 has host bits set"),
    ("10.96.0.0/16,10.97.0.0/16", PORTS, "should be one range, or two of different IP families"),
    ("10.96.0.0/16,fd00::/112,10.97.0.0/16", PORTS, "should be one range, or two of different IP families"),
    ("10.96.0.0/30", PORTS, '"10.96.0.0/30" should have at least 8 addresses'),
    ("fd00:10:96::/63", PORTS, '"fd00:10:96::/63" should have a prefix of at least 64 bits'),
    ("10.96.0.0/16", "", 'service.node_port_range: "" should be a range of ports such as "30000-32767"'),
    ("10.96.0.0/16", "0-10", "service.node_port_range"),
    ("10.96.0.0/16", "5-4", "service.node_port_range"),
    ("10.96.0.0/16", "1-65536", "service.node_port_range"),
    ("10.96.0.0/16", "1-２", "service.node_port_range"),
    ("10.96.0.0/16", "x", "service.node_port_range"),
]


@pytest.mark.parametrize(("cidrs", "ports", "words"), WRONG)
def test_invalid_ranges_are_refused(cidrs: str, ports: str, words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        Ranges.parse(cidrs, ports)
