"""The values that Services can get: one address range for each IP family, and one range of node ports.

Guarantees: each range defines which values are never allocated, which values are allocated only on request, and the
order in which the other values are tried. As long as the upper band of a range has free values, its lower band is used
only for requested values. Therefore requests for particular values usually succeed (KEP-3070 for addresses, KEP-3668
for ports).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import TypeAlias

from ctrlmgr.api.resource import INTERNAL_GROUP, Resource
from ctrlmgr.engine.validation.ip_validation import IPAddress
from ctrlmgr.errors import SettingsError

IP_ADDRESSES = Resource("networking.k8s.io", "ipaddresses")
NODE_PORTS = Resource(INTERNAL_GROUP, "nodeports")

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

IPV4 = "IPv4"
IPV6 = "IPv6"

SMALLEST = 8
"""The minimum number of addresses in a range, as in `ServiceIPRange` of Kubernetes' control plane."""
SHORTEST_IPV6_PREFIX = 64


class AddressRange:
    """The addresses of one CIDR, as a `search.Range`.

    The first address of the range in the settings belongs to the Service `kubernetes`. The network's address and the
    broadcast address of IPv4 are never allocated. In an IPv6 range, the last address is also allocated
    (`pkg/registry/core/service/ipallocator`). If a request does not name an address, the indexes in `bands` are
    searched in this order.
    """

    claims = IP_ADDRESSES

    __slots__ = ("_first", "_head", "_ipv4", "bands", "count", "family", "network")

    def __init__(self, network: Network, *, reserved: int = 1) -> None:
        """Create the range of a network without host bits.

        The first `reserved` addresses of the range are allocated only on request.
        """
        self.network = network
        self._ipv4 = network.version == 4
        self.family = IPV4 if self._ipv4 else IPV6
        self._first = int(network.network_address) + 1
        self._head = _constant_head(network)
        self.count = network.num_addresses - (2 if self._ipv4 else 1)
        static = static_band(network.num_addresses, share=16, most=256)
        self.bands = ((max(static, reserved), self.count), (reserved, static))

    def __contains__(self, address: IPAddress) -> bool:
        return address.version == self.network.version and 0 <= int(address) - self._first < self.count

    def __getitem__(self, index: int) -> str:
        """Return an address in canonical form, which is the name of its IPAddress object."""
        value = self._first + index
        if self._ipv4:
            return f"{value >> 24}.{value >> 16 & 255}.{value >> 8 & 255}.{value & 255}"
        if self._head and index < 0xFFFF:
            return f"{self._head}{index + 1:x}"
        return str(ipaddress.IPv6Address(value))

    def index(self, name: str) -> int | None:
        """Return the index of an address in canonical form; None if the address is not in the range."""
        try:
            index = self._value(name) - self._first
        except ValueError:
            return None
        return index if 0 <= index < self.count else None

    def _value(self, name: str) -> int:
        if self._ipv4:
            first, second, third, fourth = map(int, name.split("."))
            return first << 24 | second << 16 | third << 8 | fourth
        head = self._head
        if head and name.startswith(head) and ":" not in (group := name[len(head) :]):
            return self._first - 1 + int(group, 16)
        return int(ipaddress.IPv6Address(name))

    @property
    def base(self) -> str:
        """The address of the network itself; a dry run returns this address instead of an allocated address."""
        return str(self.network.network_address)

    def __str__(self) -> str:
        return str(self.network)


def _constant_head(network: Network) -> str:
    """Return the common prefix of the canonical forms of 65,536 IPv6 addresses; empty if they have no common prefix."""
    head = str(network.network_address)
    return head if f"{head}1" == str(network.network_address + 1) else ""


