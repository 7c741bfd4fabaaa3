"""Parses and validates the schedule of a CronJob, and validates the name of its time zone.

Guarantees: schedules are accepted and interpreted in the same way as by robfig/cron 3 and Go's `time` in Kubernetes.
Error messages are the same as those of robfig/cron 3 and Go.

Source: robfig/cron's `parser.go` (`ParseStandard`), Go's `strconv.Atoi`, `time.ParseDuration` and `time.LoadLocation`,
and Kubernetes' `pkg/apis/batch/validation/validation.go`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias
from zoneinfo import ZoneInfo

from ctrlmgr.golang.go_duration import MalformedDuration, parse_go_duration
from ctrlmgr.golang.go_text import quote

_LARGEST = (1 << 63) - 1
_FEW_DIGITS = 4
"""The maximum number of digits of a number that the fast parser reads."""
_NAMED = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY = "@every "
_ZONES = ("TZ=", "CRON_TZ=")
_ZONE_PART = re.compile(r"[A-Za-z._0-9+-]{1,14}")
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
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


class Fields(NamedTuple):
    """A schedule with five fields, in a time zone; each field is a set of numbers, stored as bits.

    If the time zone is empty, times are in the time zone of the clock.
    """

    minute: int
    hour: int
    day: int
    month: int
    weekday: int
    """The days of the week as bits; Sunday is bit 0."""
    any_day: bool
    """Whether the field of the day of the month is a star."""
    any_weekday: bool
    zone: str = ""


class Every(NamedTuple):
    """A schedule with a fixed interval in whole seconds; the interval is at least one second."""

    seconds: int


Schedule: TypeAlias = Fields | Every


class MalformedSchedule(ValueError):
    """Raised for a malformed schedule; the message describes the problem."""


def schedule_problem(schedule: str) -> str:
    """Return the error message for `schedule`; empty if the schedule is valid."""
    try:
        parse_schedule(schedule)
    except MalformedSchedule as problem:
        return str(problem)
    return ""


def parse_schedule(schedule: str) -> Schedule:
    """Parse a schedule; raises `MalformedSchedule` if it is invalid."""
    if not schedule:
        raise MalformedSchedule("empty spec string")
    name = ""
    if schedule.startswith(_ZONES):
        zone, _, schedule = schedule.partition(" ")
        name = zone.partition("=")[2]
        if problem := location_problem(name):
            raise MalformedSchedule(f"provided bad location {name}: {problem}")
        schedule = schedule.strip(_WHITE)
    if schedule.startswith(_EVERY):
        return Every(_whole_seconds(schedule))
    if schedule.startswith("@"):
        if schedule not in _NAMED:
            raise MalformedSchedule(f"unrecognized descriptor: {schedule}")
        schedule = _NAMED[schedule]
    fields = [each for each in re.split(f"[{_WHITE}]+", schedule) if each]
    if len(fields) != len(_FIELDS):
        raise MalformedSchedule(f"expected exactly {len(_FIELDS)} fields, found {len(fields)}: [{' '.join(fields)}]")
    return _fields([_field(text, field) for text, field in zip(fields, _FIELDS, strict=True)], name)


def _fields(read: Sequence[tuple[int, bool]], zone: str) -> Fields:
    bits = [each for each, _ in read]
    return Fields(bits[0], bits[1], bits[2], bits[3], bits[4], read[2][1], read[4][1], zone)


def _field(text: str, field: _Field) -> tuple[int, bool]:
    """Return the values of a schedule field as bits, and whether the field is a star without steps."""
    bits, star = 0, False
    for expression in dict.fromkeys(filter(None, text.split(","))):  # duplicate values have no effect
        span, is_open = _range(expression, field)
        bits |= _bits(span)
        star = star or is_open
    return bits, star


def _bits(span: range) -> int:
    if span.step == 1:
        return (1 << span.stop) - (1 << span.start)
    return sum(1 << number for number in span)


def _range(expression: str, field: _Field) -> tuple[range, bool]:
    """Parse a part of a schedule field: `*`, `N` or `N-M`, each with an optional `/STEP`."""
    span, *steps = expression.split("/")
    ends = span.split("-")
    low, high = _bounds(ends, field, expression)
    if len(steps) > 1:
        raise MalformedSchedule(f"too many slashes: {expression}")
    if steps:
        step = _number(steps[0])
        high = high if "-" in span else field.high
    else:
        step = 1
    if low < field.low:
        raise MalformedSchedule(f"beginning of range ({low}) below minimum ({field.low}): {expression}")
    if high > field.high:
        raise MalformedSchedule(f"end of range ({high}) above maximum ({field.high}): {expression}")
    if low > high:
        raise MalformedSchedule(f"beginning of range ({low}) beyond end of range ({high}): {expression}")
    if not step:
        raise MalformedSchedule(f"step of range should be a positive number: {expression}")
    return range(low, high + 1, step), ends[0] in ("*", "?") and step == 1


def _bounds(ends: list[str], field: _Field, expression: str) -> tuple[int, int]:
    if ends[0] in ("*", "?"):
        return field.low, field.high
    low = _number_or_name(ends[0], field)
    if len(ends) > 2:
        raise MalformedSchedule(f"too many hyphens: {expression}")
    return low, _number_or_name(ends[1], field) if len(ends) == 2 else low


def _number_or_name(text: str, field: _Field) -> int:
    named = field.names.get(text.lower())
    return _number(text) if named is None else named


def _number(text: str) -> int:
    if len(text) <= _FEW_DIGITS and text.isascii() and text.isdigit():
        return int(text)
    if not _INTEGER.fullmatch(text):
        raise MalformedSchedule(f"failed to parse int from {text}: strconv.Atoi: parsing {quote(text)}: invalid syntax")
    if len(text) > 20 or not -_LARGEST - 1 <= int(text) <= _LARGEST:
        raise MalformedSchedule(
            f"failed to parse int from {text}: strconv.Atoi: parsing {quote(text)}: value out of range"
        )
    if int(text) < 0:
        raise MalformedSchedule(f"negative number ({int(text)}) not allowed: {text}")
    return int(text)


def _whole_seconds(schedule: str) -> int:
    """Return the interval of a schedule such as `@every 1h30m` in whole seconds.

    The interval is rounded down, but is at least one second (robfig/cron's `Every`).
    """
    text = schedule.removeprefix(_EVERY)
    try:
        nanoseconds = parse_go_duration(text)
    except MalformedDuration as problem:
        raise MalformedSchedule(f"failed to parse duration {schedule}: {problem}") from None
    return max(1, nanoseconds // 1_000_000_000)


def time_zone_problems(name: str) -> list[str]:
    """Return the validation errors of `spec.timeZone`."""
    if not name:
        return ["timeZone must be nil or non-empty string"]
    if any(part in (".", "..") or part[:1] == "-" or not _ZONE_PART.fullmatch(part) for part in name.split("/")):
        return [f"unknown time zone {name}"]
    local = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
    problems = [local if name.lower() == "local" else "", location_problem(name)]
    return list(filter(None, problems))


def location_problem(name: str) -> str:
    """Return the error message for the name of a time zone.

    If there is no time zone database, every name is accepted.
    """
    if name in ("", "UTC", "Local") or _is_known(name) or not _is_known("Etc/UTC"):
        return ""
    return f"unknown time zone {name}"


def _is_known(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (LookupError, ValueError, OSError):  # the name is unknown, malformed, or a directory of time zones
        return False
    return True
