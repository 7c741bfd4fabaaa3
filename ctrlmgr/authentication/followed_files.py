"""Detects changes of files with credentials and settings.

Guarantees: a change takes effect at the next call of `FollowedFiles.reload`. If changed files are invalid, the failure
is logged and counted, and the previous content stays in use until the files change again.

Files are polled rather than watched, because in a directory that is mounted into a container, files change when
symbolic links are replaced. Not all watch mechanisms report such changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import structlog

from ctrlmgr.errors import SettingsError

log = structlog.get_logger(__name__)

Stamp: TypeAlias = tuple[int, int, int] | None
"""The identity of a file, its modification time (nanoseconds) and its size (bytes). The value is None if the file does
not exist.
"""


class FollowedFiles:
    """A group of related files whose changes are detected; only one thread at a time may use it."""

    def __init__(self, what: str, files: Sequence[Path], count: Callable[[str], None]) -> None:
        """Record the state of the files, before the caller reads their content.

        `what` names the files in log messages. `count` is called with "success" after a reload, and with "failure"
        after a failed reload.
        """
        self._what = what
        self._files = files
        self._count = count
        self._stamps = self._look()

    def reload(self, take: Callable[[], bool]) -> bool:
        """If the files have changed, call `take` to read the files; return whether new content was loaded.

        If the files are invalid, `take` must raise `SettingsError` and keep the previous content.
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
            log.warning("reloading files failed, keeping the previous contents", content=self._what, error=str(error))
            return False
        self._count("success")
        log.info("files reloaded", content=self._what, files=[str(file) for file in self._files])
        return True

    def _look(self) -> list[Stamp]:
        return [_stamp_of(file) for file in self._files]


def _stamp_of(path: Path) -> Stamp:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size
