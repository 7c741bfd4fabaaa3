"""Tests of the player on a clock that the tests advance."""

from __future__ import annotations

from bisect import bisect_right

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctrlmgr.errors import BadRequest
from ctrlmgr.recording.playback import recording_positions
from ctrlmgr.recording.playback.player import FASTEST, Player
from ctrlmgr.recording.playback.timetable import SECOND, Timetable

BEGAN = 1_767_225_600 * SECOND  # the first moment of 2026


def table(*seconds: float, opening: int = 1, max_gap: float | None = None) -> Timetable:
    """Return a timetable of events at these seconds after the beginning, with the revisions 10, 20 and so on."""
    times = [BEGAN + round(each * SECOND) for each in seconds]
    gap = None if max_gap is None else round(max_gap * SECOND)
    return Timetable.of([10 * number for number in range(1, len(times) + 1)], times, opening, max_gap=gap)


gaps = st.lists(st.integers(min_value=0, max_value=20 * SECOND), min_size=1, max_size=30)


@st.composite
def timetables(draw: st.DrawFn) -> Timetable:
    time, times = BEGAN, list[int]()
    for gap in draw(gaps):
        time += gap
        times.append(time)
    opening = draw(st.integers(min_value=1, max_value=len(times)))
    times[:opening] = [times[opening - 1]] * opening
    revisions = [10 * number for number in range(1, len(times) + 1)]
    max_gap = draw(st.none() | st.integers(min_value=0, max_value=10 * SECOND))
    return Timetable.of(revisions, times, opening, max_gap=max_gap)


def test_initial_objects_exist_before_any_event_is_due() -> None:
    player = Player(table(0, 0, 1, 2, opening=2), 100.0, paused=True)
    assert (player.position, player.revision, player.time) == (2, 20, BEGAN)


@pytest.mark.parametrize(("speed", "now", "position"), [(1, 100.99, 2), (1, 101, 3), (10, 100.1, 3), (10, 100.2, 4)])
def test_events_happen_at_their_time(speed: float, now: float, position: int) -> None:
    player = Player(table(0, 0, 1, 2, opening=2), 100.0, speed=speed)
    assert player.advance(now) == position


def test_the_player_returns_the_time_to_wait() -> None:
    player = Player(table(0, 1, 11), 100.0, speed=2)
    assert player.wait(100.0) == 0.5
    assert player.wait(100.5) == 5.0
    assert player.wait(105.5) is None
    assert player.has_ended


def test_a_silence_is_shortened() -> None:
    player = Player(table(0, 3600, 3601, max_gap=5), 0.0)
    assert player.advance(4.9) == 1
    assert player.advance(5.0) == 2
    assert player.time == BEGAN + 3600 * SECOND
    assert player.advance(6.0) == 3


def test_a_speed_applies_from_its_setting() -> None:
    player = Player(table(0, 10, 20, 30), 0.0)
    player.set_speed(10, 5.0)  # half way to the first event
    assert player.wait(5.0) == 0.5
    assert player.advance(6.4) == 2
    assert player.advance(6.5) == 3


@pytest.mark.parametrize("speed", [0, -1, float("inf"), float("nan"), FASTEST + 1])
def test_an_invalid_speed_is_refused_without_effect(speed: float) -> None:
    player = Player(table(0, 10), 0.0)
    with pytest.raises(BadRequest, match="speed"):
        player.set_speed(speed, 5.0)
    assert player.wait(5.0) == 5.0


def test_steps_pause_and_stay_within_the_recording() -> None:
    player = Player(table(0, 10, 20, 30), 0.0)
    player.step(2, 1.0)
    assert (player.position, player.paused, player.time) == (3, True, BEGAN + 20 * SECOND)
    assert player.advance(1000.0) == 3
    player.step(-1, 1000.0)
    assert player.position == 2
    player.step(-9, 1000.0)
    assert player.position == 1
    player.step(9, 1000.0)
    assert player.has_ended
    player.step(-1, 1000.0)
    player.resume(1000.0)
    assert player.wait(1000.0) == 10.0


