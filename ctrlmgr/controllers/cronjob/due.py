"""Which run of a CronJob is due, and when to look again.

Guarantees:
- Of the runs that were missed only the latest is made up for, and it is found without walking through the others: how
  many were missed is worked out from the distance of the first two. Of more than a hundred there is a warning.
- With `startingDeadlineSeconds` what lies before that many seconds ago does not count.
- A schedule that never comes (the 30th of February) is an error.

Rules come from Kubernetes' `pkg/controller/cronjob/utils.go` (`mostRecentScheduleTime`, `nextScheduleTimeDuration`).
Times are microseconds since 1970.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ctrlmgr.controllers.cronjob.schedule import NEVER, SECOND, Next

MANY: Final = 100
"""More missed runs than that are worth a warning."""
PADDING: Final = 100_000
"""How much later than the next run one looks again, lest clocks that differ a little miss it (`nextScheduleDelta`)."""


class InvalidSchedule(ValueError):
    """The schedule can be read, and makes no sense."""


class Missed(NamedTuple):
    """From when on runs count, the latest that should have been (None if there was none), and how many there were."""

    since: int
    latest: int | None
    number: int = 0


def missed_runs(next_run: Next, since: int, now: int) -> Missed:
    """Return what should have run after `since` and until `now`; raises `InvalidSchedule`."""
    first = next_run(since)
    if now < first:
        return Missed(since, None)
    second = next_run(first)
    if now < second:
        return Missed(since, first)
    interval = (second - first + SECOND // 2) // SECOND
    if interval < 1:
        raise InvalidSchedule("time difference between two schedules is less than 1 second")
    number = (now - first) // SECOND // interval + 1
    # Two intervals back: schedules are not regular, and `@every` must keep its beat.
    start = first + (number - 2) * interval * SECOND
    return Missed(since, _latest(next_run, start, now), number)


def _latest(next_run: Next, start: int, now: int) -> int | None:
    """Return the latest run after `start` and until `now`.

    Runs only come later as one looks from later on, so it is the one before the first look that finds none.
    """
    found = next_run(start)
    if found > now or found == NEVER:
        return None
    step = 1
    while NEVER < (ahead := next_run(found)) <= now:
        # What lies far behind is leapt over, in leaps that grow while they succeed.
        leapt = next_run(min(now, ahead + step * SECOND))
        found, step = (leapt, step * 2) if NEVER < leapt <= now else (ahead, 1)
    return found


def next_look(next_run: Next, since: int, now: int) -> int:
    """Return in how many microseconds the next run is; see `nextScheduleTimeDuration`."""
    try:
        missed = missed_runs(next_run, since, now)
    except InvalidSchedule:
        start = now
    else:
        start = missed.latest if missed.latest is not None else (now if missed.number else since)
    return next_run(start) + PADDING - now
