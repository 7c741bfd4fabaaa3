"""Runs the first replay of a recording, which prepares the second replay (see `write_pairing`)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from ctrlmgr.errors import RecordingError
from ctrlmgr.eventlog import EventLog
from ctrlmgr.recording.format import RecordingReader
from ctrlmgr.recording.replay_stage import open_replay_log
from ctrlmgr.recording.replayer import Progress, Replay
from ctrlmgr.recording.virtual_clock import ReplayClock
from ctrlmgr.recording.write_pairing import Plan


class ReplayMaker(Protocol):
    """A function that creates a replay of the same controllers into a given log."""

    def __call__(self, log: EventLog, clock: ReplayClock, *, tracks: bool, plan: Plan | None) -> Replay:
        """Return a replay into an empty log."""


def planned(make: ReplayMaker, reader: RecordingReader, on_progress: Callable[[Progress], None] | None = None) -> Plan:
    """Replay a recording into memory, and return the plan for the next replay of the recording.

    Faults of the recording are ignored, because the next replay reports them. Raises the errors of the reader except
    `RecordingError`.
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
