"""Tests that the writes of our controllers in an exported log are distinguished from the writes of clients, and that
the export can be replayed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ctrlmgr.api.resource import ENDPOINTS
from ctrlmgr.eventlog import EventLog, EventType
from ctrlmgr.recording.capture.export import history, is_api_object
from ctrlmgr.recording.format import RecordingWriter
from ctrlmgr.recording.replay_stage import RECORDING
from ctrlmgr.testing.replays import Replayer
from tests.recording.samples import LARGER, SMALL

DELETED = EventType.DELETED


def export(log: EventLog, path: Path) -> None:
    with RecordingWriter(path) as writer:
        for change in history(log, lambda obj: is_api_object(obj.resource)):
            writer.change(change.type, change.object, change.recorded_at)


@pytest.mark.parametrize("recording", [SMALL, *LARGER[:1]], ids=lambda path: path.stem)
def test_an_exported_log_replays(recording: Path, tmp_path: Path) -> None:
    with Replayer(tmp_path) as replay:
        first = replay(recording)
        export(replay.log, tmp_path / "log.jsonl")
        again = replay("log.jsonl")
        assert again.divergences == ()
        assert again.writes > first.writes / 3
        # The inputs contain no write of Endpoints by our controller; deletions have no author.
        written = [event for event in replay.log.scan() if event.resource == ENDPOINTS and event.type is not DELETED]
        put = [event for event in written if event.actor == RECORDING.actor]
        assert len(put) < len(written) / 4
