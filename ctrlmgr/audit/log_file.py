"""The audit log as a file of JSON lines, which is rotated by size.

Guarantees:
- When `write` returns, the operating system has received the data. The file contains complete lines only, and only the
  file's owner may read it.
- `LogFile` renames a full file to `NAME-TIME.EXT`, and compresses the renamed file if compression is configured.
  `LogFile` deletes rotated files that exceed the configured number or age, and never deletes other files.

Source: kube-apiserver's `--audit-log-*` flags (`pkg/server/options/audit.go`, with lumberjack's files).
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Final, NamedTuple

import structlog

from ctrlmgr import threads
from ctrlmgr.clock import Clock, format_time
from ctrlmgr.errors import SettingsError

log = structlog.get_logger(__name__)

STDOUT: Final = "-"
_MEGABYTE = 1024 * 1024
_DAY = 24 * 3600 * 1_000_000
_STAMP = re.compile(r"-(\d{8}T\d{12})$")


class Rotation(NamedTuple):
    """The settings of rotation: when a file is rotated, and which rotated files are kept."""

    megabytes: int = 100
    """The maximum size of a file in MiB; 0 means no limit."""
    backups: int = 0
    """The maximum number of rotated files that are kept; 0 means all."""
    days: int = 0
    """The number of days for which rotated files are kept; 0 means no limit."""
    compress: bool = False


class LogFile:
    """Writes lines to the audit log; only one thread at a time may use the writer."""

    def __init__(self, path: str, rotation: Rotation, *, clock: Clock) -> None:
        """Open the audit log, a file or the standard output (`-`).

        Raises `SettingsError` if the file cannot be opened.
        """
        self._rotation = rotation
        self._clock = clock
        self._path = None if path == STDOUT else Path(path).expanduser()
        self._descriptor, self._size = self._open()

    def write(self, lines: bytes) -> None:
        """Append complete lines to the audit log; raises `OSError` if the write fails."""
        limit = self._rotation.megabytes * _MEGABYTE
        if self._path is not None and limit and self._size and self._size + len(lines) > limit:
            self._rotate(self._path)
        written = os.write(self._descriptor, lines)
        while written < len(lines):
            written += os.write(self._descriptor, memoryview(lines)[written:])
        self._size += len(lines)

    def close(self) -> None:
        """Close the file."""
        if self._path is not None:
            os.close(self._descriptor)

    def _open(self) -> tuple[int, int]:
        if self._path is None:
            return sys.stdout.fileno(), 0
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            return descriptor, os.fstat(descriptor).st_size
        except OSError as error:
            raise SettingsError(f"audit.log_path: {self._path} cannot be written: {error.strerror}") from error

    def _rotate(self, path: Path) -> None:
        stamp = _compact(self._clock.now())
        aside = path.with_name(f"{path.stem}-{stamp}{path.suffix}")
        os.close(self._descriptor)
        path.rename(aside)
        self._descriptor, self._size = self._open()
        threads.start("audit rotation", lambda: self._tidy(path, aside))

    def _tidy(self, path: Path, aside: Path) -> None:
        """Compress a rotated file and delete old files; a failure is logged and otherwise ignored."""
        try:
            if self._rotation.compress:
                _pack(aside)
            self._prune(path)
        except OSError as error:
            log.warning("compressing or removing rotated audit logs failed", file=str(path), error=str(error))

    def _prune(self, path: Path) -> None:
        found = sorted((stamp, each) for each in path.parent.iterdir() if (stamp := _stamp_of(each, path)) is not None)
        keep = self._rotation.backups
        gone = [each for _, each in (found[:-keep] if keep else ())]
        if self._rotation.days:
            oldest = _compact(self._clock.now() - self._rotation.days * _DAY)
            gone += [each for stamp, each in found if stamp < oldest and each not in gone]
        for each in gone:
            each.unlink(missing_ok=True)


def _compact(microseconds: int) -> str:
    """Return a time in a format that sorts chronologically: `20260102T030405123456`."""
    return re.sub(r"[-:.Z]", "", format_time(microseconds))


def _stamp_of(each: Path, path: Path) -> str | None:
    """Return the time in the name of a rotated file; None if the name does not belong to a rotated file of `path`."""
    name = each.name.removesuffix(".gz").removesuffix(path.suffix)
    found = _STAMP.search(name)
    return found.group(1) if found and name[: found.start()] == path.stem else None


def _pack(aside: Path) -> None:
    packed = aside.with_name(f"{aside.name}.gz")
    with aside.open("rb") as plain, gzip.open(packed, "wb") as out:
        shutil.copyfileobj(plain, out)
    packed.chmod(0o600)
    aside.unlink()