class PortRange:
    """The node ports from `first` to `last`, inclusive, as a `search.Range`."""

    claims = NODE_PORTS

    __slots__ = ("bands", "count", "first", "last")

    def __init__(self, first: int, last: int) -> None:
        """Create the port range with these bounds."""
        self.first = first
        self.last = last
        self.count = last - first + 1
        static = static_band(self.count, share=32, most=128)
        self.bands = ((static, self.count), (0, static))

    def __getitem__(self, index: int) -> str:
        """Return a port as the name of its claim."""
        return str(self.first + index)

    def index(self, name: str) -> int | None:
        """Return the index of the port in the name of a claim; None if the port is not in the range."""
        index = int(name) - self.first if name.isdecimal() else -1
        return index if 0 <= index < self.count else None

    def __contains__(self, port: object) -> bool:
        return isinstance(port, int) and self.first <= port <= self.last

    def __str__(self) -> str:
        return f"{self.first}-{self.last}"


def static_band(size: int, share: int, most: int) -> int:
    """Return the size of the reserved band at the start of a range.

    The size is a share of the range, but at least 16 and at most `most`. A range of at most 16 values has no reserved
    band (`calculateRangeOffset` in both of Kubernetes' allocators).
    """
    return 0 if size <= 16 else min(max(16, size // share), most)


class Ranges:
    """The ranges for Services: one or two address ranges, and one port range.

    The first address range belongs to the default IP family.
    """

    __slots__ = ("_by_family", "addresses", "families", "ports")

    def __init__(self, addresses: Sequence[AddressRange], ports: PortRange) -> None:
        """Create the ranges; the address ranges must have different IP families."""
        self.addresses = tuple(addresses)
        self.ports = ports
        self.families = tuple(each.family for each in addresses)
        self._by_family = {each.family: each for each in addresses}

    @classmethod
    def parse(cls, cidrs: str, ports: str) -> Ranges:
        """Parse address ranges (`10.96.0.0/16,fd00:10:96::/112`) and a port range (`30000-32767`, `30000+2767`).

        Raises `SettingsError` for malformed ranges, for two ranges of one IP family, and for a range that is too small
        or too large.
        """
        networks = [_network(part.strip()) for part in cidrs.split(",")]
        if len(networks) > 2 or len({network.version for network in networks}) != len(networks):
            raise SettingsError(
                f'service.cluster_ip_range: "{cidrs}" should be one range, or two of different IP families such as '
                '"10.96.0.0/16,fd00:10:96::/112"'
            )
        return cls([AddressRange(network) for network in networks], _ports(ports))

    def of(self, family: str) -> AddressRange | None:
        """Return the address range of an IP family; None if the family is not configured."""
        return self._by_family.get(family)


def _network(text: str) -> Network:
    try:
        network = ipaddress.ip_network(text)
    except ValueError as error:
        raise SettingsError(f'service.cluster_ip_range: {error}; should be a range such as "10.96.0.0/16"') from error
    if network.num_addresses < SMALLEST:
        raise SettingsError(f'service.cluster_ip_range: "{text}" should have at least {SMALLEST} addresses')
    if network.version == 6 and network.prefixlen < SHORTEST_IPV6_PREFIX:
        raise SettingsError(
            f'service.cluster_ip_range: "{text}" should have a prefix of at least {SHORTEST_IPV6_PREFIX} bits'
        )
    return network


def _ports(text: str) -> PortRange:
    low, dash, high = text.strip().partition("-")
    base, plus, offset = text.strip().partition("+")
    numbers = (low, high) if dash else (base, offset) if plus else (low, low)
    if all(each.isascii() and each.isdigit() and len(each) <= 5 for each in numbers):
        first, last = int(numbers[0]), int(numbers[1])
        last += first if plus else 0
        if 1 <= first <= last <= 65535:
            return PortRange(first, last)
    raise SettingsError(f'service.node_port_range: "{text}" should be a range of ports such as "30000-32767"')


DEFAULT_RANGES = Ranges.parse("10.96.0.0/16", "30000-32767")
"""The ranges that the default settings describe."""
