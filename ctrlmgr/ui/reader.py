"""Queries the database for the web page, with a few read-only connections and with threads that wait for the results.

Guarantees:
- The connections are opened when the first query is made. If a connection has failed, the next query opens a new
  connection.
- A query that takes longer than `PATIENCE` raises `RequestTimeout`. At most `QUEUE` requests wait; a further request
  raises `TooManyRequests`.
- If the log is in memory, queries raise `HistoryUnavailable`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from ctrlmgr.api.resource import Revision
from ctrlmgr.encryption import providers_from
from ctrlmgr.errors import BadRequest, CtrlmgrError, TooManyRequests
from ctrlmgr.inspection import moment_parser
from ctrlmgr.inspection.database import Database
from ctrlmgr.inspection.decrypted import open_decrypted
from ctrlmgr.server.workers import Workers
from ctrlmgr.ui.parameters import Parameters

T = TypeVar("T")

PATIENCE = 5.0
"""Maximum duration of a query in seconds."""

QUEUE = 32
"""Maximum number of requests that wait for a connection."""

_THREADS = 2


class HistoryUnavailable(BadRequest):
    """The log is in memory, so its history cannot be queried; serve a log in SQLite or PostgreSQL."""

    default_message = "The log is in memory, so its history cannot be queried; serve a log in SQLite or PostgreSQL."


class Reader:
    """A Runnable that queries the database for the page."""

    name = "ui reader"

    def __init__(self, url: str, *, until: Revision | None = None, reason: str = "", keys: str = "") -> None:
        """Create an instance that queries the log's database at `url`, up to the revision `until`.

        `reason` replaces the error message for a log in memory. `keys` is the file with the EncryptionConfiguration;
        each new connection reads the file, so a changed file needs no restart.
        """
        self.unavailable = HistoryUnavailable(reason or None)
        """The error that queries raise if there is no database; None if there is a database."""
        self.has_history = not url.startswith("memory:")
        """Whether there is a database to query."""
        self.dialect = "memory" if not self.has_history else "sqlite" if url.startswith("sqlite") else "postgresql"
        self._url = url
        self._until = until
        self._keys = keys
        self._workers = Workers(_THREADS)
        self._waiting = 0  # only the event loop uses this attribute
        self._lock = threading.Lock()
        self._idle: list[Database] = []  # guarded by _lock
        self._closed = False  # guarded by _lock
        self._generation = 0  # the number of calls of `reconnect`; guarded by _lock

    def run(self, stop: threading.Event) -> None:
        """Answer queries of the page until the process stops."""
        self._workers.start()
        stop.wait()
        self._workers.stop()
        self.close()

    def close(self) -> None:
        """Close idle connections; running queries are still finished."""
        with self._lock:
            self._closed = True
        self.reconnect()

    def reconnect(self) -> None:
        """Close connections, so that later queries read the keys again; running queries are still finished."""
        with self._lock:
            self._generation += 1
            idle, self._idle = self._idle, []
        for database in idle:
            database.close()

    def head(self, database: Database) -> Revision:
        """Return the newest revision that queries can see."""
        head = moment_parser.head_of(database)
        return head if self._until is None else min(head, self._until)

    def moment(self, database: Database, parameters: Parameters) -> Revision:
        """Return the requested revision `at`, by default the newest revision.

        If `at` is newer, return the newest revision.
        """
        head = self.head(database)
        return min(parameters.number("at", head), head)

    async def work(self, call: Callable[[], T]) -> T:
        """Run `call` on a worker thread.

        Raises the errors that `call` raises, and `TooManyRequests` if too many requests wait.
        """
        if self._waiting >= QUEUE:
            raise TooManyRequests("too many requests of the page are waiting; try again later")
        self._waiting += 1
        try:
            return await self._workers.run(call)
        finally:
            self._waiting -= 1

    def ask(self, question: Callable[[Database], T]) -> T:
        """Run `question` on a connection, and return the result of `question`.

        The method may be called only on a thread that may wait. Raises the errors that `question` raises.
        """
        if not self.has_history:
            raise self.unavailable
        with self._lock:
            database = self._idle.pop() if self._idle else None
            generation = self._generation
        database = database or open_decrypted(self._url, providers_from(self._keys), patience=PATIENCE)
        sound = False
        try:
            answer = question(database)
            sound = True
        except CtrlmgrError as error:
            sound = isinstance(error, BadRequest) or not error.retryable
            raise
        finally:
            self._return(database, generation if sound else -1)
        return answer

    def _return(self, database: Database, generation: int) -> None:
        with self._lock:
            keep = generation == self._generation and not self._closed
            if keep:
                self._idle.append(database)
        if not keep:
            database.close()
