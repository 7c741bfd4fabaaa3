"""Parses and validates IP addresses and CIDRs as Kubernetes does, with Kubernetes' messages.

Guarantees:
- `parse_ip` and `parse_cidr` accept the same strings as `netutils.ParseIPSloppy` and `ParseCIDRSloppy`. The accepted
  strings include addresses with leading zeros and IPv4-mapped IPv6 addresses, because old objects contain such
  addresses. An IPv4-mapped IPv6 address is returned as an IPv4 address.
- The `validate_` functions refuse leading zeros and mapped addresses in new values (KEP-4858, enabled since 1.36). The
  functions for legacy fields accept a value that the field already had. The functions for fields that are not legacy
  fields also require the canonical form of RFC 5952.

Rules come from apimachinery's `pkg/util/validation/ip.go` and `pkg/apis/core/validation`.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from ipaddress import IPv4Address, IPv6Address
from socket import AF_INET6, inet_ntop, inet_pton
from typing import NamedTuple, TypeAlias

from ctrlmgr.api.field import FieldError, Path, invalid, tentatively
from ctrlmgr.caches.memoized import memoized
from ctrlmgr.golang.go_text import quote

IPAddress: TypeAlias = IPv4Address | IPv6Address

NOT_AN_IP = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_NOT_AN_INTERFACE = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"
NOT_A_CIDR = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"

_LONGEST = 45  # the length of the longest address without leading zeros; longer strings are not memoized
_NUMBER = r"0*(\d{1,3})"
_dotted = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}\.{_NUMBER}", re.ASCII).fullmatch
_number = re.compile(_NUMBER, re.ASCII).fullmatch
_OCTET = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_canonical_ipv4 = re.compile(rf"(?:{_OCTET}\.){{3}}{_OCTET}", re.ASCII).fullmatch
_canonical_ipv4_cidr = re.compile(
    rf"({_OCTET})\.({_OCTET})\.({_OCTET})\.({_OCTET})/(3[0-2]|[12]?\d)", re.ASCII
).fullmatch
_ipv6_length = re.compile(r"12[0-8]|1[01]\d|[1-9]?\d", re.ASCII).fullmatch
_IPV4_BITS = (1 << 32) - 1
_IPV6_BITS = (1 << 128) - 1
_zeros_first = re.compile(r"(?<![0-9A-Fa-f])0+(?=[0-9A-Fa-f])")


class Network(NamedTuple):
    """A CIDR: the address as it was written, and the number of bits in the network prefix."""

    address: IPAddress
    length: int

    @property
    def base(self) -> IPAddress:
        """The network's address, in which all bits beyond the prefix are 0."""
        host_bits = self.address.max_prefixlen - self.length
        return type(self.address)(int(self.address) >> host_bits << host_bits)

    def __str__(self) -> str:
        return f"{self.base}/{self.length}"


@memoized(entries=4096, longest=_LONGEST)  # memoized, because several rules parse the same address within a request
def parse_ip(text: str) -> IPAddress | None:
    """Return the address that a string represents; None if the string is invalid."""
    if ":" not in text:
        return _parse_ipv4(text)
    if "%" in text:
        return None
    try:
        # three times as fast as a construction from the string
        address = IPv6Address(inet_pton(AF_INET6, _zeros_first.sub("", text)))
    except (OSError, ValueError):
        return None
    return address.ipv4_mapped or address


def _parse_ipv4(text: str) -> IPv4Address | None:
    match = _dotted(text)
    octets = [int(each) for each in match.groups()] if match else [256]
    return IPv4Address(bytes(octets)) if max(octets) < 256 else None


def canonical_ip(text: str) -> str | None:
    """Return the address in `text` in canonical form (RFC 5952); None if the string is invalid."""
    if is_canonical_ipv4(text):
        return text
    address = parse_ip(text)
    return None if address is None else str(address)


def is_canonical_ipv4(text: str) -> bool:
    """Return whether `text` is an IPv4 address in canonical form."""
    return _canonical_ipv4(text) is not None


def is_ipv6(text: str) -> bool:
    """Return whether `text` is an IPv6 address that is not IPv4-mapped."""
    return ":" in text and isinstance(parse_ip(text), IPv6Address)


