"""Sessions: how others can see that a process is gone, sooner than by its silence.

Guarantees:
- A session that a living process holds never counts as ended, except that a database may lose the sessions it has
  with the living. So its end is a hint: what depends on it has to be safe without (`Fence`).
- A process that is stopped or hangs keeps its session; one that dies loses it at once, however it dies.
- Where sessions mean nothing, in a log in memory or behind a pooler, none is ever held and none ever ends.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from pathlib import Path
from typing import Final, Protocol

_LOOK_AGAIN: Final = 0.1
"""Seconds between looks at a lock of the same machine, which take microseconds."""


class Sessions(Protocol):
    """The sessions of the processes of one log; used by one thread at a time."""

    look_again: float
    """In how many seconds to look again whether a session still stands."""
    may_be_lost: bool
    """Whether a living process' own session may end, so that it has to be looked at and held again."""

    def name(self, identity: str) -> str:
        """Return what the session of the process `identity` is called."""

    def hold(self, identity: str) -> str:
        """See to it that this process' session stands; return its name, empty if it does not."""

    def has_ended(self, session: str) -> bool:
        """Whether a session that stood once does not any more."""

    def close(self) -> None:
        """End this process' session."""


class NoSessions:
    """The end of no process can be seen."""

    look_again = float("inf")
    may_be_lost = False

    def name(self, identity: str) -> str:
        """Return nothing: there are none."""
        return ""

    def hold(self, identity: str) -> str:
        """Hold none."""
        return ""

    def has_ended(self, session: str) -> bool:
        """Return False."""
        return False

    def close(self) -> None:
        """Do nothing."""


def number_of(identity: str, bits: int) -> int:
    """Return a number for a process, the same wherever it is asked for."""
    return int.from_bytes(hashlib.sha256(identity.encode()).digest()[:8]) >> (64 - bits)


class FileSessions:
    """Sessions of the processes that share a file: each holds a lock on a byte of it, which it loses when it dies.

    These are POSIX locks, so there must be one of these objects in a process for one file, and no other code in it may
    open that file.
    """

    look_again = _LOOK_AGAIN
    may_be_lost = False

    def __init__(self, path: Path) -> None:
        """Use the file at `path`, made when missing; it stays empty."""
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._held: set[str] = set()

    def name(self, identity: str) -> str:
        """Return what the session of the process `identity` is called."""
        return f"file:{number_of(identity, 62)}"

    def hold(self, identity: str) -> str:
        """Lock our byte; no other process can have it."""
        name = self.name(identity)
        if name not in self._held:
            try:
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number_of(identity, 62))
            except OSError:  # a filesystem without locks
                return ""
            self._held.add(name)
        return name

    def has_ended(self, session: str) -> bool:
        """Whether that byte is unlocked."""
        kind, _, number = session.partition(":")
        if kind != "file" or not number.isdecimal() or session in self._held:
            return False
        try:
            fcntl.lockf(self._file, fcntl.LOCK_SH | fcntl.LOCK_NB, 1, int(number))
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, int(number))
        except OSError:  # locked, or it cannot be known
            return False
        return True

    def close(self) -> None:
        """End our session."""
        os.close(self._file)
