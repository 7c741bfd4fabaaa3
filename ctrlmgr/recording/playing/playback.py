"""A recording that is being played: time passes, and people interfere.

Guarantees: a command holds at once and all at once; a reader of the log after it sees what it has led to. Between
two events nothing is done: there is no beat.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from ctrlmgr.api.resource import Revision
from ctrlmgr.clock import Clock, format_time
from ctrlmgr.recording.playing import moments
from ctrlmgr.recording.playing.played_log import PlayedLog
from ctrlmgr.recording.playing.player import Player

_LOOK_UP = 0.25
"""Seconds after which it looks whether it should stop."""

_LINGER = 1.0
"""Seconds for which clients may still be told of the end before it is said to be over."""


class State(msgspec.Struct, frozen=True, rename="camel"):
    """Where the player is; times are RFC 3339."""

    recording: str
    revision: Revision
    """The newest there has been."""
    time: str
    position: int
    """How many events have happened."""
    events: int
    """How many there are."""
    remaining: int
    speed: float
    paused: bool
    ended: bool
    begins_at: str
    ends_at: str
    first_revision: Revision
    last_revision: Revision
    writes: int
    """How many writes have been pretended."""


class Playback:
    """A Runnable that plays into a log; its methods are for any thread."""

    name = "player"

    def __init__(
        self,
        name: str,
        player: Player,
        new_log: Callable[[int], PlayedLog],
        *,
        clock: Clock,
        writes: Callable[[], int] = lambda: 0,
    ) -> None:
        """Play with `player` into what `new_log` makes for a position; `name` is the recording's.

        `writes` counts what has been pretended.
        """
        self.log = new_log(player.position)
        """What is played into; another after each time that the player has gone back."""
        self._recording = name
        self._player = player
        self._new_log = new_log
        self._clock = clock
        self._writes = writes
        self._rewound: Callable[[PlayedLog], None] = lambda log: None
        self._changed = threading.Condition()  # guards the player, and the log's position with it
        self._ended: Callable[[], None] | None = None
        self._tell: Callable[[State], None] | None = None
        self._told = 0.0  # when, by the clock's monotonic seconds

    def on_end(self, ended: Callable[[], None]) -> None:
        """Have `ended` called, once, a moment after everything has happened."""
        self._ended = ended

    def on_rewind(self, rewound: Callable[[PlayedLog], None]) -> None:
        """Have `rewound` called with the new log whenever the player has gone back, on the thread of the command."""
        self._rewound = rewound

    def on_move(self, tell: Callable[[State], None]) -> None:
        """Have `tell` called with where it is, now and then, on the thread that plays."""
        self._tell = tell

    def run(self, stop: threading.Event) -> None:
        """Let time pass until `stop` is set."""
        while not stop.is_set():
            self._turn()

    def _turn(self) -> None:
        """Have happen what is due, and wait for what comes next."""
        with self._changed:
            self._follow()
            if self._tell is not None and self._clock.monotonic() >= self._told + _LOOK_UP:
                self._told = self._clock.monotonic()
                self._tell(self._state())
            if self._player.has_ended and self._ended is not None:
                self._end(self._ended)
                return
            wait = self._player.wait(self._clock.monotonic())
            self._clock.wait(self._changed, _LOOK_UP if wait is None else min(wait, _LOOK_UP))

    def _end(self, ended: Callable[[], None]) -> None:
        self._clock.wait(self._changed, _LINGER)
        if self._player.has_ended:  # no command has sought elsewhere meanwhile
            self._ended = None
            ended()

    def state(self) -> State:
        """Return where it is."""
        with self._changed:
            self._follow()
            return self._state()

    def pause(self) -> State:
        """Stand still."""
        with self._commanded() as now:
            self._player.pause(now)
        return self.state()

    def resume(self) -> State:
        """Go on."""
        with self._commanded() as now:
            self._player.resume(now)
        return self.state()

    def step(self, events: int) -> State:
        """Stand still so many events further on, or back if `events` is negative."""
        with self._commanded() as now:
            self._player.step(events, now)
        return self.state()

    def seek(self, place: str) -> State:
        """Go to a place, named as `moments` reads it; raises `BadRequest`."""
        with self._commanded() as now:
            moments.seek(self._player, place, now)
        return self.state()

    def set_speed(self, speed: float) -> State:
        """Play so many times as fast as it happened; raises `BadRequest`."""
        with self._commanded() as now:
            self._player.set_speed(speed, now)
        return self.state()

    @contextmanager
    def _commanded(self) -> Iterator[float]:
        """Hold the player for a command, which is told what time it is, and show what has become of it."""
        with self._changed:
            self._follow()
            yield self._clock.monotonic()
            position = self._player.position
            if position < self.log.position:
                self.log = self._new_log(position)
                self._rewound(self.log)
            self.log.show(position)
            self._changed.notify_all()

    def _follow(self) -> None:
        self.log.show(self._player.advance(self._clock.monotonic()))

    def _state(self) -> State:
        player, timetable = self._player, self._player.timetable
        return State(
            recording=self._recording,
            revision=player.revision,
            time=format_time(player.time),
            position=player.position,
            events=len(timetable),
            remaining=len(timetable) - player.position,
            speed=player.speed,
            paused=player.paused,
            ended=player.has_ended,
            begins_at=format_time(timetable.times[0]),
            ends_at=format_time(timetable.times[-1]),
            first_revision=timetable.revisions[timetable.opening - 1],
            last_revision=timetable.revisions[-1],
            writes=self._writes(),
        )
