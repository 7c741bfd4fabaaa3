"""Formats the ages of objects as kubectl does, for example `5s`, `3m20s`, `2d4h`, `400d`.

The format is that of apimachinery's `pkg/util/duration` (HumanDuration).
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

UNKNOWN = "<unknown>"

_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 365 * 86400


class Ages(NamedTuple):
    """Formats ages relative to a fixed time."""

    now: datetime

    def since(self, timestamp: str | None) -> str:
        """Return the age of a timestamp (RFC 3339); `<unknown>` if there is no timestamp."""
        if not timestamp:
            return UNKNOWN
        return human_duration(self.now - datetime.fromisoformat(timestamp))


def ages_at(now: int) -> Ages:
    """Return ages relative to `now` (microseconds since 1970)."""
    return Ages(datetime.fromtimestamp(now / 1_000_000, UTC))


def human_duration(duration: timedelta) -> str:
    """Format a duration with at most two units; short durations are formatted more precisely."""
    seconds = int(duration.total_seconds())
    if seconds < -1:
        return "<invalid>"
    if seconds < 0:
        return "0s"
    if seconds < 2 * _MINUTE:
        return f"{seconds}s"
    if seconds < 10 * _MINUTE:
        return _two(seconds, _MINUTE, "m", 1, "s")
    if seconds < 3 * _HOUR:
        return f"{seconds // _MINUTE}m"
    if seconds < 8 * _HOUR:
        return _two(seconds, _HOUR, "h", _MINUTE, "m")
    if seconds < 2 * _DAY:
        return f"{seconds // _HOUR}h"
    if seconds < 8 * _DAY:
        return _two(seconds, _DAY, "d", _HOUR, "h")
    if seconds < 2 * _YEAR:
        return f"{seconds // _DAY}d"
    if seconds < 8 * _YEAR:
        return _two(seconds, _YEAR, "y", _DAY, "d")
    return f"{seconds // _YEAR}y"


def _two(seconds: int, large: int, name: str, small: int, small_name: str) -> str:
    rest = seconds % large // small
    return f"{seconds // large}{name}" + (f"{rest}{small_name}" if rest else "")
