"""Formats of time: `date`, `date-time`, `duration`."""

from __future__ import annotations

import re
from datetime import date
from itertools import starmap

_date = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_time = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})([^\n][0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))", re.ASCII)
_go_duration = re.compile(r"[+-]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)", re.ASCII)
_go_part = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_wordy = re.compile(r"(\d+)\s*([A-Za-zµ]+)", re.ASCII)
_NANOSECONDS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_SHORT_UNITS = frozenset(("ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk"))
_LONG_UNITS = ("nano", "micro", "milli", "sec", "min", "hour", "day", "week")
_LARGEST = 2**63 - 1


def is_date(text: str) -> bool:
    """Return whether a string is a calendar date such as `2006-01-02`."""
    if not _date.fullmatch(text):
        return False
    year, month, day = map(int, text.split("-"))
    try:
        date(year or 4, month, day)  # Python has no year 0, which is a leap year in Go
    except ValueError:
        return False
    return True


def is_date_time(text: str) -> bool:
    """Return whether a string is a date, a `T`, and a time with an offset.

    As in Kubernetes, any character may separate the seconds from their fraction.
    """
    day, separator, rest = text.lower().partition("t")
    time = rest.partition("t")[0]
    if not separator or not is_date(day):
        return False
    match = _time.fullmatch(time)
    return match is not None and match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


def is_duration(text: str) -> bool:
    """Return whether a string is a Go duration, or contains a number followed by a unit, such as `2 weeks`."""
    if _is_go_duration(text):
        return True
    found = False
    for number, unit in _wordy.findall(text):
        if int(number) > _LARGEST:
            return False
        name = unit.lower()
        found = found or name in _SHORT_UNITS or name.startswith(_LONG_UNITS)
    return found


def _is_go_duration(text: str) -> bool:
    if not _go_duration.fullmatch(text):
        return False
    parts = _go_part.findall(text)
    return sum(starmap(_nanoseconds, parts)) <= _LARGEST + text.startswith("-")


def _nanoseconds(whole: str, fraction: str, unit: str) -> int:
    size = _NANOSECONDS[unit]
    return int(whole or 0) * size + int(int(fraction or 0) * size // 10 ** len(fraction))
