"""Says what is wrong with the schedule of a CronJob, and with the name of its time zone.

Guarantees: what passes here is what robfig/cron 3 and Go's `time` accept in Kubernetes, and the words are theirs.

Rules come from robfig/cron's `parser.go` (`ParseStandard`), Go's `strconv.Atoi`, `time.ParseDuration` and
`time.LoadLocation`, and Kubernetes' `pkg/apis/batch/validation/validation.go`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple
from zoneinfo import ZoneInfo

from ctrlmgr.api.go_text import quote

_LARGEST = (1 << 63) - 1
_NAMED = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_EVERY = "@every "
_ZONES = ("TZ=", "CRON_TZ=")
_ZONE_PART = re.compile(r"[A-Za-z._0-9+-]{1,14}")
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_DURATION = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]*)", re.ASCII)
_UNITS = ("ns", "us", "µs", "μs", "ms", "s", "m", "h")
_WHITE = "\t\n\v\f\r \x85\xa0"


class _Field(NamedTuple):
    low: int
    high: int
    names: Mapping[str, int] = {}


def _numbered(names: str, first: int) -> dict[str, int]:
    return {name: number for number, name in enumerate(names.split(), first)}


_FIELDS = (
    _Field(0, 59),
    _Field(0, 23),
    _Field(1, 31),
    _Field(1, 12, _numbered("jan feb mar apr may jun jul aug sep oct nov dec", 1)),
    _Field(0, 6, _numbered("sun mon tue wed thu fri sat", 0)),
)


class _Malformed(ValueError):
    """What is wrong, in words."""


def schedule_problem(schedule: str) -> str:
    """Return what is wrong with `schedule`, the empty string if nothing is."""
    try:
        _check(schedule)
    except _Malformed as problem:
        return str(problem)
    return ""


def _check(schedule: str) -> None:
    if not schedule:
        raise _Malformed("empty spec string")
    if schedule.startswith(_ZONES):
        zone, _, schedule = schedule.partition(" ")
        name = zone.partition("=")[2]
        if problem := location_problem(name):
            raise _Malformed(f"provided bad location {name}: {problem}")
        schedule = schedule.strip(_WHITE)
    if schedule.startswith("@"):
        _check_named(schedule)
        return
    fields = [each for each in re.split(f"[{_WHITE}]+", schedule) if each]
    if len(fields) != len(_FIELDS):
        raise _Malformed(f"expected exactly {len(_FIELDS)} fields, found {len(fields)}: [{' '.join(fields)}]")
    for text, field in zip(fields, _FIELDS, strict=True):
        for expression in filter(None, text.split(",")):
            _check_range(expression, field)


def _check_named(schedule: str) -> None:
    if schedule.startswith(_EVERY):
        if problem := _duration_problem(schedule.removeprefix(_EVERY)):
            raise _Malformed(f"failed to parse duration {schedule}: {problem}")
    elif schedule not in _NAMED:
        raise _Malformed(f"unrecognized descriptor: {schedule}")


def _check_range(expression: str, field: _Field) -> None:
    """Check `*`, `N`, `N-M`, each perhaps with `/STEP`."""
    span, *steps = expression.split("/")
    low, high = _bounds(span.split("-"), field, expression)
    if len(steps) > 1:
        raise _Malformed(f"too many slashes: {expression}")
    if steps:
        step = _number(steps[0])
        high = high if "-" in span else field.high
    else:
        step = 1
    if low < field.low:
        raise _Malformed(f"beginning of range ({low}) below minimum ({field.low}): {expression}")
    if high > field.high:
        raise _Malformed(f"end of range ({high}) above maximum ({field.high}): {expression}")
    if low > high:
        raise _Malformed(f"beginning of range ({low}) beyond end of range ({high}): {expression}")
    if not step:
        raise _Malformed(f"step of range should be a positive number: {expression}")


def _bounds(ends: list[str], field: _Field, expression: str) -> tuple[int, int]:
    if ends[0] in ("*", "?"):
        return field.low, field.high
    low = _number_or_name(ends[0], field)
    if len(ends) > 2:
        raise _Malformed(f"too many hyphens: {expression}")
    return low, _number_or_name(ends[1], field) if len(ends) == 2 else low


def _number_or_name(text: str, field: _Field) -> int:
    named = field.names.get(text.lower())
    return _number(text) if named is None else named


def _number(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise _Malformed(f"failed to parse int from {text}: strconv.Atoi: parsing {quote(text)}: invalid syntax")
    if len(text) > 20 or not -_LARGEST - 1 <= int(text) <= _LARGEST:
        raise _Malformed(f"failed to parse int from {text}: strconv.Atoi: parsing {quote(text)}: value out of range")
    if int(text) < 0:
        raise _Malformed(f"negative number ({int(text)}) not allowed: {text}")
    return int(text)


def _duration_problem(text: str) -> str:
    """Return what Go finds wrong with a duration like `1h30m`."""
    rest = text[1:] if text[:1] in ("+", "-") else text
    if rest == "0":
        return ""
    if not rest:
        return f"time: invalid duration {quote(text)}"
    while rest:
        match = _DURATION.match(rest)
        assert match is not None  # it matches the empty string, too
        whole, fraction, unit = match.groups()
        if not whole and not fraction:
            return f"time: invalid duration {quote(text)}"
        if unit not in _UNITS:
            problem = f"unknown unit {quote(unit)}" if unit else "missing unit"
            return f"time: {problem} in duration {quote(text)}"
        rest = rest[match.end() :]
    return ""


def time_zone_problems(name: str) -> list[str]:
    """Return what is wrong with spec.timeZone."""
    if not name:
        return ["timeZone must be nil or non-empty string"]
    if any(part in (".", "..") or part[:1] == "-" or not _ZONE_PART.fullmatch(part) for part in name.split("/")):
        return [f"unknown time zone {name}"]
    local = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
    problems = [local if name.lower() == "local" else "", location_problem(name)]
    return list(filter(None, problems))


def location_problem(name: str) -> str:
    """Return what is wrong with the name of a time zone; where there is no database of them, any may exist."""
    if name in ("", "UTC", "Local") or _is_known(name) or not _is_known("Etc/UTC"):
        return ""
    return f"unknown time zone {name}"


def _is_known(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (LookupError, ValueError, OSError):  # not there, no name of a zone, a directory of zones
        return False
    return True
