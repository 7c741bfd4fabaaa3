"""A short recording and a player for it, without a server."""

from __future__ import annotations

from random import Random
from typing import Any

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.eventlog.event import EventType
from ctrlmgr.recording.format import Change
from ctrlmgr.recording.playback.loaded_recording import LoadedRecording, recording_of
from ctrlmgr.recording.playback.playback_control import Playback
from ctrlmgr.recording.playback.played_log import PlayedLog
from ctrlmgr.recording.playback.player import Player
from ctrlmgr.recording.playback.pretended_writes import RefusedWrites, Writes
from ctrlmgr.recording.playback.timetable import SECOND
from ctrlmgr.testing import FakeClock

CONFIG_MAPS = Resource("", "configmaps")
BEGAN = 1_767_225_600 * SECOND
ADDED, MODIFIED, DELETED = EventType

A, B = Key("shop", "a"), Key("shop", "b")


def config_map(name: str, version: int, **labels: str) -> Object:
    metadata: dict[str, Any] = {"name": name, "namespace": "shop", "uid": name, "resourceVersion": str(version)}
    if labels:
        metadata["labels"] = labels
    return Object.from_dict({"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata})


def tape() -> LoadedRecording:
    """Return a recording of ConfigMaps `a` and `b`, with one event per second and gaps between revisions."""
    story = [
        (ADDED, config_map("a", 100)),
        (ADDED, config_map("b", 250)),
        (MODIFIED, config_map("a", 251, seen="1")),
        (DELETED, config_map("b", 5000)),
        (ADDED, config_map("b", 90_000_000, seen="again")),
    ]
    return recording_of(
        [Change(1, type_, obj, BEGAN + number * SECOND) for number, (type_, obj) in enumerate(story)], 1
    )


def played(position: int = 2, writes: Writes | None = None) -> PlayedLog:
    """Return a log in which the first `position` events of the recording have happened; the Namespace counts as the
    first event.
    """
    return PlayedLog(tape(), position, writes or RefusedWrites(), clock=FakeClock(), random=Random(1))


def playback(clock: FakeClock, *, paused: bool = False) -> Playback:
    whole = tape()
    player = Player(whole.timetable, clock.monotonic(), paused=paused)
    return Playback(
        "a story",
        player,
        lambda position: PlayedLog(whole, position, RefusedWrites(), clock=clock, random=Random(1)),
        clock=clock,
    )


def versions(log: PlayedLog) -> dict[str, int]:
    """Return the existing ConfigMaps and their revisions."""
    return {obj.name: obj.revision for obj in log.snapshot(CONFIG_MAPS).objects}
