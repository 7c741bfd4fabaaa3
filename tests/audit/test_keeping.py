"""Tests of audit backends: rotated files, and batches of events."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from ctrlmgr.audit.batches import Batches, Batching
from ctrlmgr.audit.log_file import LogFile, Rotation
from ctrlmgr.clock import SystemClock
from ctrlmgr.errors import SettingsError
from ctrlmgr.testing import FakeClock

LINE = b"x" * (600 * 1024) + b"\n"


def settle() -> None:
    """Wait for the threads that delete old log files."""
    for thread in threading.enumerate():
        if thread.name == "audit rotation":
            thread.join(20)


def test_lines_are_appended_to_an_existing_file(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "audit.log"
    for _ in range(2):
        file = LogFile(str(path), Rotation(), clock=FakeClock())
        file.write(b"a\n")
        file.close()
    assert path.read_bytes() == b"a\na\n"
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_full_file_is_rotated_and_old_files_are_limited(tmp_path: Path) -> None:
    clock, other = FakeClock(), tmp_path / "audit-notes.log"
    other.write_text("not ours")
    file = LogFile(str(tmp_path / "audit.log"), Rotation(megabytes=1, backups=2), clock=clock)
    for _ in range(5):
        file.write(LINE)
        settle()
        clock.step(1)
    file.close()
    assert len(list(tmp_path.glob("audit-2*.log"))) == 2
    assert (tmp_path / "audit.log").read_bytes() == LINE
    assert other.exists()


def test_rotated_files_are_compressed_and_expire(tmp_path: Path) -> None:
    clock = FakeClock()
    file = LogFile(str(tmp_path / "audit.log"), Rotation(megabytes=1, days=2, compress=True), clock=clock)
    for days in (0, 1, 4):
        clock.step(days * 24 * 3600)
        file.write(LINE)
        settle()
    file.close()
    [packed] = tmp_path.glob("audit-2*")
    assert gzip.decompress(packed.read_bytes()) == LINE


def test_an_unwritable_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"audit\.log_path: .* cannot be written: Is a directory"):
        LogFile(str(tmp_path), Rotation(), clock=FakeClock())


class RecordingBackend:
    """An audit backend that records the events it receives, and that tests can wait for."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self._came = threading.Condition()

    def __call__(self, batch: Sequence[int]) -> None:
        with self._came:
            self.batches.append(list(batch))
            self._came.notify()

    def wait_for(self, count: int) -> None:
        with self._came:
            assert self._came.wait_for(lambda: len(self.batches) >= count, 20)


def test_a_batch_is_sent_when_it_is_full_and_at_shutdown() -> None:
    taken = RecordingBackend()
    batches = Batches(Batching(max_size=2, max_wait=60), taken, name="batches", clock=SystemClock())
    batches.start()
    for number in range(5):
        batches.add([number])
    taken.wait_for(2)
    batches.stop()
    assert taken.batches == [[0, 1], [2, 3], [4]]


def test_a_batch_is_sent_when_its_first_event_has_waited_the_maximum() -> None:
    taken = RecordingBackend()
    batches = Batches(Batching(max_size=100, max_wait=0.01), taken, name="batches", clock=SystemClock())
    batches.start()
    batches.add([1])
    taken.wait_for(1)
    batches.stop()
    assert taken.batches == [[1]]


def test_events_above_the_buffer_size_are_dropped_and_counted() -> None:
    dropped: list[int] = []
    taken = RecordingBackend()
    batching = Batching(buffer_size=2, max_size=10, max_wait=60)
    batches = Batches(batching, taken, name="batches", clock=SystemClock(), dropped=dropped.append)
    for number in range(4):
        batches.add([number])
    batches.start()
    batches.stop()
    assert (dropped, taken.batches) == ([1, 1], [[0, 1]])


def test_throttling_limits_the_batches_per_second() -> None:
    clock, taken = FakeClock(), RecordingBackend()
    batches = Batches(Batching(max_size=1, qps=1, burst=2), taken, name="batches", clock=clock)
    for number in range(3):
        batches.add([number])
    batches.start()
    taken.wait_for(2)
    assert taken.batches == [[0], [1]]
    clock.step(1.0)
    taken.wait_for(3)
    batches.stop()
