"""Computes which run of a CronJob is due, and when the next run is due.

Guarantees:
- If several runs were missed, only the latest one is started. The number of missed runs is estimated from the distance
  of the first two runs. Therefore the latest missed run is found without iterating over all missed runs. More than a
  hundred missed runs cause a warning.
- If `startingDeadlineSeconds` is set, a missed run counts only if the run was due within the last
  `startingDeadlineSeconds` seconds.
- A schedule that matches no date, such as the 30th of February, is an error.

Source: Kubernetes' `pkg/controller/cronjob/utils.go` (`mostRecentScheduleTime`, `nextScheduleTimeDuration`). All times
in this module are in microseconds since 1970.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ctrlmgr.controllers.cronjob.schedule import NEVER, SECOND, Next

MANY: Final = 100
"""The number of missed runs that causes a warning."""
PADDING: Final = 100_000
"""The delay after the scheduled time, so that slightly different clocks do not miss the run (`nextScheduleDelta`)."""


class InvalidSchedule(ValueError):
    """Raised if a schedule is well-formed but unusable."""


class MissedRuns(NamedTuple):
    """The missed runs in an interval."""

    since: int
    latest: int | None
    number: int = 0


def missed_runs(next_run: Next, since: int, now: int) -> MissedRuns:
    """Return the missed runs after `since` and until `now`.

    Raises `InvalidSchedule` if the schedule matches no date.
    """
    first = next_run(since)
    if now < first:
        return MissedRuns(since, None)
    second = next_run(first)
    if now < second:
        return MissedRuns(since, first)
    interval = (second - first + SECOND // 2) // SECOND
    if interval < 1:
        raise InvalidSchedule("time difference between two schedules is less than 1 second")
    number = (now - first) // SECOND // interval + 1
    # Start two intervals earlier, because schedules are irregular and `@every` must keep its phase.
    start = first + (number - 2) * interval * SECOND
    return MissedRuns(since, _latest(next_run, start, now), number)


def _latest(next_run: Next, start: int, now: int) -> int | None:
    """Return the latest run after `start` and until `now`.

    A search for the next run from a later start never finds an earlier run. Therefore the latest run is the result of
    the last successful search.
    """
    found = next_run(start)
    if found > now or found == NEVER:
        return None
    step = 1
    while NEVER < (ahead := next_run(found)) <= now:
        # Advance in steps that become longer as long as each search finds a run.
        leapt = next_run(min(now, ahead + step * SECOND))
        found, step = (leapt, step * 2) if NEVER < leapt <= now else (ahead, 1)
    return found


def next_look(next_run: Next, since: int, now: int) -> int:
    """Return the microseconds until the next run, as `nextScheduleTimeDuration` does."""
    try:
        missed = missed_runs(next_run, since, now)
    except InvalidSchedule:
        start = now
    else:
        start = missed.latest if missed.latest is not None else (now if missed.number else since)
    return next_run(start) + PADDING - now
