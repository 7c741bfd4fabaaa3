"""Parses and formats timestamps and durations, and returns their fields.

Guarantees: strings are parsed as in Go's `time.ParseDuration` and RFC 3339 parsing, with nanoseconds. Timestamps
outside the years 1 to 9999, and durations outside 64 bits of nanoseconds, raise `EvalError`.

Source: cel-go `common/types/{timestamp,duration}.go`.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from ctrlmgr.expressions.values import LEAST_INT, MOST_INT, Duration, EvalError, Timestamp
from ctrlmgr.golang.go_text import quote

SECOND: Final = 10**9
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST: Final = -62_135_596_800 * SECOND
_LAST: Final = 253_402_300_800 * SECOND - 1

_TIME = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(?:[.,]([0-9]{1,9})[0-9]*)?(Z|[+-][0-9]{2}:[0-9]{2})"
)
_SPAN = re.compile(r"[+-]?(?:0|(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+)")
_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)")
_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3600 * SECOND,
}
_OFFSET = re.compile(r"([+-]?)([0-9]{1,2}):([0-9]{2})")
_LONGEST = 200


def parse_timestamp(text: str) -> Timestamp:
    """Parse an RFC 3339 timestamp; raises `EvalError` if the string is invalid."""
    match = _TIME.fullmatch(text)
    try:
        if match is None:
            raise ValueError
        moment = datetime.fromisoformat(match[1] + match[3].replace("Z", "+00:00"))
        since = moment - _EPOCH
    except (ValueError, OverflowError) as error:
        shown = quote(text[:_LONGEST])
        words = f'parsing time {shown} as "2006-01-02T15:04:05Z07:00": cannot parse {shown} as "2006"'
        raise EvalError(words) from error
    fraction = int((match[2] or "0").ljust(9, "0"))
    return timestamp((since.days * 86400 + since.seconds) * SECOND + fraction)


def parse_duration(text: str) -> Duration:
    """Parse a duration such as `1h30m`; raises `EvalError` if the string is invalid."""
    if len(text) > _LONGEST or not _SPAN.fullmatch(text):
        raise EvalError(f"time: invalid duration {quote(text[:_LONGEST])}")
    total = 0
    for whole, fraction, unit in _PART.findall(text):
        total += int(whole or "0") * _UNITS[unit] + int(fraction or "0") * _UNITS[unit] // 10 ** len(fraction)
    total = -total if text.startswith("-") else total
    if not LEAST_INT <= total <= MOST_INT:
        raise EvalError(f"time: invalid duration {quote(text)}")
    return Duration(total)


def timestamp(nanoseconds: int) -> Timestamp:
    """Return a timestamp; raises `EvalError` if it is outside the allowed years."""
    if not _FIRST <= nanoseconds <= _LAST:
        raise EvalError("timestamp overflow")
    return Timestamp(nanoseconds)


def duration(nanoseconds: int) -> Duration:
    """Return a duration; raises `EvalError` if it does not fit into 64 bits."""
    if not LEAST_INT <= nanoseconds <= MOST_INT:
        raise EvalError("duration overflow")
    return Duration(nanoseconds)


def write_timestamp(moment: Timestamp) -> str:
    """Format a timestamp as RFC 3339 in UTC, without trailing zeros in the fraction."""
    fraction = moment.nanoseconds % SECOND
    decimals = f".{fraction:09d}".rstrip("0") if fraction else ""
    return f"{_local(moment, UTC).strftime('%Y-%m-%dT%H:%M:%S').rjust(19, '0')}{decimals}Z"


def write_duration(span: Duration) -> str:
    """Format a duration in seconds: `5400s`, `0.5s`."""
    whole, fraction = divmod(abs(span.nanoseconds), SECOND)
    decimals = f".{fraction:09d}".rstrip("0") if fraction else ""
    return f"{'-' if span.nanoseconds < 0 else ''}{whole}{decimals}s"


def local(moment: Timestamp, zone: str = "") -> datetime:
    """Return the date and time of a timestamp in a time zone, by default UTC.

    Raises `EvalError` if the time zone is unknown.
    """
    return _local(moment, _zone(zone) if zone else UTC)


def _local(moment: Timestamp, zone: tzinfo) -> datetime:
    try:
        utc = _EPOCH + timedelta(microseconds=moment.nanoseconds // 1000)
        return utc.astimezone(zone)
    except OverflowError as error:
        raise EvalError("timestamp overflow") from error


def _zone(name: str) -> tzinfo:
    if match := _OFFSET.fullmatch(name):
        offset = timedelta(hours=int(match[2]), minutes=int(match[3]))
        if offset >= timedelta(days=1):
            raise EvalError(f"invalid timezone: {name}")
        return timezone(-offset if match[1] == "-" else offset)
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise EvalError(f"unknown time zone {name}") from error