@pytest.mark.parametrize(
    ("place", "position", "second"),
    [
        ("start", 1, 0),
        ("end", 4, 30),
        ("10", 1, 0),
        ("25", 2, 10),
        ("30", 3, 20),
        ("2026-01-01T00:00:15Z", 2, 15),
        ("2026-01-01T01:00:20+01:00", 3, 20),
        ("2025-01-01T00:00:00Z", 1, 0),
        ("2027-01-01T00:00:00Z", 4, 30),
        ("+5s", 3, 20),
        ("+1h", 4, 30),
        ("-10s", 1, 5),
        ("-1m", 1, 0),
    ],
)
def test_valid_positions(place: str, position: int, second: float) -> None:
    player = Player(table(0, 10, 20, 30), 0.0)
    recording_positions.seek(player, place, 15.0)  # the time of the clock, and the time of the recording
    assert (player.position, player.time) == (position, BEGAN + second * SECOND)


def test_playback_continues_from_the_new_position() -> None:
    player = Player(table(0, 10, 20, 30), 0.0)
    recording_positions.seek(player, "2026-01-01T00:00:15Z", 1.0)
    assert player.wait(1.0) == 5.0
    assert player.advance(6.0) == 3


@pytest.mark.parametrize("place", ["", "9", "41", "yesterday", "+", "-5", "+1x", "2026-01-01", "٣"])
def test_invalid_positions(place: str) -> None:
    player = Player(table(0, 10, 20, 30), 0.0)
    with pytest.raises(BadRequest):
        recording_positions.seek(player, place, 15.0)
    assert player.advance(15.0) == 2


@given(timetables(), st.lists(st.floats(min_value=0, max_value=30), max_size=10), st.floats(0.1, 100))
def test_the_number_of_calls_does_not_matter(timetable: Timetable, waits: list[float], speed: float) -> None:
    asked, not_asked = Player(timetable, 0.0, speed=speed), Player(timetable, 0.0, speed=speed)
    now, position = 0.0, timetable.opening
    for wait in waits:
        now += wait
        assert asked.advance(now) >= position
        position = asked.position
    assert not_asked.advance(now) == asked.advance(now)
    assert asked.position == max(bisect_right(timetable.due, round(now * speed * SECOND)), timetable.opening)
    assert not_asked.time == asked.time


@given(timetables(), st.floats(0.1, 100), st.data())
def test_waiting_as_advised_misses_no_event(timetable: Timetable, speed: float, data: st.DataObject) -> None:
    player, now, seen = Player(timetable, 0.0, speed=speed), 0.0, []
    while (wait := player.wait(now)) is not None:
        now += wait + data.draw(st.just(0.0) | st.floats(0, 0.001))
        now += 1e-6  # the rounding error of floats
        seen.append(player.advance(now))
        if data.draw(st.booleans()):
            player.pause(now)
            now += 1000
            player.resume(now)
    assert seen == sorted(set(seen))
    assert player.position == len(timetable)


COMMANDS = st.sampled_from(["pause", "resume", "step", "back", "seek", "time", "speed", "pass"])


@given(timetables(), st.lists(st.tuples(COMMANDS, st.integers(0, 400)), max_size=20))
def test_time_and_revision_match_after_any_commands(timetable: Timetable, commands: list[tuple[str, int]]) -> None:
    player, now = Player(timetable, 0.0), 0.0
    for command, number in commands:
        before = player.advance(now)
        match command:
            case "pause":
                player.pause(now)
            case "resume":
                player.resume(now)
            case "step":
                player.step(number, now)
                assert player.position == min(before + number, len(timetable))
            case "back":
                player.step(-number, now)
                assert player.position == max(before - number, timetable.opening)
            case "seek":
                player.seek_revision(number, now)
                assert player.position == timetable.opening or player.revision <= number
            case "time":
                player.seek_time(BEGAN + number * SECOND, now)
            case "speed":
                player.set_speed(1 + number, now)
            case _:
                now += number / 10
                assert player.advance(now) >= before
                assert not player.paused or player.position == before
        assert timetable.opening <= player.position <= len(timetable)
        assert player.revision == timetable.revisions[player.position - 1]
        assert player.time >= timetable.times[player.position - 1]
        assert player.has_ended or player.time <= timetable.times[player.position]
