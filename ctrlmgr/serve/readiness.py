"""Reports that a serving process is ready: by a line in the log, and by a file for scripts that wait for readiness.

Guarantees:
- The process logs the line `ready` once, when all checks of `/readyz` pass for the first time. The line `ready` is the
  last log line of the start; log lines about published objects precede the line `ready`.
- The ready file exists only while the process is ready or stopping, and contains the server's URL. At its start, the
  process deletes a ready file of an earlier process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

import structlog

from ctrlmgr.clock import Clock
from ctrlmgr.errors import SettingsError

log = structlog.get_logger(__name__)

_LOOK_AGAIN: Final = 0.05
"""The seconds between two checks whether the process is ready."""

_PUBLISHING: Final = 5.0
"""The maximum number of seconds for which a ready process waits until its address is published."""


class Readiness:
    """A Runnable that reports when the process is ready."""

    name = "readiness"

    def __init__(
        self,
        is_ready: Callable[[], bool],
        url: str,
        file: Path | None,
        *,
        clock: Clock,
        is_published: Callable[[], bool] = lambda: True,
    ) -> None:
        """Create a runnable that reports readiness, in the log and in the file `file`, when `is_ready` returns True.

        Raises `SettingsError` if `file` cannot be removed. `is_published` returns whether a ready process has published
        its address. The report waits for the publication of the address, but only for a limited time, because the
        process serves even without the publication.
        """
        self._is_ready = is_ready
        self._is_published = is_published
        self._url = url
        self._file = file
        self._clock = clock
        self._began = clock.monotonic()
        self._change(lambda path: path.unlink(missing_ok=True))

    def run(self, stop: threading.Event) -> None:
        """Wait until the process is ready, report the readiness, and delete the ready file when `stop` is set."""
        while not self._is_ready():
            if stop.wait(_LOOK_AGAIN):
                return
        until = self._clock.monotonic() + _PUBLISHING
        while not self._is_published() and self._clock.monotonic() < until:
            if stop.wait(_LOOK_AGAIN):
                return
        self._change(self._write)
        log.info("ready", url=self._url, seconds=round(self._clock.monotonic() - self._began, 2))
        stop.wait()
        self._change(lambda path: path.unlink(missing_ok=True))

    def _write(self, path: Path) -> None:
        """Write the complete ready file atomically, because readers wait until the file exists."""
        part = path.with_name(f"{path.name}.part")
        part.write_text(f"{self._url}\n", encoding="utf-8")
        part.replace(path)

    def _change(self, change: Callable[[Path], None]) -> None:
        try:
            if self._file is not None:
                change(self._file)
        except OSError as error:
            raise SettingsError(f"server.ready_file: {self._file} cannot be written: {error.strerror}") from error
