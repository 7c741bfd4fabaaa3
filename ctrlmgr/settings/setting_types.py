"""Defines the types of values that settings can have, and parses values from text or TOML.

Durations are seconds (float) in Python, and strings such as `"15s"` in text.
"""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_DURATION_TEXT = re.compile(rf"(?:{_PART.pattern})+")


class Kind(NamedTuple):
    """A type of setting values.

    `read` parses text or a value from TOML, or raises ValueError; `expects` describes valid values.
    """

    expects: str
    read: Callable[[Any], Any]


def parse_duration(text: str) -> float:
    """Return a duration such as `"1h30m"`, `"15s"` or `"250ms"` as seconds; raises ValueError if it is malformed."""
    if text != "0" and not _DURATION_TEXT.fullmatch(text):
        raise ValueError(text)
    return float(sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text)))


def format_duration(seconds: float) -> str:
    """Return seconds as a string that `parse_duration` accepts, in the largest units, such as `"1h30m"`."""
    rest, parts = round(seconds * 1000), []
    for unit in ("d", "h", "m", "s", "ms"):
        count, rest = divmod(rest, round(_UNITS[unit] * 1000))
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def _read_duration(value: Any) -> float:
    if not isinstance(value, str):
        raise TypeError(value)
    return parse_duration(value)


def _read_text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _read_switch(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if (text := _read_text(value).lower()) not in ("true", "false"):
        raise ValueError(value)
    return text == "true"


def _read_listen(value: Any) -> str:
    text = _read_text(value)
    host, colon, port = text.rpartition(":")
    if not (colon and host and port.isdecimal() and int(port) <= 65535):
        raise ValueError(value)
    return text


def _read_address(value: Any) -> str:
    text = _read_text(value)
    return text and str(ipaddress.ip_address(text))


def _read_ranges(value: Any) -> str:
    networks = [ipaddress.ip_network(part.strip()) for part in _read_text(value).split(",")]
    if len({network.version for network in networks}) != len(networks):
        raise ValueError(value)
    return ",".join(str(network) for network in networks)


def _read_ports(value: Any) -> str:
    first, _, last = _read_text(value).partition("-")
    if not (first.isdecimal() and last.isdecimal() and 1 <= int(first) <= int(last) <= 65535):
        raise ValueError(value)
    return f"{int(first)}-{int(last)}"


def _read_list(value: Any) -> tuple[str, ...]:
    items = [item.strip() for item in value.split(",")] if isinstance(value, str) else value
    if not isinstance(items, list) or not all(isinstance(item, str) and item for item in items):
        raise ValueError(value)
    return tuple(items)


def _read_texts(value: Any) -> tuple[str, ...]:
    items = [item.strip() for item in value.split(";") if item.strip()] if isinstance(value, str) else value
    if not isinstance(items, list) or not all(isinstance(item, str) and item for item in items):
        raise ValueError(value)
    return tuple(items)


def whole(minimum: int, maximum: float = math.inf) -> Kind:
    """Return the type of values that are integers from `minimum` to `maximum`."""

    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise TypeError(value)
        if not minimum <= (number := int(value)) <= maximum:
            raise ValueError(value)
        return number

    what = f"of at least {minimum}" if math.isinf(maximum) else f"from {minimum} to {maximum}"
    return Kind(f"a whole number {what}", read)


def decimal(minimum: int, maximum: float = math.inf) -> Kind:
    """Return the type of values that are decimal numbers from `minimum` to `maximum`."""

    def read(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise TypeError(value)
        if not minimum <= (number := float(value)) <= maximum or math.isinf(number):
            raise ValueError(value)
        return number

    what = f"at least {minimum}" if math.isinf(maximum) else f"{minimum} to {maximum:g}"
    return Kind(f"a number of {what}", read)


def one_of(*words: str) -> Kind:
    """Return the type of values that are one of `words`."""

    def read(value: Any) -> str:
        if value not in words:
            raise ValueError(value)
        return str(value)

    return Kind("one of " + ", ".join(f'"{word}"' for word in words), read)


TEXT = Kind("a text", _read_text)
DURATION = Kind('a duration such as "15s", "10m" or "1h30m"', _read_duration)
SWITCH = Kind("true or false", _read_switch)
LISTEN = Kind('HOST:PORT such as "127.0.0.1:6443", "[::1]:6443" or "0.0.0.0:0" (any free port)', _read_listen)
ADDRESS = Kind('an IP address such as "192.0.2.10", or empty', _read_address)
RANGES = Kind(
    'a range such as "10.96.0.0/16", or one of each family such as "10.96.0.0/16,fd00:10:96::/112"', _read_ranges
)
PORTS = Kind('a range of ports such as "30000-32767"', _read_ports)
NAMES = Kind('a list of names such as ["ctrlmgr.example.com", "192.0.2.10"]', lambda value: _read_list(value or []))
LIST = Kind('a list of names such as ["*", "-endpoints-controller"]', _read_list)
TEXTS = Kind('a list of texts such as ["a.crt,a.key"]; in a variable "a.crt,a.key;b.crt,b.key"', _read_texts)
