"""Formats of network names and addresses: `hostname`, `ipv4`, `ipv6`, `cidr`, `mac`."""

from __future__ import annotations

import re
import unicodedata

from ctrlmgr.engine.validation.ip_validation import parse_cidr, parse_ip

_LONGEST_NAME = 255
_LONGEST_LABEL = 63
_LONGEST_SUFFIX = 63
_leading_zero = re.compile(r"(?<![0-9A-Fa-f.])0\d+\.|\.0\d", re.ASCII).search
_MAC_GROUPS = {
    ":": re.compile(r"[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2})*", re.ASCII),
    "-": re.compile(r"[0-9A-Fa-f]{2}(-[0-9A-Fa-f]{2})*", re.ASCII),
    ".": re.compile(r"[0-9A-Fa-f]{4}(\.[0-9A-Fa-f]{4})*", re.ASCII),
}
_MAC_BYTES = (6, 8, 20)


def is_ipv4(text: str) -> bool:
    """Return whether a string is an IPv4 address in dotted form.

    Leading zeros and IPv4-mapped IPv6 addresses in the IPv4 address are accepted.
    """
    return "." in text and parse_ip(text) is not None


def is_ipv6(text: str) -> bool:
    """Return whether a string is an IPv6 address; it must contain colons, and no leading zeros in a dotted part."""
    return ":" in text and parse_ip(text) is not None and not ("." in text and _leading_zero(text))


def is_cidr(text: str) -> bool:
    """Return whether a string is an IP address with a prefix length."""
    return parse_cidr(text) is not None


def is_mac(text: str) -> bool:
    """Return whether a string is an EUI-48, an EUI-64 or an IP over InfiniBand address (Go's `net.ParseMAC`)."""
    for separator, pattern in _MAC_GROUPS.items():
        if separator in text:
            return bool(pattern.fullmatch(text)) and len(text.replace(separator, "")) // 2 in _MAC_BYTES
    return False


def _is_symbol_or_letter(character: str) -> bool:
    return unicodedata.category(character)[0] in "LS"


def _is_part(character: str) -> bool:
    return (character.isascii() and character.isalnum()) or _is_symbol_or_letter(character)


def is_hostname(text: str) -> bool:
    """Return whether a string is a host name: one label, or several labels of which the last has only letters."""
    if len(text.encode()) > _LONGEST_NAME:
        return False
    labels = text.split(".")
    if any(len(label.encode()) > _LONGEST_LABEL for label in labels):
        return False
    if len(labels) == 1:
        return _is_single_label(text)
    return all(map(_is_label, labels[:-1])) and _is_suffix(labels[-1])


def _is_single_label(label: str) -> bool:
    """Return whether a name without dots is valid: it may contain only one dash, as its second character."""
    if not label or not _is_part(label[0]):
        return False
    rest = label[1:].removeprefix("-")
    return all(map(_is_part, rest)) and len(rest) < _LONGEST_LABEL


def _is_label(label: str) -> bool:
    return (
        bool(label)
        and _is_part(label[0])
        and _is_part(label[-1])
        and all(each == "-" or _is_part(each) for each in label)
    )


def _is_suffix(label: str) -> bool:
    shortest = 2
    return shortest <= len(label) <= _LONGEST_SUFFIX and all(
        unicodedata.category(each).startswith("L") for each in label
    )
