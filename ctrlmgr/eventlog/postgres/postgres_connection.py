"""Connections to PostgreSQL, and the translation of their failures into log errors.

Guarantees:
- Every call of the database ends within a limited time. Network timeouts detect a dead peer (`postgres.url`), and a
  timeout per call detects a server that is alive but hangs.
- If the server itself has reported the failure of a write, the error, such as `LogUnavailable`, means that nothing was
  written. For every other failure of a write, the error is `OutcomeUnknown`.
"""

from __future__ import annotations

import select
from collections.abc import Callable
from typing import Any, Final

import psycopg
from psycopg.abc import RV, PQGen
from psycopg.pq import TransactionStatus

from ctrlmgr.errors import LogCorrupt, LogError, LogRolledBack, LogUnavailable, OutcomeUnknown, SchemaOutdated
from ctrlmgr.eventlog.postgres.url import Place

_LOOK: Final = 0.1
"""The number of seconds after which a waiting call checks again whether it may continue to wait."""

OLDER_THAN_WRITER = "CM001"
COMPACTED = "CM002"
"""The SQLSTATE codes that the append function raises; see migrations/postgres/append.sql."""


class BoundedConnection(psycopg.Connection[Any]):
    """A connection that gives up if the server is silent for `patience` seconds or is no longer the primary.

    In both cases, the current call raises OperationalError, and the connection cannot be used any more.
    """

    patience: float | None = None
    place: Place | None = None
    """The address of the server."""
    is_pooled = False
    """Whether a connection pooler may run each transaction in a different session of the server."""
    is_former: Callable[[], bool] = staticmethod(lambda: False)
    """A function that returns whether another server has become the primary since this connection was opened."""

    def wait(self, gen: PQGen[RV], interval: float = _LOOK, timeout: float | None = None) -> RV:
        """Wait for the server's response, as psycopg's `wait` does."""
        if timeout is not None:  # the caller wants the results that arrive within `timeout`
            return super().wait(gen, interval, timeout)
        try:
            return super().wait(self._guarded(gen), _LOOK)
        except psycopg.OperationalError:
            if self.pgconn.transaction_status == TransactionStatus.ACTIVE:
                self.pgconn.finish()
            raise

    def _guarded(self, gen: PQGen[RV]) -> PQGen[RV]:
        """Run the generator `gen`, but raise OperationalError if the server is silent for too long."""
        silence = 0.0
        try:
            state = next(gen)
            while True:
                ready = yield state
                silence = 0.0 if ready else silence + _LOOK
                if silence and (self.is_former() or (self.patience is not None and silence > self.patience)):
                    raise psycopg.OperationalError(f"the server has not responded for {silence:.0f} s")
                state = gen.send(ready)
        except StopIteration as stop:
            result: RV = stop.value
            return result


def is_open(connection: BoundedConnection) -> bool:
    """Return whether an idle connection is still open and its server is still the primary, without a round trip."""
    if connection.closed or connection.is_former():
        return False
    try:
        while select.select([connection.fileno()], [], [], 0)[0]:
            connection.pgconn.consume_input()  # raises at the end of the stream
            connection.pgconn.is_busy()
    except psycopg.OperationalError:
        return False
    return True


def append_failure(error: psycopg.Error, connection: psycopg.Connection[Any]) -> LogError:
    """Return the log error for a failed call of the append function."""
    state = error.sqlstate or ""
    text = str(error).strip()
    if not state or connection.closed or state.startswith(("08", "57P")):
        return OutcomeUnknown(f"the connection failed during an append: {text}")
    if state in _NO_SCHEMA:
        return SchemaOutdated()
    if state == OLDER_THAN_WRITER:
        return LogRolledBack("the database does not know the newest events this process has seen: it was restored "
                             "from a backup, or a standby took over that had not received them")  # fmt: skip
    if state == COMPACTED:
        return OutcomeUnknown("compaction has removed what would tell whether the append was committed")
    if state.startswith(("23", "XX")):
        return LogCorrupt(f"the database contradicts itself: {text}")
    return LogUnavailable(f"the database refused to write: {text}")


def read_failure(error: BaseException | None) -> LogUnavailable | SchemaOutdated | LogCorrupt:
    """Return the log error for a failed read."""
    state = (error.sqlstate or "") if isinstance(error, psycopg.Error) else ""
    if state in _NO_SCHEMA:
        return SchemaOutdated()
    if state.startswith("XX"):
        return LogCorrupt(f"the database is damaged: {str(error).strip()}")
    return LogUnavailable(f"the event log cannot be read: {str(error).strip()}")


_NO_SCHEMA = frozenset({"42P01", "42883", "42703", "3F000", "P0002"})
"""The SQLSTATE codes for an undefined table, function, column or schema, and the error for a missing head row."""
