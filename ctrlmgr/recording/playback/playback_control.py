"""Plays a recording over time, and handles commands.

Guarantees: a command takes effect at once, so later reads of the log include its effect. While no event is due and no
command arrives, the player uses no CPU time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from ctrlmgr.api.resource import Revision
from ctrlmgr.clock import Clock, format_time
from ctrlmgr.recording.playback import recording_positions
from ctrlmgr.recording.playback.played_log import PlayedLog
from ctrlmgr.recording.playback.player import Player

_LOOK_UP = 0.25
"""Seconds between checks whether the player must stop."""

_LINGER = 1.0
"""Seconds that clients have to receive the last events before the end is reported."""


class State(msgspec.Struct, frozen=True, rename="camel"):
    """The state of the player; times are in the format of RFC 3339."""

    recording: str
    revision: Revision
    """The newest revision that has been played."""
    time: str
    position: int
    """The number of events that have happened, according to the recording's time."""
    events: int
    """The number of all events."""
    remaining: int
    speed: float
    paused: bool
    ended: bool
    begins_at: str
    ends_at: str
    first_revision: Revision
    last_revision: Revision
    writes: int
    """The number of pretended writes since the start."""


class Playback:
    """A `Runnable` that plays a recording into a log; thread-safe."""

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
        """Play with `player` into logs that `new_log` creates for a position; `name` is the recording's name.

        `writes` returns the number of pretended writes.
        """
        self.log = new_log(player.position)
        """The current log; each backward seek creates a new log."""
        self._recording = name
        self._player = player
        self._new_log = new_log
        self._clock = clock
        self._writes = writes
        self._rewound: Callable[[PlayedLog], None] = lambda log: None
        self._changed = threading.Condition()  # guards the player and the position of the log
        self._ended: Callable[[], None] | None = None
        self._tell: Callable[[State], None] | None = None
        self._reported_at = 0.0  # the time of the last report (monotonic seconds)

    def on_end(self, ended: Callable[[], None]) -> None:
        """Register a function that is called once, shortly after the last event."""
        self._ended = ended

    def on_rewind(self, rewound: Callable[[PlayedLog], None]) -> None:
        """Register `rewound`, which is called with the new log after each backward seek, on the command's thread."""
        self._rewound = rewound

    def on_move(self, tell: Callable[[State], None]) -> None:
        """Register a function that the playing thread calls periodically with the state."""
        self._tell = tell

    def run(self, stop: threading.Event) -> None:
        """Play the recording until `stop` is set."""
        while not stop.is_set():
            self._turn()

    def _turn(self) -> None:
        """Add the events that are due to the log, and wait for the next event."""
        with self._changed:
            self._follow()
            if self._tell is not None and self._clock.monotonic() >= self._reported_at + _LOOK_UP:
                self._reported_at = self._clock.monotonic()
                self._tell(self._state())
            if self._player.has_ended and self._ended is not None:
                self._end(self._ended)
                return
            wait = self._player.wait(self._clock.monotonic())
            self._clock.wait(self._changed, _LOOK_UP if wait is None else min(wait, _LOOK_UP))

    def _end(self, ended: Callable[[], None]) -> None:
        self._clock.wait(self._changed, _LINGER)
        if self._player.has_ended:  # no command has changed the position meanwhile
            self._ended = None
            ended()

    def state(self) -> State:
        """Return the current state of the player."""
        with self._changed:
            self._follow()
            return self._state()

    def pause(self) -> State:
        """Pause."""
        with self._commanded() as now:
            self._player.pause(now)
        return self.state()

    def resume(self) -> State:
        """Continue."""
        with self._commanded() as now:
            self._player.resume(now)
        return self.state()

    def step(self, events: int) -> State:
        """Move forward by `events` events (backward if negative), and pause."""
        with self._commanded() as now:
            self._player.step(events, now)
        return self.state()

    def seek(self, place: str) -> State:
        """Seek to a position, which `moments` parses; raises `BadRequest` if the position is invalid."""
        with self._commanded() as now:
            recording_positions.seek(self._player, place, now)
        return self.state()

    def set_speed(self, speed: float) -> State:
        """Set the speed relative to real time; raises `BadRequest` if the speed is invalid."""
        with self._commanded() as now:
            self._player.set_speed(speed, now)
        return self.state()

    @contextmanager
    def _commanded(self) -> Iterator[float]:
        """Lock the player during a command, yield the time, and extend the log to the new position afterwards."""
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
