"""Functions of IP addresses and networks.

Guarantees: strings are parsed as in Go's `net/netip`, without zones and without IPv4-mapped IPv6 addresses.

Source: apiserver `pkg/cel/library/{ip,cidr}.go`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any, ClassVar, Final, TypeAlias

from ctrlmgr.expressions.declarations import Library
from ctrlmgr.expressions.types import Type, opaque
from ctrlmgr.expressions.values import EvalError
from ctrlmgr.golang.go_text import quote

ADDRESSES: Final = Library()
_function = ADDRESSES.function

_Address: TypeAlias = IPv4Address | IPv6Address
_length = re.compile(r"0|[1-9][0-9]{0,2}", re.ASCII).fullmatch
_BROADCAST = IPv4Address("255.255.255.255")


@dataclass(frozen=True, slots=True)
class IP:
    """The CEL value of an IP address."""

    address: _Address

    cel_type: ClassVar[Type] = opaque("net.IP")

    @property
    def cel_size(self) -> int:
        """The number of bytes in the IP address."""
        return self.address.max_prefixlen // 8


@dataclass(frozen=True, slots=True)
class CIDR:
    """A network, with the address from which it was parsed."""

    address: _Address
    length: int

    cel_type: ClassVar[Type] = opaque("net.CIDR")

    @property
    def cel_size(self) -> int:
        """The number of bytes of the address of the network."""
        return -(-self.length // 8)

    @property
    def base(self) -> _Address:
        """The lowest IP address of the network."""
        free = self.address.max_prefixlen - self.length
        return type(self.address)(int(self.address) >> free << free)

    def holds(self, address: _Address) -> bool:
        """Return whether an address belongs to the network."""
        free = self.address.max_prefixlen - self.length
        return address.version == self.address.version and int(address) >> free == int(self.address) >> free


def _address(text: str) -> _Address:
    address = ip_address(text)
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            raise ValueError("IP address with zone value is not allowed")
        if address.ipv4_mapped is not None:
            raise ValueError("IPv4-mapped IPv6 address is not allowed")
    return address


def _parse_ip(text: str) -> _Address:
    try:
        return _address(text)
    except ValueError as error:
        words = str(error) if "not allowed" in str(error) else f"ParseAddr({quote(text)}): unable to parse IP"
        raise EvalError(f"IP Address {quote(text)} parse error during conversion from string: {words}") from error


def _parse_cidr(text: str) -> CIDR:
    address, slash, length = text.rpartition("/")
    try:
        if not slash or not _length(length):
            raise ValueError("no '/' and length")
        parsed = _address(address)
        if int(length) > parsed.max_prefixlen:
            raise ValueError("prefix length out of range")
    except ValueError as error:
        words = f"network address parse error during conversion from string: netip.ParsePrefix({quote(text)})"
        raise EvalError(f"{words}: {error}") from error
    return CIDR(parsed, int(length))


@_function("ip", "(string) -> net.IP")
def _ip(text: str) -> IP:
    return IP(_parse_ip(text))


@_function("isIP", "(string) -> bool")
def _is_ip(text: str) -> bool:
    try:
        _parse_ip(text)
    except EvalError:
        return False
    return True


@_function("ip.isCanonical", "(string) -> bool")
def _is_canonical(text: str) -> bool:
    return str(_parse_ip(text)) == text


@_function("string", "(net.IP) -> string")
def _string(ip: IP) -> str:
    return str(ip.address)


@_function("family", "net.IP.() -> int")
def _family(ip: IP) -> int:
    return ip.address.version


@_function("isUnspecified", "net.IP.() -> bool")
def _is_unspecified(ip: IP) -> bool:
    return ip.address.is_unspecified


@_function("isLoopback", "net.IP.() -> bool")
def _is_loopback(ip: IP) -> bool:
    return ip.address.is_loopback


def _is_local_multicast(address: _Address) -> bool:
    packed = address.packed
    return packed[:3] == b"\xe0\x00\x00" if address.version == 4 else packed[0] == 0xFF and packed[1] & 0xF == 2


@_function("isLinkLocalMulticast", "net.IP.() -> bool")
def _is_link_local_multicast(ip: IP) -> bool:
    return _is_local_multicast(ip.address)


def _is_local_unicast(address: _Address) -> bool:
    return address.is_link_local


@_function("isLinkLocalUnicast", "net.IP.() -> bool")
def _is_link_local_unicast(ip: IP) -> bool:
    return _is_local_unicast(ip.address)


@_function("isGlobalUnicast", "net.IP.() -> bool")
def _is_global_unicast(ip: IP) -> bool:
    address = ip.address
    special = address.is_unspecified or address.is_loopback or address.is_multicast or address == _BROADCAST
    return not special and not _is_local_unicast(address)


@_function("cidr", "(string) -> net.CIDR")
def _cidr(text: str) -> CIDR:
    return _parse_cidr(text)


@_function("isCIDR", "(string) -> bool")
def _is_cidr(text: str) -> bool:
    try:
        _parse_cidr(text)
    except EvalError:
        return False
    return True


@_function("string", "(net.CIDR) -> string")
def _cidr_string(cidr: CIDR) -> str:
    return f"{cidr.address}/{cidr.length}"


@_function("containsIP", "net.CIDR.(string) -> bool", "net.CIDR.(net.IP) -> bool")
def _contains_ip(cidr: CIDR, ip: Any) -> bool:
    return cidr.holds(_parse_ip(ip) if isinstance(ip, str) else ip.address)


@_function("containsCIDR", "net.CIDR.(string) -> bool", "net.CIDR.(net.CIDR) -> bool")
def _contains_cidr(cidr: CIDR, other: Any) -> bool:
    inner = _parse_cidr(other) if isinstance(other, str) else other
    return inner.length >= cidr.length and cidr.holds(inner.base)


@_function("ip", "net.CIDR.() -> net.IP")
def _cidr_ip(cidr: CIDR) -> IP:
    return IP(cidr.address)


@_function("masked", "net.CIDR.() -> net.CIDR")
def _masked(cidr: CIDR) -> CIDR:
    return CIDR(cidr.base, cidr.length)


@_function("prefixLength", "net.CIDR.() -> int")
def _prefix_length(cidr: CIDR) -> int:
    return cidr.length
