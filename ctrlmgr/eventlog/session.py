"""Sessions: a way to detect that a process has died before its lease expires.

Guarantees:
- A living process's session does not count as ended, unless the database itself loses it. A session's end is only a
  hint: code that uses it must be safe without it (`Fence`).
- A process that is stopped or hangs keeps its session. A process that dies loses it at once.
- A log in memory and a log behind a connection pooler have no sessions: none is held, and none ends.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from pathlib import Path
from typing import Final, Protocol

_LOOK_AGAIN: Final = 0.1
"""Seconds between checks of a lock on the same machine, which take microseconds."""


class Sessions(Protocol):
    """The sessions of the processes of one log; used by one thread at a time."""

    look_again: float
    """Seconds until the next check of a session."""
    may_be_lost: bool
    """Whether a living process can lose its session, so that it must check and hold it again."""

    def name(self, identity: str) -> str:
        """Return the name of the session of the process `identity`."""

    def hold(self, identity: str) -> str:
        """Ensure that this process holds its session; return its name, empty if it could not."""

    def has_ended(self, session: str) -> bool:
        """Return whether a session that was once held has ended."""

    def close(self) -> None:
        """End this process' session."""


class NoSessions:
    """No sessions: the end of a process cannot be detected."""

    look_again = float("inf")
    may_be_lost = False

    def name(self, identity: str) -> str:
        """Return an empty name."""
        return ""

    def hold(self, identity: str) -> str:
        """Return an empty name: no session is held."""
        return ""

    def has_ended(self, session: str) -> bool:
        """Return False."""
        return False

    def close(self) -> None:
        """Do nothing."""


def number_of(identity: str, bits: int) -> int:
    """Return a number for a process, the same in every process."""
    return int.from_bytes(hashlib.sha256(identity.encode()).digest()[:8]) >> (64 - bits)


class FileSessions:
    """Sessions of the processes that share a file. Each locks one byte of it, and loses the lock when it dies.

    They are POSIX locks, so a process may have only one of these objects for a file, and no other code in it may open
    that file.
    """

    look_again = _LOOK_AGAIN
    may_be_lost = False

    def __init__(self, path: Path) -> None:
        """Use the file at `path`, created if missing; it stays empty."""
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._held: set[str] = set()

    def name(self, identity: str) -> str:
        """Return the name of the session of the process `identity`."""
        return f"file:{number_of(identity, 62)}"

    def hold(self, identity: str) -> str:
        """Lock this process's byte and return the session's name; empty on a filesystem without locks."""
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
        except OSError:  # locked, or unknown
            return False
        return True

    def close(self) -> None:
        """End this process's session."""
        os.close(self._file)
