"""A lock among the processes on one host that write a SQLite file, and the head revision that these share.

Guarantees:
- One thread of one process holds the lock at a time. A process that dies loses the lock. No caller waits for the lock
  longer than `patience`.
- The attribute `head` is a revision in shared memory. The holder of the lock sets `head` after a commit, before it
  acknowledges the commit to any caller. A reader therefore sees every acknowledged commit without a system call. In
  contrast, a query to SQLite would take a lock in SQLite's shared memory and release the GIL.
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
"""The number of seconds between attempts to take the lock."""

_SIZE = 8
"""The number of bytes of the head in the file, in native byte order.

The shared head is one machine word, so reads and writes of it are atomic.
"""


class FileLock:
    """The write lock: an advisory file lock, which a dying process loses, and a mutex for threads of one process."""

    def __init__(self, path: Path, *, clock: Clock, patience: float) -> None:
        """Open the lock file at `path`, which is created if it is missing.

        A wait for the lock ends after `patience` seconds. Raises `LogUnavailable` if the disk has no space for the lock
        file.
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
        """The newest revision that any holder of the lock has committed.

        Only the current holder may set this revision.
        """
        return self._head[0]

    @head.setter
    def head(self, revision: Revision) -> None:
        self._head[0] = revision

    def begin(self, read_head: Callable[[], Revision]) -> None:
        """Set `head` to the result of `read_head`, because the value in the file may be outdated.

        If another process holds the lock, it has already set `head`.
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
        """Take the lock; try repeatedly, because a blocking call would have no timeout.

        A process holds the lock for about a millisecond, so a waiting process tries the lock several times per
        millisecond.
        """
        deadline = self._clock.monotonic() + self._patience
        pause = threading.Condition()
        while not self._taken():
            if self._clock.monotonic() >= deadline:
                raise LogUnavailable("the database is locked: another process has held the write lock for too long")
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
        """Close the file."""
        self._head.release()
        self._page.close()
        os.close(self._file)


def _allocate(file: int, size: int) -> None:
    """Allocate the bytes of the lock file on the disk.

    If the bytes were not allocated and the disk were full, a write to the memory-mapped file would kill the process.
    """
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
    else:
        os.ftruncate(file, size)
