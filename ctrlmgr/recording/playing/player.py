"""The player: which of a recording's events have happened by now.

Guarantees:
- Pure: it is told what time it is (`now`, monotonic seconds) and tells how many events have happened. That number only
  grows, but for `seek` and `step`.
- While it plays, an event has happened exactly when its time has come: speed, pauses and how often it is asked change
  nothing about which events come before which moment of the recording.
- It stands still while it is paused, and at the end.
"""

from __future__ import annotations

from bisect import bisect_right

from ctrlmgr.api.resource import Revision
from ctrlmgr.errors import BadRequest
from ctrlmgr.recording.playing.timetable import SECOND, Timetable

FASTEST = 1_000_000.0
"""Times as fast as it happened; from there on one may as well seek."""


class Player:
    """A place in a timetable that moves as time passes; used by one thread at a time."""

    def __init__(self, timetable: Timetable, now: float, *, speed: float = 1.0, paused: bool = False) -> None:
        """Stand where the recording begins; raises `BadRequest` for a speed that is none."""
        self.timetable = timetable
        self.position = timetable.opening
        """How many events have happened."""
        self.paused = paused
        self.speed = _checked(speed)
        # Microseconds of playing at speed 1: at `_since`, from where they are counted, and when last asked.
        self._from = self._at = 0
        self._since = now

    @property
    def has_ended(self) -> bool:
        """Whether everything has happened."""
        return self.position == len(self.timetable)

    @property
    def revision(self) -> Revision:
        """The newest revision that there has been."""
        return self.timetable.revisions[self.position - 1]

    @property
    def time(self) -> int:
        """What time it was in the recording when the player was last asked, microseconds since 1970."""
        last = self.position - 1
        time = self.timetable.times[last]
        if self.has_ended:
            return time
        return min(time + self._at - self.timetable.due[last], self.timetable.times[self.position])

    def advance(self, now: float) -> int:
        """Have everything happen that is due, and return how many events have happened."""
        if not self.paused and not self.has_ended:
            passed = round(max(now - self._since, 0.0) * self.speed * SECOND)
            self._at = min(self._from + passed, self.timetable.due[-1])
            self.position = bisect_right(self.timetable.due, self._at, lo=self.position)
        return self.position

    def wait(self, now: float) -> float | None:
        """Return the seconds until the next event is due; None while nothing is going to happen by itself."""
        self.advance(now)
        if self.paused or self.has_ended:
            return None
        return (self.timetable.due[self.position] - self._at) / SECOND / self.speed

    def pause(self, now: float) -> None:
        """Stand still."""
        self.advance(now)
        self.paused = True

    def resume(self, now: float) -> None:
        """Go on."""
        self._count_from(now)
        self.paused = False

    def set_speed(self, speed: float, now: float) -> None:
        """Play so many times as fast as it happened; raises `BadRequest`."""
        speed = _checked(speed)
        self._count_from(now)
        self.speed = speed

    def step(self, events: int, now: float) -> None:
        """Stand still so many events further on, or back if `events` is negative."""
        self.pause(now)
        self._stand(self.position + events, now)

    def seek_revision(self, revision: Revision, now: float) -> None:
        """Go to where `revision` is the newest there has been."""
        self._stand(self.timetable.upto_revision(revision), now)

    def seek_time(self, moment: int, now: float) -> None:
        """Go to a moment, microseconds since 1970; the end or the beginning if it is beyond."""
        self._stand(self.timetable.upto_time(moment), now)
        if not self.has_ended:
            # Not beyond what a silence that is cut short is played for.
            since = max(moment - self.timetable.times[self.position - 1], 0)
            self._from = self._at = min(self._at + since, self.timetable.due[self.position])

    def _stand(self, position: int, now: float) -> None:
        self.position = min(max(position, self.timetable.opening), len(self.timetable))
        self._from, self._since = self.timetable.due[self.position - 1], now
        self._at = self._from

    def _count_from(self, now: float) -> None:
        self.advance(now)
        self._from, self._since = self._at, now


def _checked(speed: float) -> float:
    if not 0 < speed <= FASTEST:
        raise BadRequest(f"speed is {speed:g}; it must be above 0 and at most {FASTEST:,.0f}")
    return speed
