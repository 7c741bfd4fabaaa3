"""Replaying a recording for the second time: what has to be found out before it, see `every_write`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from ctrlmgr.errors import RecordingError
from ctrlmgr.eventlog import EventLog
from ctrlmgr.recording.clock import ReplayClock
from ctrlmgr.recording.every_write import Plan
from ctrlmgr.recording.format import RecordingReader
from ctrlmgr.recording.replay import Progress, Replay
from ctrlmgr.recording.stage import open_replay_log


class ReplayMaker(Protocol):
    """Makes replays of the same controllers, into one log after the other."""

    def __call__(self, log: EventLog, clock: ReplayClock, *, tracks: bool, plan: Plan | None) -> Replay:
        """Return a replay into an empty log."""


def planned(make: ReplayMaker, reader: RecordingReader, on_progress: Callable[[Progress], None] | None = None) -> Plan:
    """Replay a recording into memory, and return what another replay of it needs to know to write when others did.

    What is wrong with the recording is left to that one to tell; raises whatever else the reader does.
    """
    clock = ReplayClock()
    log = open_replay_log("memory:", clock)
    try:
        run = make(log, clock, tracks=True, plan=None)
        with suppress(RecordingError):
            run.run(reader, on_progress)
        return run.plan()
    finally:
        log.close()
