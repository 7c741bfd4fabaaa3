"""Sessions in PostgreSQL: each process holds an advisory lock, and loses the lock with its connection.

Guarantees, in addition to those of the module `session`:
- When the server restarts, it loses all sessions, even the sessions of running processes. Therefore a session counts as
  ended only if it was missing for `_MISSING` seconds, because running processes reconnect within this time.
- Behind a pooler that shares connections, a lock may remain after the death of the process that took it. Therefore no
  process has a session there.
- No call of a session waits for the database longer than a few seconds. After a failed connection, the next attempt to
  connect is delayed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import psycopg

from ctrlmgr.clock import Clock
from ctrlmgr.eventlog.postgres.postgres_connection import BoundedConnection, is_open
from ctrlmgr.eventlog.postgres.postgres_servers import Servers
from ctrlmgr.eventlog.session import number_of

_LOOK_AGAIN: Final = 0.25
_MISSING: Final = 0.7
_PATIENCE: Final = 1.0
_CONNECT_PATIENCE: Final = 2
_PAUSE: Final = 1.0
"""Timeouts and intervals of sessions, in seconds.

In this order: the interval of checks, the time until a missing session counts as ended, the maximum wait for a response
and for a connection, the interval of connection attempts.
"""

_CLASS: Final = 0x63746C72
"""The first half of all lock keys (`ctlr` in ASCII), by which these locks differ from the locks of other programs."""

_LOCK: Final = "SELECT pg_try_advisory_lock(%s, %s)"
_LOOK: Final = """
    SELECT EXISTS (
        SELECT FROM pg_locks
        WHERE locktype = 'advisory' AND classid = %s AND objid = %s AND objsubid = 2 AND granted
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    )
"""


class PostgresSessions:
    """The sessions of the processes that share a database; see `Sessions`."""

    look_again = _LOOK_AGAIN
    may_be_lost = True

    def __init__(self, connect: Callable[[], BoundedConnection], *, clock: Clock) -> None:
        """Create an instance, which calls `connect` when it needs a connection."""
        self._connect = connect
        self._clock = clock
        self._connection: BoundedConnection | None = None
        self._connects_at = 0.0  # earliest time of the next connection attempt (monotonic seconds)
        self._held = ""
        # The session that was missing at the last check, and the time (monotonic seconds) since which it is missing.
        self._missing = ""
        self._since = 0.0

    def name(self, identity: str) -> str:
        """Return the name of the session that the process `identity` has."""
        return f"postgres:{number_of(identity, 31)}"

    def hold(self, identity: str) -> str:
        """Take this process's advisory lock, unless its working connection already holds the lock.

        Return the name of the session, or "" if the process has no session.
        """
        name = self.name(identity)
        try:
            connection = self._open()
            if connection is None:
                return ""
            if self._held != name:
                row = connection.execute(_LOCK, (_CLASS, number_of(identity, 31))).fetchone()
                self._held = name if row is not None and row[0] else ""
        except psycopg.Error:
            self.close()
        return self._held

    def has_ended(self, session: str) -> bool:
        """Return whether the session's lock has been free for `_MISSING` seconds."""
        kind, _, number = session.partition(":")
        if kind != "postgres" or not number.isdecimal() or not self._is_missing(int(number)):
            self._missing = ""
            return False
        now = self._clock.monotonic()
        if self._missing != session:
            self._missing, self._since = session, now
        return now - self._since >= _MISSING

    def _is_missing(self, number: int) -> bool:
        try:
            connection = self._open()
            row = None if connection is None else connection.execute(_LOOK, (_CLASS, number)).fetchone()
        except psycopg.Error:
            self.close()
            return False
        return row is not None and not row[0]

    def _open(self) -> BoundedConnection | None:
        """Return the connection, after reconnecting if it was lost; None if a connection cannot be opened yet.

        Raises psycopg.Error.
        """
        if self._connection is not None and is_open(self._connection):
            return self._connection
        self.close()
        now = self._clock.monotonic()
        if now < self._connects_at:
            return None
        self._connects_at = now + _PAUSE
        connection = self._connect()
        if connection.is_pooled:
            connection.close()
            self._connects_at = float("inf")
            return None
        self._connection = connection
        return connection

    def close(self) -> None:
        """End the session of this process."""
        self._held = ""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def postgres_sessions(url: str, *, clock: Clock) -> PostgresSessions:
    """Return the object for the sessions of the processes that use the database at `url`."""
    servers = Servers(url)
    connect = partial(servers.connect, "leader", patience=_PATIENCE, connect_timeout=_CONNECT_PATIENCE)
    return PostgresSessions(connect, clock=clock)
