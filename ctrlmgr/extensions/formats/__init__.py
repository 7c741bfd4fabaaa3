"""The string formats of schemas, and a check for each format.

Guarantees: a format accepts the same strings as in Kubernetes, including its peculiarities. Dashes in a format's name
are ignored. Source: kube-openapi `pkg/validation/strfmt`, apiextensions-apiserver
`pkg/apiserver/validation/formats.go`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

from ctrlmgr.extensions.formats.check_digit_formats import is_credit_card, is_isbn, is_isbn10, is_isbn13
from ctrlmgr.extensions.formats.internet_formats import is_email, is_uri
from ctrlmgr.extensions.formats.network_formats import is_cidr, is_hostname, is_ipv4, is_ipv6, is_mac
from ctrlmgr.extensions.formats.time_formats import is_date, is_date_time, is_duration

Format: TypeAlias = Callable[[str], bool]


def _matching(pattern: str, flags: int = 0) -> Format:
    match = re.compile(pattern, re.ASCII | flags).fullmatch
    return lambda text: match(text) is not None


_HEX = "[0-9a-f]"
_NAME = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LONGEST_SHORT_NAME = 63
_LONGEST_LONG_NAME = 253
_is_short_name = _matching(_NAME)
_is_long_name = _matching(rf"{_NAME}(\.{_NAME})*")
_OCTET = r"\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*"
_is_ssn = _matching(r"\d{3}[- ]?\d{2}[- ]?\d{4}")
_SSN_LENGTH = 11
_BASE64 = "[A-Za-z0-9+/]"


def _uuid(third: str, fourth: str) -> Format:
    return _matching(f"{_HEX}{{8}}-?{_HEX}{{4}}-?{third}-?{fourth}-?{_HEX}{{12}}", re.IGNORECASE)


_ANY_GROUP = f"{_HEX}{{4}}"
_VARIANT = f"[89ab]{_HEX}{{3}}"

_FORMATS: Mapping[str, Format] = {
    "bsonobjectid": _matching("[0-9a-fA-F]{24}"),
    "uri": is_uri,
    "email": is_email,
    "hostname": is_hostname,
    "ipv4": is_ipv4,
    "ipv6": is_ipv6,
    "cidr": is_cidr,
    "mac": is_mac,
    "uuid": _uuid(_ANY_GROUP, _ANY_GROUP),
    "uuid3": _uuid(f"3{_HEX}{{3}}", _ANY_GROUP),
    "uuid4": _uuid(f"4{_HEX}{{3}}", _VARIANT),
    "uuid5": _uuid(f"5{_HEX}{{3}}", _VARIANT),
    "isbn": is_isbn,
    "isbn10": is_isbn10,
    "isbn13": is_isbn13,
    "creditcard": is_credit_card,
    "ssn": lambda text: len(text) == _SSN_LENGTH and _is_ssn(text),
    "hexcolor": _matching("#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "rgbcolor": _matching(rf"rgb\({_OCTET},{_OCTET},{_OCTET}\)"),
    "byte": _matching(f"({_BASE64}{{4}})*({_BASE64}{{2}}==|{_BASE64}{{3}}=|{_BASE64}{{4}})"),
    "password": lambda text: True,
    "date": is_date,
    "duration": is_duration,
    "datetime": is_date_time,
    "k8sshortname": lambda text: len(text) <= _LONGEST_SHORT_NAME and _is_short_name(text),
    "k8slongname": lambda text: len(text) <= _LONGEST_LONG_NAME and _is_long_name(text),
}

_NUMERIC: Mapping[str, frozenset[str]] = {
    "integer": frozenset(("int32", "int64")),
    "number": frozenset(("float", "double")),
}


def format_named(name: str) -> Format | None:
    """Return the check for a string format; None if the format is unknown."""
    return _FORMATS.get(name.replace("-", ""))


def is_recognized(name: str, type_: str) -> bool:
    """Return whether a format is known for values of a type; the type is empty if the schema has none.

    Validation ignores unknown formats, and the response of the write contains a warning about them.
    """
    if type_ in ("", "string"):
        return format_named(name) is not None
    return name in _NUMERIC.get(type_, ())
