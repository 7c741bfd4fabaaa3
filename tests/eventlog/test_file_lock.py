from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from ctrlmgr.clock import SystemClock
from ctrlmgr.errors import LogUnavailable
from ctrlmgr.eventlog.sqlite.file_lock import FileLock


def lock_at(path: Path) -> FileLock:
    return FileLock(path, clock=SystemClock(), patience=1.0)


def test_shared_memory_has_space_on_disk(tmp_path: Path) -> None:
    """If the file had no blocks on disk, SIGBUS would end the first process that sets the head of the log on a full
    disk.
    """
    lock = lock_at(tmp_path / "lock")
    assert (tmp_path / "lock").stat().st_blocks > 0
    lock.begin(lambda: 7)
    other = lock_at(tmp_path / "lock")
    assert other.head == 7
    lock.close()
    other.close()


def test_a_full_disk_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*of: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", fail)
    with pytest.raises(LogUnavailable, match="No space left on device"):
        lock_at(tmp_path / "lock")
