"""Tests of the times of recorded changes, and of the objects that exist at the beginning."""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.clock import format_time, parse_time
from ctrlmgr.eventlog.event import EventType
from ctrlmgr.recording.format import Change
from ctrlmgr.recording.playback.timetable import Timetable, opening_of, times_of

ADDED, MODIFIED, DELETED = EventType


def change(type_: EventType, *, at: str = "", created: str = "", managed: str = "", name: str = "a") -> Change:
    """Return a change at a time on 1 January 2026; its object has timestamps of this day."""
    metadata: dict[str, Any] = {"name": name, "namespace": "shop", "uid": name}
    if created:
        metadata["creationTimestamp"] = day(created)
    if managed:
        metadata["managedFields"] = [{"manager": "m", "time": day(managed)}, {"manager": "n"}]
    obj = Object.from_dict({"kind": "Pod", "apiVersion": "v1", "metadata": metadata})
    return Change(1, type_, obj, parse_time(day(at)) if at else 0)


def day(time: str) -> str:
    return f"2026-01-01T{time}Z"


@pytest.mark.parametrize(
    ("changes", "opening"),
    [
        pytest.param([change(ADDED)], 1, id="one line"),
        pytest.param([change(MODIFIED), change(ADDED)], 1, id="always one"),
        pytest.param(
            [change(ADDED), change(ADDED), change(MODIFIED), change(ADDED)], 2, id="up to what is no addition"
        ),
        pytest.param([change(ADDED), change(ADDED), change(ADDED, at="10:00:00")], 2, id="a log that was exported"),
        pytest.param(
            [
                change(ADDED, at="10:00:00.5", created="08:00:00"),
                change(ADDED, at="10:00:00.2", created="09:59:59"),
                change(ADDED, at="10:00:00.9", created="10:00:00"),
                change(ADDED, at="10:00:01.9", created="08:00:00"),
            ],
            2,
            id="up to what was created while it was recorded",
        ),
        pytest.param([change(ADDED, at="10:00:00"), change(ADDED, at="10:00:00")], 2, id="objects without times"),
    ],
)
def test_the_initial_state_of_a_recording(changes: list[Change], opening: int) -> None:
    assert opening_of(changes) == opening


@pytest.mark.parametrize(
    ("changes", "opening", "times"),
    [
        pytest.param(
            [
                change(ADDED, at="10:00:02"),
                change(ADDED, at="10:00:01"),
                change(MODIFIED, at="10:00:03"),
                change(MODIFIED, at="10:00:02.5"),
                change(DELETED),
                change(ADDED, at="10:00:04"),
            ],
            2,
            ["10:00:02", "10:00:02", "10:00:03", "10:00:03", "10:00:03", "10:00:04"],
            id="recorded, never going back",
        ),
        pytest.param(
            [change(ADDED, created="07:00:00"), change(MODIFIED, at="10:00:01"), change(MODIFIED, at="10:00:02")],
            1,
            ["10:00:01", "10:00:01", "10:00:02"],
            id="a beginning without times is when the rest begins",
        ),
        pytest.param(
            [
                change(ADDED, created="10:00:00", managed="10:00:05"),
                change(MODIFIED, created="09:00:00", managed="10:00:07"),
                change(DELETED, created="09:00:00", managed="11:00:00"),
                change(MODIFIED, created="10:00:01"),
                change(MODIFIED),
                change(ADDED, created="10:00:09"),
            ],
            1,
            ["10:00:05", "10:00:07", "10:00:07.25", "10:00:07.5", "10:00:07.75", "10:00:09"],
            id="of the objects, spread over their seconds",
        ),
    ],
)
def test_times_of_events(changes: list[Change], opening: int, times: list[str]) -> None:
    assert times_of(changes, opening) == [parse_time(day(time)) for time in times]


def test_without_times_events_are_a_second_apart() -> None:
    times = times_of([change(ADDED), change(MODIFIED), change(DELETED)], 1)
    assert [format_time(time) for time in times] == [f"1970-01-01T00:00:0{second}.000000Z" for second in range(3)]


def test_an_invalid_time_is_ignored() -> None:
    metadata = {"name": "a", "creationTimestamp": "yesterday"}
    odd = Change(1, ADDED, Object.from_dict({"kind": "Node", "apiVersion": "v1", "metadata": metadata}))
    assert times_of([change(ADDED, created="10:00:00"), odd], 1) == [parse_time(day("10:00:00"))] * 2


def test_a_silence_has_at_most_the_requested_length() -> None:
    times = [0, 0, 3_000_000, 3_000_000, 90_000_000]
    assert Timetable.of([1, 2, 3, 4, 5], times, 2, max_gap=5_000_000).due == [0, 0, 3_000_000, 3_000_000, 8_000_000]
    assert Timetable.of([1, 2, 3, 4, 5], times, 2).due == times
    assert Timetable.of([1, 2, 3, 4, 5], times, 5).due == [0] * 5
