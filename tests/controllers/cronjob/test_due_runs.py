"""Tests of the due run of a CronJob: the latest missed run, which is found without a loop over all missed runs."""

from __future__ import annotations

from datetime import datetime
from random import Random

import pytest

from ctrlmgr.controllers.cronjob.due_runs import MANY, PADDING, InvalidSchedule, missed_runs, next_look
from ctrlmgr.controllers.cronjob.schedule import SECOND, Next, next_run
from ctrlmgr.kinds.batch.cron_schedule import parse_schedule
from tests.controllers.cronjob.clocks import random_schedule


def _at(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp()) * SECOND


def _runs(schedule: str) -> Next:
    return next_run(parse_schedule(schedule))


class CountingSchedule:
    """A schedule that counts how often the next run is computed."""

    def __init__(self, schedule: str) -> None:
        self._next = _runs(schedule)
        self.asked = 0

    def __call__(self, at: int) -> int:
        self.asked += 1
        return self._next(at)


@pytest.mark.parametrize(
    ("schedule", "since", "now", "latest", "number"),
    [
        ("0 * * * *", "2026-01-01T10:05:00Z", "2026-01-01T10:59:59Z", None, 0),
        ("0 * * * *", "2026-01-01T10:05:00Z", "2026-01-01T11:00:00Z", "2026-01-01T11:00:00Z", 0),
        ("0 * * * *", "2026-01-01T10:05:00Z", "2026-01-01T12:30:00Z", "2026-01-01T12:00:00Z", 2),
        ("0 * * * *", "2026-01-01T00:00:00Z", "2026-01-05T04:10:00Z", "2026-01-05T04:00:00Z", 100),
        ("0 * * * *", "2026-01-01T00:00:00Z", "2026-01-05T05:10:00Z", "2026-01-05T05:00:00Z", 101),
        ("@every 1h", "2026-01-01T00:30:00Z", "2026-01-01T05:10:00Z", "2026-01-01T04:30:00Z", 4),
        # The first two runs are a minute apart, and the next ones a week: no run is due.
        ("59,0 23,0 * * 6,0", "2026-01-03T23:00:00Z", "2026-01-09T12:00:00Z", None, 7922),
    ],
)
def test_the_latest_missed_run_counts(schedule: str, since: str, now: str, latest: str | None, number: int) -> None:
    missed = missed_runs(_runs(schedule), _at(since), _at(now))
    assert (missed.latest, missed.number) == (latest and _at(latest), number)


def test_a_schedule_without_a_next_run_is_invalid() -> None:
    with pytest.raises(InvalidSchedule, match="time difference between two schedules is less than 1 second"):
        missed_runs(_runs("59 23 31 2 *"), _at("2026-01-01T00:00:00Z"), _at("2026-01-01T00:00:00Z"))


def test_the_latest_run_equals_a_step_by_step_search() -> None:
    random = Random(7)
    for _ in range(300):
        runs = _runs(random_schedule(random))
        since = _at("2026-01-01T00:00:00Z") + random.randrange(86_400 * 365) * SECOND
        now = since + random.randrange(86_400 * 40) * SECOND
        missed = missed_runs(runs, since, now)
        if missed.latest is None:
            continue
        assert since < missed.latest <= now < runs(missed.latest)


@pytest.mark.parametrize("schedule", ["* * * * *", "0 0 * * *", "* * 1-30 1 *", "@every 7s", "*/5 9-17 * * 1-5"])
def test_years_of_missed_runs_cost_as_much_as_hours(schedule: str) -> None:
    runs = CountingSchedule(schedule)
    missed = missed_runs(runs, _at("2001-01-30T23:50:00Z"), _at("2026-08-01T00:00:30Z"))
    assert missed.number > MANY or schedule == "* * 1-30 1 *"
    assert runs.asked < 200


@pytest.mark.parametrize(
    ("schedule", "since", "now", "expected"),
    [
        ("0 * * * *", "2026-01-01T10:05:00Z", "2026-01-01T10:30:00Z", 1800),
        ("0 * * * *", "2026-01-01T10:05:00Z", "2026-01-01T12:30:00Z", 1800),
        ("0 * * * *", "2026-01-01T10:05:00Z", "2026-01-01T13:00:00Z", 3600),
        ("@every 1h", "2026-01-01T00:30:00Z", "2026-01-01T05:10:00Z", 1200),
    ],
)
def test_the_next_reconcile_is_shortly_after_the_next_run(schedule: str, since: str, now: str, expected: int) -> None:
    assert next_look(_runs(schedule), _at(since), _at(now)) == expected * SECOND + PADDING
