"""Parses timestamps in objects (RFC 3339), and formats them as Kubernetes does.

Guarantees: `canonical_time` returns a time in whole seconds, and `canonical_micro_time` a time with six decimals. Both
times are in UTC and end with `Z`. Go's zero time, the first second of the year 1, counts as unset; for this time, the
functions return None.

Rules come from apimachinery's `pkg/apis/meta/v1/time.go` and `micro_time.go`, and from Go's `time.Parse`.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from ctrlmgr.caches.memoized import memoized
from ctrlmgr.golang.go_time import MICROSECONDS, SECONDS, parse_problem

_DIGITS = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}"
_ZONE = r"(?:Z|[+-][0-9]{2}:[0-9]{2})"
_TIME = re.compile(f"({_DIGITS})(?:[.,][0-9]+)?({_ZONE})")
_MICRO_TIME = re.compile(f"({_DIGITS}[.,][0-9]{{6}})({_ZONE})")
_LONGEST = 40  # the maximum length of a memoized time, in characters
_ZERO = datetime(1, 1, 1, tzinfo=UTC)


@memoized(entries=4096, longest=_LONGEST)  # memoized, because every update repeats an object's timestamps
def canonical_time(text: str) -> str | None:
    """Return a meta/v1 Time in Kubernetes' form, `2026-01-02T03:04:05Z`; raises ValueError if `text` is invalid."""
    moment = _parse(text, _TIME, SECONDS)
    return _utc(moment, "seconds") if moment != _ZERO else None


@memoized(entries=4096, longest=_LONGEST)
def canonical_micro_time(text: str) -> str | None:
    """Return a meta/v1 MicroTime in Kubernetes' form, `2026-01-02T03:04:05.123456Z`.

    Raises ValueError if `text` is invalid.
    """
    moment = _parse(text, _MICRO_TIME, MICROSECONDS)
    return _utc(moment, "microseconds") if moment != _ZERO else None


def _parse(text: str, pattern: re.Pattern[str], layout: str) -> datetime:
    match = pattern.fullmatch(text)
    try:
        if match is None:
            raise ValueError
        return datetime.fromisoformat("".join(match.groups()).replace(",", ".")).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ValueError(parse_problem(text, layout)) from error


def _utc(moment: datetime, precision: str) -> str:
    return moment.isoformat(timespec=precision)[:-6] + "Z"
