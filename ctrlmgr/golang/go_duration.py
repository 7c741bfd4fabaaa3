"""Parses and writes durations such as `1h30m` as Go does, with Go's error messages.

Source: Go's `time/format.go` (`ParseDuration`) and `time/time.go` (`Duration.String`).
"""

from __future__ import annotations

import re
from typing import Final

from ctrlmgr.golang.go_text import quote

_LARGEST: Final = (1 << 63) - 1
_PART: Final = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]*)", re.ASCII)
_UNITS: Final = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
"""The number of nanoseconds in each time unit."""


class MalformedDuration(ValueError):
    """Raised for a malformed duration; the message is Go's."""


def parse_go_duration(text: str) -> int:
    """Return the nanoseconds of a duration such as `1h30m`; raises `MalformedDuration` if `text` is no duration."""
    sign, rest = (-1 if text[:1] == "-" else 1), text[1:] if text[:1] in ("+", "-") else text
    if rest == "0":
        return 0
    if not rest:
        raise MalformedDuration(f"time: invalid duration {quote(text)}")
    total = 0
    while rest:
        match = _PART.match(rest)
        assert match is not None  # the pattern also matches the empty string
        total += _nanoseconds(match, text)
        if total > _LARGEST:
            raise MalformedDuration(f"time: invalid duration {quote(text)}")
        rest = rest[match.end() :]
    return sign * total


def _nanoseconds(part: re.Match[str], text: str) -> int:
    """Return the nanoseconds of one number with its unit."""
    whole, fraction, unit = part.groups()
    if not whole and not fraction:
        raise MalformedDuration(f"time: invalid duration {quote(text)}")
    if unit not in _UNITS:
        problem = f"unknown unit {quote(unit)}" if unit else "missing unit"
        raise MalformedDuration(f"time: {problem} in duration {quote(text)}")
    return (int((whole or "0") + (fraction or "")) * _UNITS[unit]) // int(10 ** len(fraction or ""))


def write_go_duration(seconds: float) -> str:
    """Return a duration as Go's `time.Duration.String` does, such as `1.5s` or `2m0.25s`."""
    millisecond, second = _UNITS["ms"], _UNITS["s"]
    nanoseconds = round(seconds * second)
    if nanoseconds < 1000:
        return f"{nanoseconds}ns" if nanoseconds else "0s"
    if nanoseconds < millisecond:
        return f"{_decimal(nanoseconds, 1000)}µs"
    if nanoseconds < second:
        return f"{_decimal(nanoseconds, millisecond)}ms"
    minutes, rest = divmod(nanoseconds, _UNITS["m"])
    hours, minutes = divmod(minutes, 60)
    text = f"{_decimal(rest, second)}s"
    if hours:
        return f"{hours}h{minutes}m{text}"
    return f"{minutes}m{text}" if minutes else text


def _decimal(value: int, unit: int) -> str:
    whole, fraction = divmod(value, unit)
    digits = f"{fraction:0{len(str(unit)) - 1}d}".rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)
