"""A naive implementation of cron schedules, which checks the local time minute by minute, independently of the code
under test.
"""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from random import Random
from zoneinfo import ZoneInfo

_RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))

ZONES = (
    "UTC",
    "America/Havana",
    "America/New_York",
    "America/Sao_Paulo",
    "America/St_Johns",
    "Asia/Kathmandu",
    "Asia/Tokyo",
    "Europe/Berlin",
    "Europe/London",
    "Pacific/Apia",
    "Pacific/Chatham",
)


def _numbers(text: str, low: int, high: int) -> set[int]:
    found: set[int] = set()
    for part in text.split(","):
        span, _, step = part.partition("/")
        ends = [low, high] if span == "*" else [int(each) for each in span.split("-")]
        last = ends[1] if len(ends) == 2 else (high if step else ends[0])
        found.update(range(ends[0], last + 1, int(step or 1)))
    return found


class Days:
    """Some days in one time zone, as a sequence of the local times of all minutes."""

    def __init__(self, zone: str, start: int, days: int) -> None:
        """Begin the sequence at `start`, a whole minute (seconds since 1970)."""
        self.start = start
        self.end = start + days * 86_400
        place = ZoneInfo(zone)
        shown = (datetime.fromtimestamp(at, UTC).astimezone(place) for at in range(start, self.end, 60))
        self._minutes = [(now.minute, now.hour, now.day, now.month, (now.weekday() + 1) % 7) for now in shown]
        self._odd = [
            self.start + place * 60
            for place, (before, now) in enumerate(pairwise(self._minutes), start=1)
            if (before[2] != now[2] and now[:2] != (0, 0)) or (before[1] != now[1] and now[0] != 0)
        ]

    def is_odd(self, after: int, until: int) -> bool:
        """Return whether a clock change between two points in time skips midnight or the start of an hour.

        If a clock change skips such a time, the results of robfig/cron differ from local time.
        """
        return any(after < at <= until for at in self._odd)

    def next(self, schedule: str, after: int) -> int | None:
        """Return the first minute after a point in time at which the schedule runs; None if the schedule does not run
        within these days.
        """
        texts = schedule.split()
        minutes, hours, days, months, weekdays = (
            _numbers(text, *span) for text, span in zip(texts, _RANGES, strict=True)
        )
        both = "*" in (texts[2], texts[4])
        for place in range((after - self.start) // 60 + 1, len(self._minutes)):
            minute, hour, day, month, weekday = self._minutes[place]
            if minute not in minutes or hour not in hours or month not in months:
                continue
            if (day in days and weekday in weekdays) if both else (day in days or weekday in weekdays):
                return self.start + place * 60
        return None


def random_schedule(random: Random) -> str:
    """Return a random schedule that runs at least every few days; the schedules cover all forms of fields."""
    minute = random.choice(["*", "0", "30", "*/7", "0,15,45", "5-20/5", "59", "3/10"])
    hour = random.choice(["*", "0", "1", "2", "3", "23", "*/6", "1-3", "0,12", "22/1"])
    day, month, weekday = "*", "*", "*"
    match random.randrange(4):
        case 0:
            day = random.choice(["*/2", "1-31", "1/3", "2,5,8,11,14,17,20,23,26,29"])
        case 1:
            weekday = random.choice(["1-5", "0", "6", "*/2", "0,3"])
        case 2:
            day, weekday = random.choice(["1", "13", "31"]), random.choice(["0,2,4", "1", "5"])
    return f"{minute} {hour} {day} {month} {weekday}"
