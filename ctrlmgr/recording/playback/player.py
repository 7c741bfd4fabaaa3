"""The player: determines which events of a recording have happened by now.

Guarantees:
- The player is pure: each method gets the time (`now`, in monotonic seconds) and returns the number of events that have
  happened. Only `seek` and `step` can decrease this number.
- While the player is playing, an event counts as happened when the player's time reaches the event's time. Changes of
  speed, pauses and frequent calls do not change which events have happened at a time of the recording.
- The position does not change while the player is paused.
"""

from __future__ import annotations

from bisect import bisect_right

from ctrlmgr.api.resource import Revision
from ctrlmgr.errors import BadRequest
from ctrlmgr.recording.playback.timetable import SECOND, Timetable

FASTEST = 1_000_000.0
"""The maximum speed relative to real time; to move faster, users should seek."""


class Player:
    """A position in a timetable that moves with time; only one thread at a time may use it."""

    def __init__(self, timetable: Timetable, now: float, *, speed: float = 1.0, paused: bool = False) -> None:
        """Start at the beginning of the recording; raises `BadRequest` if the speed is invalid."""
        self.timetable = timetable
        self.position = timetable.opening
        """The number of events that have happened, according to the recording's time."""
        self.paused = paused
        self.speed = _checked(speed)
        # Positions are in microseconds of playing at speed 1. `_from` is the position at the time `_since`, and `_at`
        # is the position at the last call.
        self._from = self._at = 0
        self._since = now

    @property
    def has_ended(self) -> bool:
        """Return whether all events have happened."""
        return self.position == len(self.timetable)

    @property
    def revision(self) -> Revision:
        """The newest revision that has been played."""
        return self.timetable.revisions[self.position - 1]

    @property
    def time(self) -> int:
        """The recording's time at the last call, in microseconds since 1970."""
        last = self.position - 1
        time = self.timetable.times[last]
        if self.has_ended:
            return time
        return min(time + self._at - self.timetable.due[last], self.timetable.times[self.position])

    def advance(self, now: float) -> int:
        """Return the number of events that have happened, including all events that are due now."""
        if not self.paused and not self.has_ended:
            passed = round(max(now - self._since, 0.0) * self.speed * SECOND)
            self._at = min(self._from + passed, self.timetable.due[-1])
            self.position = bisect_right(self.timetable.due, self._at, lo=self.position)
        return self.position

    def wait(self, now: float) -> float | None:
        """Return the seconds until the next event is due; None while the player is paused or has ended."""
        self.advance(now)
        if self.paused or self.has_ended:
            return None
        return (self.timetable.due[self.position] - self._at) / SECOND / self.speed

    def pause(self, now: float) -> None:
        """Pause."""
        self.advance(now)
        self.paused = True

    def resume(self, now: float) -> None:
        """Continue."""
        self._count_from(now)
        self.paused = False

    def set_speed(self, speed: float, now: float) -> None:
        """Set the speed relative to real time; raises `BadRequest` if the speed is invalid."""
        speed = _checked(speed)
        self._count_from(now)
        self.speed = speed

    def step(self, events: int, now: float) -> None:
        """Move forward by `events` events (backward if negative), and pause."""
        self.pause(now)
        self._stand(self.position + events, now)

    def seek_revision(self, revision: Revision, now: float) -> None:
        """Seek to the position at which `revision` is the newest."""
        self._stand(self.timetable.upto_revision(revision), now)

    def seek_time(self, moment: int, now: float) -> None:
        """Seek to a time in microseconds since 1970; a time outside the recording means its beginning or end."""
        self._stand(self.timetable.upto_time(moment), now)
        if not self.has_ended:
            # Within a shortened gap, limit the offset to the playing time of the gap.
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
