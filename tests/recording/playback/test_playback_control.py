"""Tests of the playback of a recording on a clock that the tests advance."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ctrlmgr import threads
from ctrlmgr.errors import BadRequest
from ctrlmgr.recording.playback.playback_control import Playback, State
from ctrlmgr.recording.playback.played_log import PlayedLog
from ctrlmgr.testing import FakeClock
from tests.recording.playback.stage import playback, versions

PATIENCE = 20.0


@contextmanager
def running(player: Playback, clock: FakeClock) -> Iterator[None]:
    stop = threading.Event()
    thread = threads.start("player", lambda: player.run(stop))
    clock.wait_for_waiters(1)
    try:
        yield
    finally:
        stop.set()
        clock.step(1)
        thread.join(PATIENCE)
        assert not thread.is_alive()


def test_time_advances() -> None:
    clock = FakeClock()
    player = playback(clock)
    with running(player, clock):
        assert versions(player.log) == {"a": 100}
        clock.step(2)
        clock.wait_for_waiters(1)
        assert player.log.revision == 251
        clock.step(2)
        clock.wait_for_waiters(1)
        assert player.log.revision == 90_000_000


def test_a_command_takes_effect_at_once_without_a_running_loop() -> None:
    clock = FakeClock()
    player = playback(clock, paused=True)
    assert player.step(2).revision == player.log.revision == 251
    assert player.seek("end").ended
    assert versions(player.log) == {"a": 251, "b": 90_000_000}
    assert player.set_speed(3).speed == 3
    with pytest.raises(BadRequest):
        player.seek("nowhere")
    assert player.log.revision == 90_000_000


def test_a_rewind_starts_another_log() -> None:
    clock = FakeClock()
    player, rewound = playback(clock, paused=True), list[PlayedLog]()
    player.on_rewind(rewound.append)
    before = player.log
    player.step(3)
    assert player.log is before
    assert not rewound
    player.step(-2)
    assert rewound == [player.log]
    assert versions(player.log) == {"a": 100, "b": 250}
    assert versions(before) == {"a": 251}


def test_the_control_returns_the_position() -> None:
    clock = FakeClock()
    player = playback(clock)
    clock.step(2.5)
    assert player.pause() == State(
        recording="a story",
        revision=251,
        time="2026-01-01T00:00:02.500000Z",
        position=4,
        events=6,
        remaining=2,
        speed=1.0,
        paused=True,
        ended=False,
        begins_at="2026-01-01T00:00:00.000000Z",
        ends_at="2026-01-01T00:00:04.000000Z",
        first_revision=100,
        last_revision=90_000_000,
        writes=0,
    )
    clock.step(10)
    assert player.state().time == "2026-01-01T00:00:02.500000Z"
    player.resume()
    clock.step(0.5)
    assert player.state().revision == 5000


def test_the_control_logs_the_position_periodically_and_the_end_once() -> None:
    clock, told, ended = FakeClock(), list[State](), threading.Event()
    player = playback(clock)
    player.on_move(told.append)
    player.on_end(ended.set)
    with running(player, clock):
        clock.step(4)
        clock.wait_for_waiters(1)
        assert not ended.is_set()  # only for a moment, because clients are still receiving events
        clock.step(2)
        assert ended.wait(PATIENCE)
    assert not told[0].ended
    assert told[-1].ended
    assert len(told) < 30
