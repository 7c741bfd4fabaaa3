"""Computes the next time of a cron schedule.

Guarantees: the result equals the result of robfig/cron 3 (`spec.go`, `constantdelay.go`) with Go's `time`, to the
second. If clocks are put forward, the missing hour is skipped. If clocks are put back, the runs in the repeated hour
occur twice. Days whose local time skips midnight are handled, too. The search for the next time ends if there is no
match within five years.

All times in this module are in microseconds since 1970. `NEVER` is Go's zero time, which is before all other times.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from ctrlmgr.kinds.batch.cron_schedule import Every, Fields, Schedule

SECOND: Final = 1_000_000
_DAY: Final = 86_400
_YEARS: Final = 5
"""The number of years in which the search looks for the next run."""
_ZERO: Final = -62_135_596_800
"""The start of the year 1, in seconds since 1970."""
NEVER: Final = _ZERO * SECOND

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_BOUND: Final = 366 * _DAY
_LAST: Final = 253_402_300_800

Next = Callable[[int], int]
"""The type of a function that returns the first run after a given time, or `NEVER` if no run follows."""


def next_run(schedule: Schedule) -> Next:
    """Return the function that computes the next run of a schedule."""
    if isinstance(schedule, Every):
        seconds = schedule.seconds
        return lambda at: (at // SECOND + seconds) * SECOND
    place = _Place(_zone(schedule.zone))
    return lambda at: _Search(schedule, place, at // SECOND + 1).run() * SECOND


@cache
def _zone(name: str) -> tzinfo:
    # Runs must not depend on the time zone of this machine. The pods of a control plane use UTC as local time, so this
    # function uses UTC.
    return UTC if name in ("", "UTC", "Local") else ZoneInfo(name)


class _Civil(NamedTuple):
    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: int
    weekday: int
    """The day of the week; 0 is Sunday."""


class _Place:
    """Converts between UTC and the local time of one time zone."""

    def __init__(self, zone: tzinfo) -> None:
        self._zone = zone

    def offset(self, at: int) -> int:
        """Return the offset of local time from UTC in seconds."""
        if self._zone is UTC:
            return 0
        bounded = min(max(at, _ZERO + _BOUND), _LAST - _BOUND)
        offset = (_EPOCH + timedelta(seconds=bounded)).astimezone(self._zone).utcoffset()
        return 0 if offset is None else int(offset.total_seconds())

    def civil(self, at: int) -> _Civil:
        """Return the local date and time of a UTC time."""
        days, seconds = divmod(at + self.offset(at), _DAY)
        year, month, day = _date(days)
        return _Civil(year, month, day, seconds // 3600, seconds // 60 % 60, seconds % 60, (days + 4) % 7)

    def at(self, year: int, month: int, day: int, hour: int = 0, minute: int = 0, second: int = 0) -> int:
        """Return the UTC time of a local date and time.

        A month greater than 12 continues in the next year, and a day beyond the end of the month continues in the next
        month. If the local time does not exist or exists twice, the result equals the result of Go's `time.Date`.
        """
        wall = _days(year, month) * _DAY + (day - 1) * _DAY + hour * 3600 + minute * 60 + second
        offset = self.offset(wall)
        return wall - (self.offset(wall - offset) if offset else 0)


def _days(year: int, month: int) -> int:
    """Return the number of days from 1970-01-01 to the first day of a month; the month may be greater than 12."""
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    shifted = year - (month <= 2)
    era, of_era = divmod(shifted, 400)
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


def _date(days: int) -> tuple[int, int, int]:
    """Return the date of a day number since 1970, in the unlimited proleptic Gregorian calendar."""
    era, of_era = divmod(days + 719_468, 146_097)
    of_400 = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * of_400 + of_400 // 4 - of_400 // 100)
    shifted = (5 * of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    return of_400 + era * 400 + (month <= 2), month, of_year - (153 * shifted + 2) // 5 + 1


class _Search:
    """One search for the next run, field by field from the month down, as in robfig/cron (`SpecSchedule.Next`)."""

    def __init__(self, fields: Fields, place: _Place, start: int) -> None:
        self._fields = fields
        self._place = place
        self._at = start
        self._last_year = place.civil(start).year + _YEARS
        # After the search has advanced one field, all smaller fields start at their minimum.
        self._stepped = False

    def run(self) -> int:
        while self._place.civil(self._at).year <= self._last_year:
            if self._month() and self._day() and self._hour() and self._minute() and self._second():
                return self._at
        return _ZERO

    def _month(self) -> bool:
        """Advance to the first matching month; return False if the search has reached the next year."""
        while not self._fields.month >> (now := self._place.civil(self._at)).month & 1:
            if not self._stepped:
                self._begin(now.year, now.month, 1)
                now = self._place.civil(self._at)
            self._at = self._place.at(now.year, now.month + 1, now.day, now.hour, now.minute, now.second)
            if self._place.civil(self._at).month == 1:
                return False
        return True

    def _day(self) -> bool:
        while not _fits_day(self._fields, now := self._place.civil(self._at)):
            if not self._stepped:
                self._begin(now.year, now.month, now.day)
                now = self._place.civil(self._at)
            self._at = self._place.at(now.year, now.month, now.day + 1, now.hour, now.minute, now.second)
            # If the clocks change at midnight, the hour can differ from 0 here.
            if hour := self._place.civil(self._at).hour:
                self._at += (24 - hour if hour > 12 else -hour) * 3600
            if self._place.civil(self._at).day == 1:
                return False
        return True

    def _hour(self) -> bool:
        while not self._fields.hour >> (now := self._place.civil(self._at)).hour & 1:
            if not self._stepped:
                self._begin(now.year, now.month, now.day, now.hour)
            self._at += 3600
            if not self._place.civil(self._at).hour:
                return False
        return True

    def _minute(self) -> bool:
        while not self._fields.minute >> self._place.civil(self._at).minute & 1:
            if not self._stepped:
                self._stepped = True
                self._at -= self._at % 60
            self._at += 60
            if not self._place.civil(self._at).minute:
                return False
        return True

    def _second(self) -> bool:
        if second := self._place.civil(self._at).second:
            self._stepped = True
            self._at += 60 - second
            return False
        return True

    def _begin(self, year: int, month: int, day: int, hour: int = 0) -> None:
        self._stepped = True
        self._at = self._place.at(year, month, day, hour)


def _fits_day(fields: Fields, now: _Civil) -> bool:
    """Return whether the current day matches the schedule.

    If the day of month or the day of week in the schedule is a star, both must match. If neither is a star, one match
    is sufficient.
    """
    by_date = bool(fields.day >> now.day & 1)
    by_weekday = bool(fields.weekday >> now.weekday & 1)
    if fields.any_day or fields.any_weekday:
        return by_date and by_weekday
    return by_date or by_weekday
