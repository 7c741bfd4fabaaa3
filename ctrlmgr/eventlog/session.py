"""Sessions, with which other processes detect that a process has died, even before its lease expires.

Guarantees:
- The session of a running process does not count as ended, unless the database itself loses the session. The end of a
  session is only a hint that the process has died. Code that uses the hint must be correct even if the process still
  runs (`Fence`).
- A process that is stopped or hangs keeps its session. A process that dies loses its session immediately.
- A log in memory and a log behind a connection pooler have no sessions; no process holds a session, and no session
  counts as ended.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from pathlib import Path
from typing import Final, Protocol

_LOOK_AGAIN: Final = 0.1
"""The number of seconds between checks of a lock on the same machine, which take microseconds."""


class Sessions(Protocol):
    """The sessions of the processes of one log; only one thread at a time may use the object."""

    look_again: float
    """The number of seconds until the next check of a session."""
    may_be_lost: bool
    """Whether a running process can lose its session, so that the process must check its session and, if necessary,
    acquire it again.
    """

    def name(self, identity: str) -> str:
        """Return the name of the session that the process `identity` has."""

    def hold(self, identity: str) -> str:
        """Acquire this process's session, unless the process already holds it.

        Return the session's name, or an empty name if the session cannot be acquired.
        """

    def has_ended(self, session: str) -> bool:
        """Return whether a session that a process once held has ended."""

    def close(self) -> None:
        """End the session of this process."""


class NoSessions:
    """An implementation of `Sessions` for logs without sessions, in which the end of a process cannot be detected."""

    look_again = float("inf")
    may_be_lost = False

    def name(self, identity: str) -> str:
        """Return an empty name, because no process has a session."""
        return ""

    def hold(self, identity: str) -> str:
        """Return an empty name, because no session is held."""
        return ""

    def has_ended(self, session: str) -> bool:
        """Return False."""
        return False

    def close(self) -> None:
        """Do nothing."""


def number_of(identity: str, bits: int) -> int:
    """Return a number for the process `identity`; every process computes the same number."""
    return int.from_bytes(hashlib.sha256(identity.encode()).digest()[:8]) >> (64 - bits)


class FileSessions:
    """The sessions of the processes that share a file.

    Each process locks one byte of the file, and loses the lock when it dies. The locks of sessions are POSIX locks.
    Therefore a process may create only one `FileSessions` for a file, and no other code in the process may open that
    file.
    """

    look_again = _LOOK_AGAIN
    may_be_lost = False

    def __init__(self, path: Path) -> None:
        """Open the file at `path`; if the file is missing, it is created, and it stays empty."""
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._held: set[str] = set()

    def name(self, identity: str) -> str:
        """Return the name of the session that the process `identity` has."""
        return f"file:{number_of(identity, 62)}"

    def hold(self, identity: str) -> str:
        """Lock this process's byte and return the session's name; the name is empty if the filesystem has no locks."""
        name = self.name(identity)
        if name not in self._held:
            try:
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number_of(identity, 62))
            except OSError:  # a filesystem without locks
                return ""
            self._held.add(name)
        return name

    def has_ended(self, session: str) -> bool:
        """Return whether the session's byte is unlocked."""
        kind, _, number = session.partition(":")
        if kind != "file" or not number.isdecimal() or session in self._held:
            return False
        try:
            fcntl.lockf(self._file, fcntl.LOCK_SH | fcntl.LOCK_NB, 1, int(number))
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, int(number))
        except OSError:  # the byte is locked, or its state is unknown
            return False
        return True

    def close(self) -> None:
        """End the session of this process."""
        os.close(self._file)