def _is_mapped(text: str) -> bool:
    """Return whether an address that `parse_ip` accepts is an IPv4-mapped IPv6 address."""
    return ":" in text and not is_ipv6(text)


def _has_leading_zeros(text: str) -> bool:
    """Return whether Go's `netip` refuses an address that `parse_ip` accepts.

    `netip` refuses addresses with leading zeros, and accepts all other addresses that `parse_ip` accepts.
    """
    if ":" not in text:
        return any(len(each) > 1 and each[0] == "0" for each in text.split("."))
    groups, _, last = text.rpartition(":")
    if "." in last:
        return _has_leading_zeros(last) or any(len(each) > 4 for each in groups.split(":"))
    return any(len(each) > 4 for each in text.split(":"))


@memoized(entries=16384, longest=_LONGEST)
def _is_usual(text: str) -> bool:
    path = Path()
    return not tentatively(
        lambda: validate_ip(path, text) or validate_endpoint_ip(path, text) or ip_warnings(path, text)
    )


def is_usual(text: str) -> bool:
    """Return whether an address is valid by all rules of this module, including those for endpoints.

    The check is fast, because long lists of addresses need one check for each address.
    """
    return len(text) <= _LONGEST and _is_usual(text)


def validate_legacy_ip(path: Path, value: str, existing: Collection[str] = ()) -> list[FieldError]:
    """Validate an address in a legacy field; any value that the field already had is accepted."""
    return [] if value in existing else _strict_ip(path, value)


def validate_ip(path: Path, value: str) -> list[FieldError]:
    """Validate an address in a field that requires the canonical form."""
    errors = _strict_ip(path, value)
    canonical = str(parse_ip(value))
    if not errors and value != canonical:
        errors.append(invalid(path, value, f"must be in canonical form ({quote(canonical)})"))
    return errors


def _strict_ip(path: Path, value: str) -> list[FieldError]:
    if is_canonical_ipv4(value):
        return []
    if parse_ip(value) is None:
        return [invalid(path, value, NOT_AN_IP)]
    errors = [invalid(path, value, "must not have leading 0s")] if _has_leading_zeros(value) else []
    if _is_mapped(value) and not errors:
        errors.append(invalid(path, value, "must not be an IPv4-mapped IPv6 address"))
    return errors


