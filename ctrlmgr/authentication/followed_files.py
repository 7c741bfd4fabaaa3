"""Files of credentials and settings that are followed as they change.

Guarantees: what changed is taken up at the next look; files that became unusable are logged, counted and ignored, and
what they said before stays in force until they change again.

Files are looked at from time to time rather than watched: a directory that is mounted into a container replaces them by
moving links, which not every way of watching tells.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import structlog

from ctrlmgr.errors import SettingsError

log = structlog.get_logger(__name__)

Stamp: TypeAlias = tuple[int, int, int] | None
"""What changes with a file: which it is, when it was written (nanoseconds), its size (bytes). None: it is not there."""


class FollowedFiles:
    """Some files that belong together; used from one thread at a time."""

    def __init__(self, what: str, files: Sequence[Path], count: Callable[[str], None]) -> None:
        """Begin with the files as they are now, before they are read; the log calls them `what`.

        `count` hears "success" when they were taken up anew and "failure" when that could not be.
        """
        self._what = what
        self._files = files
        self._count = count
        self._stamps = self._look()

    def reload(self, take: Callable[[], bool]) -> bool:
        """Have `take` read the files if they have changed; return whether it took up anything that it had not.

        It raises `SettingsError` when they cannot be used, and then takes up nothing.
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
