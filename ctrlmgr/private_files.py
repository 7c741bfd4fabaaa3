"""Files that hold what other users of the machine must not read: the database, its journal, the anchor, keys, tokens.

What a `ctrlmgr` command makes is its user's alone, because its umask is 077.

Guarantees:
- What is there already and may be read by others is narrowed when a server starts, with a line in the log; what cannot
  be narrowed, because it belongs to another user, is told of.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

import structlog

log = structlog.get_logger(__name__)

_OTHERS = 0o077


def narrow(directory: Path, files: Iterable[Path] = ()) -> None:
    """Take from all other users what they may do with our files in `directory`, with that itself, and with `files`.

    A directory that many users share (its sticky bit is set, as on `/tmp`) is left as it is.
    """
    narrowed = [str(path) for path in dict.fromkeys((*_ours(directory), *files)) if _narrow(path)]
    if narrowed:
        log.warning("files could be read by other users and no longer can", files=", ".join(narrowed))


def _ours(directory: Path) -> Iterator[Path]:
    yield directory
    for pattern in ("*.db", "*.db-*", "*.anchor*", "*.key", "*.lock", "pki", "pki/*"):
        yield from sorted(directory.glob(pattern))


def _narrow(path: Path) -> bool:
    """Say whether a file or directory had to be narrowed and was."""
    try:
        status = path.lstat()
        mode = stat.S_IMODE(status.st_mode)
        if stat.S_ISLNK(status.st_mode) or not mode & _OTHERS or mode & stat.S_ISVTX:
            return False
        path.chmod(mode & ~_OTHERS)
    except FileNotFoundError:
        return False
    except OSError as error:
        log.warning("other users can read a file, and that cannot be changed", file=str(path), error=error.strerror)
        return False
    return True
