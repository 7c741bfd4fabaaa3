"""Restricts files that other users of the machine must not read, such as the database, keys and tokens.

Files that a `ctrlmgr` command creates are private, because the command sets its umask to 077.

Guarantees:
- When a server starts, the server removes the permissions of other users from existing private files, and logs each
  removal. If the server cannot remove the permissions of a file, because the file belongs to another user, the server
  logs a warning.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

import structlog

log = structlog.get_logger(__name__)

_OTHERS = 0o077


def narrow(directory: Path, files: Iterable[Path] = ()) -> None:
    """Remove other users' permissions from `directory`, from the private files in it, and from `files`.

    A directory that many users share, such as `/tmp` (its sticky bit is set), is not changed.
    """
    narrowed = [str(path) for path in dict.fromkeys((*_ours(directory), *files)) if _narrow(path)]
    if narrowed:
        log.warning("made files private", files=", ".join(narrowed))


def _ours(directory: Path) -> Iterator[Path]:
    yield directory
    for pattern in ("*.db", "*.db-*", "*.anchor*", "*.key", "*.lock", "pki", "pki/*"):
        yield from sorted(directory.glob(pattern))


def _narrow(path: Path) -> bool:
    """Remove other users' permissions from a file or directory; return whether the permissions were changed."""
    try:
        status = path.lstat()
        mode = stat.S_IMODE(status.st_mode)
        if stat.S_ISLNK(status.st_mode) or not mode & _OTHERS or mode & stat.S_ISVTX:
            return False
        path.chmod(mode & ~_OTHERS)
    except FileNotFoundError:
        return False
    except OSError as error:
        log.warning("file readable by other users, changing its mode failed", file=str(path), error=error.strerror)
        return False
    return True
