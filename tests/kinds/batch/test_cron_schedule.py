"""Tests of the next time of a cron schedule against a clock-based oracle, and of special cases of robfig/cron."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from random import Random
from zoneinfo import ZoneInfo

import pytest

from ctrlmgr.controllers.cronjob.schedule import NEVER, SECOND, next_run
from ctrlmgr.kinds.batch.cron_schedule import Every, MalformedSchedule, parse_schedule
from tests.controllers.cronjob.clocks import ZONES, Days, random_schedule

WINDOWS = int(os.environ.get("CTRLMGR_TEST_SCHEDULE_WINDOWS", "12"))
"""The number of tested periods, each with 150 pairs of a schedule and a time: 700 periods are 10^5 pairs."""


def _at(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp()) * SECOND


def _next(schedule: str, after: str) -> str:
    """Return the next run of a schedule, in the schedule's time zone."""
    parsed = parse_schedule(schedule)
    found = next_run(parsed)(_at(after))
    zone = ZoneInfo("UTC" if isinstance(parsed, Every) else parsed.zone or "UTC")
    return datetime.fromtimestamp(found // SECOND, UTC).astimezone(zone).isoformat()


@pytest.mark.parametrize("window", range(WINDOWS))
def test_runs_follow_the_wall_clock(window: int) -> None:
    random = Random(window)
    zone = ZONES[window % len(ZONES)]
    start = int(datetime(random.randrange(2005, 2037), random.randrange(1, 13), 1, tzinfo=UTC).timestamp())
    days = Days(zone, start, 45)
    for _ in range(150):
        schedule, after = random_schedule(random), start + random.randrange(30 * 86_400)
        found = next_run(parse_schedule(f"TZ={zone} {schedule}"))(after * SECOND) // SECOND
        expected = days.next(schedule, after)
        if days.is_odd(after, max(found, expected or days.end)):
            continue  # for these schedules there are explicit cases below
        if expected is None:
            assert found >= days.end, (schedule, zone, after)
        else:
            assert found == expected, (schedule, zone, after)


@pytest.mark.parametrize(
    ("schedule", "after", "expected"),
    [
        ("*/15 * * * *", "2026-01-01T00:00:00Z", "2026-01-01T00:15:00+00:00"),
        ("0 0 29 2 *", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00+00:00"),
        ("@hourly", "2026-01-01T00:59:59Z", "2026-01-01T01:00:00+00:00"),
        ("@weekly", "2026-01-01T00:00:00Z", "2026-01-04T00:00:00+00:00"),
        ("@monthly", "2026-01-31T00:00:00Z", "2026-02-01T00:00:00+00:00"),
        ("@yearly", "2026-01-31T00:00:00Z", "2027-01-01T00:00:00+00:00"),
        ("0 12 ? * MON-FRI", "2026-01-02T13:00:00Z", "2026-01-05T12:00:00+00:00"),
        ("0 0 13 * fri", "2026-01-02T00:00:00Z", "2026-01-09T00:00:00+00:00"),
        ("0 0 */2 * fri", "2026-01-03T00:00:00Z", "2026-01-05T00:00:00+00:00"),
        ("0 0 * * 0-6/1", "2026-01-03T00:00:00Z", "2026-01-04T00:00:00+00:00"),
        ("@every 90m", "2026-01-01T00:00:00Z", "2026-01-01T01:30:00+00:00"),
        ("@every 1.5s", "2026-01-01T00:00:00Z", "2026-01-01T00:00:01+00:00"),
        # When clocks are put forward, 02:30 does not exist and is skipped.
        ("TZ=Europe/Berlin 30 2 * * *", "2026-03-28T12:00:00Z", "2026-03-30T02:30:00+02:00"),
        ("TZ=America/New_York 0 2 * * *", "2026-03-08T00:00:00Z", "2026-03-09T02:00:00-04:00"),
        # When clocks are put back, 02:30 occurs twice and counts twice.
        ("TZ=Europe/Berlin 30 2 * * *", "2026-10-24T12:00:00Z", "2026-10-25T02:30:00+02:00"),
        ("TZ=Europe/Berlin 30 2 * * *", "2026-10-25T00:30:00Z", "2026-10-25T02:30:00+01:00"),
        # West of Greenwich, if midnight does not exist, the day is not skipped.
        ("TZ=America/Sao_Paulo 0 9 * * 0", "2018-11-01T12:00:00Z", "2018-11-04T09:00:00-02:00"),
        # East of Greenwich, robfig/cron goes back to the previous day, and skips the day.
        ("TZ=Asia/Beirut 59 2 * * 0,3", "2036-03-26T13:51:05Z", "2036-04-02T02:59:00+03:00"),
        # If clocks are put back by half an hour, hours are counted from there, and the next full hour is missed.
        ("TZ=Australia/Lord_Howe 0,45 23 * * 0,3", "2029-03-30T13:52:11Z", "2029-04-01T23:45:00+10:30"),
    ],
)
def test_the_next_run(schedule: str, after: str, expected: str) -> None:
    assert _next(schedule, after) == expected


def test_fractions_of_a_second_are_dropped() -> None:
    after = _at("2026-01-01T00:00:59Z") + 999_999
    assert next_run(parse_schedule("* * * * *"))(after) == _at("2026-01-01T00:01:00Z")
    assert next_run(parse_schedule("@every 10s"))(after) == _at("2026-01-01T00:01:09Z")


def test_an_impossible_day_has_no_run() -> None:
    assert next_run(parse_schedule("59 23 31 2 *"))(_at("2026-01-01T00:00:00Z")) == NEVER


def test_a_leap_day_eight_years_away_has_no_run() -> None:
    assert next_run(parse_schedule("0 0 29 2 *"))(_at("2096-03-01T00:00:00Z")) == NEVER


@pytest.mark.parametrize(
    ("schedule", "problem"),
    [
        ("@every 99999999999h", 'failed to parse duration @every 99999999999h: time: invalid duration "99999999999h"'),
        ("@fortnightly", "unrecognized descriptor: @fortnightly"),
        ("TZ=Mars/Base 0 0 * * *", "provided bad location Mars/Base: unknown time zone Mars/Base"),
    ],
)
def test_an_invalid_schedule_has_the_librarys_error(schedule: str, problem: str) -> None:
    with pytest.raises(MalformedSchedule) as refusal:
        parse_schedule(schedule)
    assert str(refusal.value) == problem
