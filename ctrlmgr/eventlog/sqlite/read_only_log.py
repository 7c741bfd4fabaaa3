"""The event log in a SQLite file, opened read-only.

Guarantees: the log writes nothing to the file, and uses neither its lock nor its anchor, even while other processes
write. Every read of a read-only log returns the same result as a read of a `SQLiteEventLog`.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, NoReturn

from sqlalchemy import Connection

from ctrlmgr.api.resource import Revision
from ctrlmgr.clock import Clock
from ctrlmgr.errors import LogUnavailable, SchemaOutdated
from ctrlmgr.eventlog.appending.committer import Answer, Finished
from ctrlmgr.eventlog.appending.pending import PendingAppend
from ctrlmgr.eventlog.database_schema import require_usable
from ctrlmgr.eventlog.sqlite.sqlite_log import SQLiteEventLog, open_read_only, own_connection
from ctrlmgr.eventlog.sqllog import SQLLog

if TYPE_CHECKING:
    from ctrlmgr.encryption.key_providers import KeyProviders

_READ_ONLY = "the log is open for reading only"


class _NoWriter:
    """A `GroupWriter` that refuses every append."""

    def commit(
        self, group: Sequence[PendingAppend], outcomes: Sequence[Finished], *, since: Revision | None
    ) -> list[Answer]:
        """Refuse each append of the group."""
        return [LogUnavailable(_READ_ONLY) for _ in group]

    def idle(self) -> None:
        """Do nothing."""


class SQLiteReading(SQLiteEventLog):
    """An `EventLog` in a SQLite file that can only be read."""

    def __init__(self, path: Path, *, clock: Clock, random: Random, providers: KeyProviders | None = None) -> None:
        """Open a file that has the newest schema; raises `SchemaOutdated` if the file is missing."""
        if not path.exists():
            raise SchemaOutdated(f"there is no database at {path}; --database names another")
        with ExitStack() as undo:  # closes the opened connections if a later step fails
            engine = open_read_only(path)
            undo.callback(engine.dispose)
            require_usable(engine)
            self._waiting = own_connection(engine)
            undo.callback(self._waiting.close)
            self._waiter = threading.Lock()
            self._closing = threading.Condition()
            SQLLog.__init__(self, engine, _NoWriter(), clock=clock, random=random, providers=providers)
            undo.pop_all()

    def _scrub(self) -> NoReturn:
        raise LogUnavailable(_READ_ONLY)

    def _write_on(self, connection: Connection) -> NoReturn:
        raise LogUnavailable(_READ_ONLY)

    def peek(self) -> Revision:
        """Return the newest revision in the file, because a read-only log does not use the writers' shared memory."""
        return self.head().revision

    def _look(self) -> Revision:
        return self._read_head()

    def _release(self) -> None:
        with self._closing:
            self._closing.notify_all()
        with self._waiter:
            self._waiting.close()
