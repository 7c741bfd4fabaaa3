"""Reads a recording; Ctrl-C ends the reading between two lines."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

from ctrlmgr.cli.signal_handling import Interrupted
from ctrlmgr.recording.format import Entry, RecordingReader


class StoppableReader(RecordingReader):
    """A reader that raises `Interrupted` between two lines after `stop` is set."""

    def __init__(self, path: Path, stop: threading.Event) -> None:
        """Read the recording at `path` until `stop` is set."""
        super().__init__(path)
        self._stop = stop

    def __iter__(self) -> Iterator[Entry]:
        """Yield the entries of the recording.

        Raises `Interrupted` after `stop` is set, and errors if the recording is damaged.
        """
        for entry in super().__iter__():
            if self._stop.is_set():
                raise Interrupted
            yield entry