def validate_endpoint_ip(path: Path, value: str) -> list[FieldError]:
    """Validate the address of an endpoint, which must not be unspecified, loopback or link-local."""
    address = parse_ip(value)
    if address is None:
        return [invalid(path, value, "must be a valid IP address")]
    errors = []
    if address.is_unspecified:
        errors.append(invalid(path, value, f"may not be unspecified ({value})"))
    if address.is_loopback:
        errors.append(invalid(path, value, "may not be in the loopback range (127.0.0.0/8, ::1/128)"))
    if address.is_link_local:
        errors.append(invalid(path, value, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"))
    if _is_link_local_multicast(address):
        words = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"
        errors.append(invalid(path, value, words))
    return errors


def _is_link_local_multicast(address: IPAddress) -> bool:
    """Return the result of Go's `IsLinkLocalMulticast`, which is true for 224.0.0.0/24, and for ff?2 with any flags."""
    packed = address.packed
    if len(packed) == 4:
        return packed[:3] == b"\xe0\x00\x00"
    return packed[0] == 0xFF and packed[1] & 0x0F == 0x02


def ip_warnings(path: Path, value: str) -> list[str]:
    """Return the warnings for an address in a legacy field; empty if the address is invalid."""
    if is_canonical_ipv4(value):
        return []
    address = parse_ip(value)
    if address is None:
        return []
    if _has_leading_zeros(value) or _is_mapped(value):
        words = "is invalid: use"
        return [f"{path}: non-standard IP address {quote(value)} {words} {quote(str(address))}"]
    if str(address) != value:
        form = f"should be in RFC 5952 canonical format ({quote(str(address))})"
        return [f"{path}: IPv6 address {quote(value)} {form}"]
    return []


def parse_cidr(text: str) -> Network | None:
    """Return the network that a string represents; None if the string is invalid."""
    written, _, length = text.partition("/")
    address = parse_ip(written)
    match = _number(length)
    if address is None or match is None:
        return None
    bits = int(match[1])
    if address.version == 6 or ":" not in written:
        return Network(address, bits) if bits <= address.max_prefixlen else None
    if bits > 128:
        return None
    return Network(address, bits - 96) if bits >= 96 else Network(IPv6Address(0), bits)


def validate_legacy_cidr(path: Path, value: str, existing: Collection[str] = ()) -> list[FieldError]:
    """Validate a CIDR in a legacy field; any value that the field already had is accepted."""
    return [] if value in existing else _strict_cidr(path, value)


def validate_cidr(path: Path, value: str) -> list[FieldError]:
    """Validate a CIDR in a field that requires the canonical form."""
    errors = _strict_cidr(path, value)
    canonical = str(parse_cidr(value))
    if not errors and value != canonical:
        errors.append(invalid(path, value, f"must be in canonical form ({quote(canonical)})"))
    return errors


def validate_interface_address(path: Path, value: str) -> list[FieldError]:
    """Validate an interface's address with its prefix length, such as `192.0.2.1/24`; it must be in canonical form."""
    written, _, length = value.partition("/")
    address = parse_ip(written)
    if address is None or parse_cidr(value) is None:
        return [invalid(path, value, _NOT_AN_INTERFACE)]
    bits = int(length)
    canonical = f"{address}/{bits - 96 if address.version == 4 and bits > 32 else bits}"
    return [] if value == canonical else [invalid(path, value, f'must be in canonical form ("{canonical}")')]


def canonical_network(text: str) -> tuple[int, int, int] | None:
    """Return the IP version, the address and the prefix length of a CIDR that is valid by all rules of this module.

    The function uses a quick check, which takes a tenth of the time of `parse_cidr`, because a policy may list tens of
    thousands of CIDRs. If the quick check cannot decide, the function returns None, although the CIDR may be valid.
    """
    match = _canonical_ipv4_cidr(text)
    if match is None:
        return _canonical_ipv6_network(text) if ":" in text else None
    first, second, third, fourth, length = map(int, match.groups())
    address = first << 24 | second << 16 | third << 8 | fourth
    return None if address & _IPV4_BITS >> length else (4, address, length)


def _canonical_ipv6_network(text: str) -> tuple[int, int, int] | None:
    written, _, length = text.partition("/")
    if "." in written or not _ipv6_length(length):
        return None
    try:
        packed = inet_pton(AF_INET6, written)
    except (OSError, ValueError):
        return None
    address, bits = int.from_bytes(packed, "big"), int(length)
    if address & _IPV6_BITS >> bits or inet_ntop(AF_INET6, packed) != written:
        return None
    return 6, address, bits


def _strict_cidr(path: Path, value: str) -> list[FieldError]:
    if canonical_network(value) is not None:
        return []
    network = parse_cidr(value)
    if network is None:
        return [invalid(path, value, NOT_A_CIDR)]
    if _cidr_has_leading_zeros(value):
        return [invalid(path, value, "must not have leading 0s in IP or prefix length")]
    if _is_mapped(value.partition("/")[0]):
        return [invalid(path, value, "must not have an IPv4-mapped IPv6 address")]
    if network.address != network.base:
        return [invalid(path, value, "must not have bits set beyond the prefix length")]
    return []


def _cidr_has_leading_zeros(value: str) -> bool:
    written, _, length = value.partition("/")
    return _has_leading_zeros(written) or (len(length) > 1 and length[0] == "0")


def cidr_warnings(path: Path, value: str) -> list[str]:
    """Return the warnings for a CIDR in a legacy field; empty if the CIDR is invalid."""
    if canonical_network(value) is not None:
        return []
    network = parse_cidr(value)
    if network is None:
        return []
    warnings = []
    if network.address != network.base:
        single = quote(f"{network.address}/{network.address.max_prefixlen}")
        choice = f"(should be {quote(str(network))} or {single}?)"
        warnings.append(f"{path}: CIDR value {quote(value)} is ambiguous in this context {choice}")
    if _cidr_has_leading_zeros(value) or _is_mapped(value.partition("/")[0]):
        words = "is invalid: use"
        warnings.append(f"{path}: non-standard CIDR value {quote(value)} {words} {quote(str(network))}")
    if not warnings and str(network) != value:
        form = f"should be in RFC 5952 canonical format ({quote(str(network))})"
        warnings.append(f"{path}: IPv6 CIDR value {quote(value)} {form}")
    return warnings
