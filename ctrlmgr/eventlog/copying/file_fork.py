"""Forks a log in a SQLite file by a copy of the file, which takes milliseconds if the file system shares blocks.

Guarantees:
- The fork contains the whole log, and continues as a new incarnation with its own UUID.
- The log that is forked is only read. If the function fails, the new file does not exist.
- If the log is not open, a file system with reflinks (Btrfs, XFS) shares the blocks of both files until one changes.
"""

from __future__ import annotations

import fcntl
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Final
from urllib.parse import quote

from sqlalchemy import Connection, select, update
from sqlalchemy.exc import DBAPIError

from ctrlmgr.clock import Clock
from ctrlmgr.errors import LogUnavailable
from ctrlmgr.eventlog.copying.copied_tables import lock_for_writing
from ctrlmgr.eventlog.database_schema import new_uuid
from ctrlmgr.eventlog.event import Head
from ctrlmgr.eventlog.log_tables import log_epoch, log_head
from ctrlmgr.eventlog.sqlite.sqlite_log import open_engine

_CLONE: Final = 0x40049409
"""The request of ioctl that shares the blocks of two files (FICLONE in Linux's `linux/fs.h`)."""


def fork_file(source: Path, target: Path, *, is_open: bool, clock: Clock, random: Random) -> Head:
    """Copy the log in the file `source` into the new file `target`, and return the head of the new log.

    `is_open` says whether a process has opened the log; such a log is copied page by page in a read transaction. If it
    is not set, no process may open the log before the function returns. Raises `LogUnavailable`.
    """
    try:
        if is_open or source.with_name(f"{source.name}-wal").exists():
            _copy_pages(source, target)
        else:
            copy_file(source, target)
        return _continued(target, clock=clock, random=random)
    except (OSError, sqlite3.Error, DBAPIError) as error:
        target.unlink(missing_ok=True)
        raise LogUnavailable(f"the log in {source} cannot be copied: {error}") from error


def copy_file(source: Path, target: Path) -> bool:
    """Copy a file; return whether the file system shares the blocks of both files."""
    with source.open("rb") as read, target.open("wb") as written:
        try:
            fcntl.ioctl(written.fileno(), _CLONE, read.fileno())
        except OSError:  # the file system cannot share blocks
            shutil.copyfileobj(read, written, 1024 * 1024)
            return False
        return True


def _copy_pages(source: Path, target: Path) -> None:
    uri = f"file:{quote(str(source.absolute()))}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True)) as read, closing(sqlite3.connect(target)) as written:
        read.backup(written)


def _continued(file: Path, *, clock: Clock, random: Random) -> Head:
    """Begin a new incarnation in the copy of a log, and return its head."""
    engine = open_engine(file)
    try:
        with engine.connect() as connection:
            lock_for_writing(connection)
            head = _begin(connection, new_uuid(random), clock.now())
            connection.commit()
    finally:
        engine.dispose()
    return head


def _begin(connection: Connection, uuid: str, now: int) -> Head:
    own = connection.execute(select(log_head)).one()
    reason = f"forked from {own.uuid} at revision {own.revision}"
    begun = {"uuid": uuid, "after_revision": own.revision, "parent_hash": own.hash, "started_at": now, "reason": reason}
    connection.execute(log_epoch.insert(), [begun])
    connection.execute(update(log_head).values(uuid=uuid))
    return Head(uuid, own.revision, own.hash)
