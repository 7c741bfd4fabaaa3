"""Tests of a recording that is served as an event log."""

from __future__ import annotations

from random import Random

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import NAMESPACES, Key, Resource
from ctrlmgr.engine.watch_cache.cacher import Cacher
from ctrlmgr.errors import BadRequest, Expired, LogClosed, MethodNotAllowed
from ctrlmgr.eventlog import Author, EventLog, Proposal
from ctrlmgr.eventlog.event import EventType
from ctrlmgr.recording.format import Change, RecordingReader
from ctrlmgr.recording.playback.loaded_recording import load
from ctrlmgr.recording.playback.played_log import PlayedLog
from ctrlmgr.recording.playback.pretended_writes import RefusedWrites
from ctrlmgr.testing import FakeClock
from tests.recording.playback.stage import CONFIG_MAPS, A, B, config_map, played, versions
from tests.recording.samples import SMALL


def test_a_played_log_implements_the_log_interface() -> None:
    log: EventLog = played()
    assert log.head().revision == log.peek() == 100


@pytest.mark.parametrize(
    ("position", "config_maps"),
    [
        (2, {"a": 100}),
        (3, {"a": 100, "b": 250}),
        (4, {"a": 251, "b": 250}),
        (5, {"a": 251}),
        (6, {"a": 251, "b": 90_000_000}),
    ],
)
def test_the_log_contains_the_recorded_state_at_every_position(position: int, config_maps: dict[str, int]) -> None:
    log = played(position)
    assert versions(log) == config_maps
    assert [log.get(CONFIG_MAPS, key) is not None for key in (A, B)] == ["a" in config_maps, "b" in config_maps]


def test_the_past_can_be_read_and_the_future_cannot() -> None:
    log = played(5)
    assert {obj.name for obj in log.snapshot(CONFIG_MAPS, at=250).objects} == {"a", "b"}
    assert {obj.name for obj in log.snapshot(CONFIG_MAPS, at=4999).objects} == {"a", "b"}
    assert log.snapshot(CONFIG_MAPS, at=4999).revision == 4999
    seen = log.get(CONFIG_MAPS, A, at=250)
    assert seen is not None
    assert seen.revision == 100
    for ask in (
        lambda: log.snapshot(at=5001),
        lambda: log.get(CONFIG_MAPS, A, at=5001),
        lambda: log.snapshot(at=99),
        lambda: log.events_after(99),
    ):
        with pytest.raises(Expired):
            ask()


def test_past_events_are_returned_in_order() -> None:
    log = played(5)
    assert [(event.type.name, event.key.name) for event in log.events_after(100)] == [
        ("ADDED", "b"),
        ("MODIFIED", "a"),
        ("DELETED", "b"),
    ]
    assert [event.previous for event in log.events_after(100, resource=CONFIG_MAPS)] == [0, 100, 250]
    assert [event.revision for event in log.events_after(250, limit=1)] == [251]
    assert list(log.events_after(100, resource=Resource("", "nodes"))) == []
    assert [event.revision for event in log.scan(start=250)] == [250, 251, 5000]
    assert log.revision_at(log.events_after(250)[0].recorded_at) == 251


def test_the_log_grows_and_notifies_its_cache() -> None:
    log, heads = played(2), list[int]()
    log.feed.on_advance(heads.append)
    cacher = Cacher(log, log.feed, window=10**9)
    log.show(4)
    assert heads == [251]
    assert log.wait(100, 0) == 251
    cacher.step()
    log.show(6)
    cacher.step()
    assert [obj.revision for obj in cacher.list(CONFIG_MAPS)] == [251, 90_000_000]
    changes = cacher.changes_after(100, CONFIG_MAPS)
    assert changes is not None
    assert [each.revision for each in changes] == [250, 251, 5000, 90_000_000]
    log.show(2)  # the log cannot go back
    assert log.revision == 90_000_000


def test_namespaces_outside_the_recording_are_substituted() -> None:
    log = played(2)
    (namespace,) = log.snapshot(NAMESPACES).objects
    assert (namespace.name, namespace.metadata.creation_timestamp) == ("shop", "2026-01-01T00:00:00Z")


def test_writes_are_refused() -> None:
    log = played(2)
    with pytest.raises(MethodNotAllowed, match="--writes pretend"):
        log.append([Proposal(EventType.ADDED, config_map("c", 0), 0)], author=Author("me"))
    with pytest.raises(BadRequest):
        log.import_events([])


def test_a_closed_log_refuses_calls() -> None:
    log = played(2)
    log.close()
    with pytest.raises(LogClosed):
        log.snapshot()
    with pytest.raises(LogClosed):
        log.wait(100, 1)


def test_a_real_recording_has_at_every_position_the_state_of_its_lines() -> None:
    tape = load(SMALL)
    timetable = tape.timetable
    log = PlayedLog(tape, timetable.opening, RefusedWrites(), clock=FakeClock(), random=Random(1))
    changes = [entry for entry in RecordingReader(SMALL) if isinstance(entry, Change)]
    assert [event.object.wire() for event in tape.events] == [change.object.wire() for change in changes]
    there: dict[tuple[Resource, Key], Object] = {}
    for position, change in enumerate(changes, 1):
        place = (change.object.resource, change.object.key)
        if change.type is EventType.DELETED:
            del there[place]
        else:
            there[place] = change.object
        if position >= timetable.opening:
            log.show(position)
            found = {(obj.resource, obj.key): obj.wire() for obj in log.snapshot().objects}
            assert found == {place: obj.wire() for place, obj in there.items()}
            assert log.revision == change.object.revision
