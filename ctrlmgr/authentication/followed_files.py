"""Detects changes of files with credentials and settings.

Guarantees: a change takes effect at the next check. Changed files that are invalid are logged, counted and ignored; the
previous content stays in use until they change again.

Files are polled rather than watched. A directory that is mounted into a container replaces files by moving links, which
not all watch mechanisms report.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import structlog

from ctrlmgr.errors import SettingsError

log = structlog.get_logger(__name__)

Stamp: TypeAlias = tuple[int, int, int] | None
"""A file's identity, modification time (nanoseconds) and size (bytes). None if it does not exist."""


class FollowedFiles:
    """A group of related files; used by one thread at a time."""

    def __init__(self, what: str, files: Sequence[Path], count: Callable[[str], None]) -> None:
        """Start with the files' current state, before they are read; `what` is their name in the log.

        `count` is called with "success" after a reload and with "failure" after a failed one.
        """
        self._what = what
        self._files = files
        self._count = count
        self._stamps = self._look()

    def reload(self, take: Callable[[], bool]) -> bool:
        """Call `take` to read the files if they have changed; return whether it loaded new content.

        `take` raises `SettingsError` if the files are invalid, and then loads nothing.
        """
        stamps = self._look()
        if stamps == self._stamps:
            return False
        self._stamps = stamps
        try:
            if not take():
                return False
        except SettingsError as error:
            self._count("failure")
            log.warning(f"{self._what} not reloaded, the old ones stay in force", error=str(error))
            return False
        self._count("success")
        log.info(f"{self._what} reloaded", files=[str(file) for file in self._files])
        return True

    def _look(self) -> list[Stamp]:
        return [_stamp_of(file) for file in self._files]


def _stamp_of(path: Path) -> Stamp:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size
