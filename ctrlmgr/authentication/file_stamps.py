"""Whether a file of credentials has changed since it was read.

Files are looked at from time to time rather than watched: a directory that is mounted into a container replaces them by
moving links, which not every way of watching tells.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

Stamp: TypeAlias = tuple[int, int] | None
"""What changes with a file: when it was written (nanoseconds) and its size (bytes). None: it cannot be looked at."""


def stamp_of(path: Path) -> Stamp:
    """Return the stamp of a file as it is now."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
