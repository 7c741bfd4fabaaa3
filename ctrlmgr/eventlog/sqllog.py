"""The common part of the SQLite and PostgreSQL logs; `sqlite` and `postgres` implement the abstract methods."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from random import Random
from typing import TYPE_CHECKING

import msgspec
import structlog
from sqlalchemy import Connection, Engine

from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.clock import Clock
from ctrlmgr.errors import LogCorrupt, LogUnavailable, OutcomeUnknown
from ctrlmgr.eventlog import compaction, import_rows, purging
from ctrlmgr.eventlog.anchor import Anchor
from ctrlmgr.eventlog.appending.committer import Committer, GroupWriter
from ctrlmgr.eventlog.appending.pending import PendingAppend
from ctrlmgr.eventlog.database_schema import new_uuid
from ctrlmgr.eventlog.encrypted.data_keys import DataKeyTable
from ctrlmgr.eventlog.event import (
    Author,
    Cause,
    Event,
    Failure,
    Fence,
    Head,
    Outcome,
    Proposal,
)
from ctrlmgr.eventlog.imports import Imported, place_of
from ctrlmgr.eventlog.log_tables import event
from ctrlmgr.eventlog.sql_reading import SQLReading

if TYPE_CHECKING:  # the cryptography package is imported only if payloads are encrypted
    from ctrlmgr.encryption.key_providers import KeyProviders
    from ctrlmgr.eventlog.encrypted.payload_codec import PayloadCodec

log = structlog.get_logger(__name__)


class SQLLog(SQLReading):
    """An `EventLog` in an SQL database."""

    def __init__(
        self,
        engine: Engine,
        writer: GroupWriter,
        *,
        clock: Clock,
        random: Random,
        patience: float = 10.0,
        anchor: Anchor | None = None,
        providers: KeyProviders | None = None,
    ) -> None:
        """Open a log that has the newest schema; `engine` serves reads, and `writer` commits groups of appends.

        Calls to a failing database are retried for `patience` seconds. The argument `anchor` stores the last known head
        outside the database. If `providers` is None, the log encrypts nothing, and returns encrypted payloads without
        decrypting them. Raises `LogRolledBack` or `LogCorrupt` if the log contradicts the anchor. Raises
        `SchemaOutdated` if the schema is not the newest, and `LogUnavailable` if the database cannot be used.
        """
        super().__init__(engine)
        self._writer = writer
        self._clock = clock
        self._random = random
        self._patience = patience
        self._anchor = anchor
        if providers:
            self._decrypt_with(self._new_codec(providers))
        self._damage: LogCorrupt | None = None  # if this error is set, appends are refused
        head = self._anchor.check(self.head, self.hash_at) if self._anchor else self.head()
        self._committer = Committer(writer, clock=clock, head=head.revision, patience=patience)
        if self._anchor:
            self._committer.observe(self._remember)

    def _new_codec(self, providers: KeyProviders) -> PayloadCodec:
        from ctrlmgr.eventlog.encrypted.payload_codec import PayloadCodec

        return PayloadCodec(providers, self.data_keys, clock=self._clock)

    @property
    def data_keys(self) -> DataKeyTable:
        """The table of data keys."""
        return DataKeyTable(self._read, self._write)

    # Dialect-specific methods.

    @abstractmethod
    def _write(self) -> AbstractContextManager[Connection]:
        """Open a write transaction, for compaction and restore, during which the committer cannot write."""

    @contextmanager
    def _write_much(self) -> Iterator[compaction.Write]:
        """Yield a function that opens a write transaction as `_write` does; it may be called repeatedly."""
        yield self._write

    @abstractmethod
    def _scrub(self) -> None:
        """Remove overwritten data from the database's own storage; raises `LogUnavailable` if that fails."""

    @abstractmethod
    def peek(self) -> Revision | None:
        """Return the newest revision if this takes only microseconds, otherwise None."""

    @abstractmethod
    def wait(self, after: Revision, timeout: float | None) -> Revision:
        """Block until the head is greater than `after` or `timeout` seconds have passed; return the head."""

    # Writing.

    def submit(
        self, proposals: Sequence[Proposal], *, author: Author, fence: Fence | None = None, cause: Cause | None = None
    ) -> PendingAppend:
        """Queue an append and return it."""
        pending = self._stamped(proposals, author, fence, cause)
        self._committer.submit(pending)
        return pending

    def append(
        self, proposals: Sequence[Proposal], *, author: Author, fence: Fence | None = None, cause: Cause | None = None
    ) -> Sequence[Event]:
        """Append proposals atomically and durably.

        The committer gives up after `patience` seconds. If the committer itself hangs, for example because a frozen
        process holds the lock, the call raises `OutcomeUnknown` after twice `patience`.
        """
        pending = self._stamped(proposals, author, fence, cause)
        self._committer.commit(pending)
        try:
            return pending.result(2 * self._patience + 1)
        except TimeoutError as error:
            raise OutcomeUnknown("the append is still waiting for the database") from error

    def _stamped(
        self, proposals: Sequence[Proposal], author: Author, fence: Fence | None, cause: Cause | None
    ) -> PendingAppend:
        if self._damage is not None:
            raise LogCorrupt(str(self._damage), revision=self._damage.revision)
        append_id = self._random.getrandbits(63)
        return PendingAppend(
            proposals,
            author,
            fence,
            cause,
            recorded_at=self._clock.now(),
            append_id=append_id,
            stored=self.codec.stored if self.codec else None,
        )

    def import_events(self, events: Sequence[Imported]) -> Sequence[Event]:
        """Add events at their recorded revisions."""
        append_id = self._random.getrandbits(63)
        return self._committer.alone(lambda: self._import(events, append_id))

    def _import(self, events: Sequence[Imported], append_id: int) -> list[Event]:
        written: list[Event] | None = None
        # A data key must be added before the transaction begins, because adding a data key is a separate transaction.
        bodies = [self.codec.stored(place_of(each), each.object.body) for each in events] if self.codec else None
        try:
            with self._write() as connection:
                written = import_rows.write(connection, events, append_id, bodies)
        except LogUnavailable as error:
            if written:
                raise OutcomeUnknown(f"the import may or may not be in the log: {error}") from error
            raise
        return written

    def finish(self, reconcile: int, outcome: Outcome) -> None:
        """Queue the outcome of a reconcile."""
        if self.codec:
            outcome = msgspec.structs.replace(outcome, message=self.codec.hidden(outcome.message))
        self._committer.finish(reconcile, outcome)

    def record_failure(self, failure: Failure) -> None:
        """Queue a failure record."""
        if self.codec:
            texts = {"error": self.codec.hidden(failure.error), "traceback": self.codec.hidden(failure.traceback)}
            failure = msgspec.structs.replace(failure, **texts)
        self._committer.record_failure(failure)

    def flush(self) -> None:
        """Wait until everything that was queued so far is in the log."""
        self._committer.flush()

    def observe(self, observer: Callable[[Sequence[Event]], None]) -> None:
        """Call `observer` with the events of each commit of this process."""
        self._committer.observe(observer)

    def _remember(self, events: Sequence[Event]) -> None:
        if self._anchor is None or self._damage is not None:
            return
        try:
            self._anchor.remember(events[-1].revision, events[-1].hash, self.hash_at)
        except LogUnavailable:
            return  # the anchor may be behind the log
        except LogCorrupt as error:
            log.critical("event log was rewritten; refusing further appends", error=str(error))
            self._damage = error

    # Maintenance.

    def compact(self, before: Revision, *, resource: Resource | None = None, keep: int = 1) -> int:
        """Remove superseded events, as `EventLog.compact` specifies."""
        with self._write_much() as write:
            return compaction.compact(write, before, resource, keep, clock=self._clock)

    def compactable(self, before: Revision, *, resource: Resource | None = None, keep: int = 1) -> int:
        """Return the number of events that `compact` would remove now."""
        with self._read() as connection:
            return compaction.count(connection, before, resource, keep)

    def shrink(self) -> None:
        """Rewrite the database to return free space to the disk; raises `LogUnavailable` if that fails."""
        self._scrub()

    def purge(self, resource: Resource, key: Key, *, superseded: bool = False) -> purging.Purged:
        """Remove an object's content from the log and from the database's unused space; see `eventlog.purging`.

        Raises `LogUnavailable` if the payloads were removed, but the unused space could not be cleaned; in that case,
        the caller should call the method again.
        """
        with self._write_much() as write:
            done = purging.purge(write, self._body(event), resource, key, superseded=superseded)
        self._scrub()
        return done

    def begin_epoch(self, reason: str, *, above: Revision) -> Head:
        """Start a new incarnation of a log that was restored from an older copy.

        New revisions are greater than `above`, the newest revision that the lost history may have used, so no revision
        is used twice. All earlier history counts as compacted, so every reader must list again. The anchor is moved to
        the new head of the log.
        """
        self.flush()
        with self._write() as connection:
            uuid = new_uuid(self._random)
            head = compaction.begin_epoch(connection, uuid, reason, above=above, started_at=self._clock.now())
        if self._anchor:
            self._anchor.write(head)
        return head

    def close(self) -> None:
        """Commit all queued appends, write the anchor, and release all resources."""
        if self._closed:
            return
        self._committer.close()
        if self.codec:
            self.codec.close()
        if self._anchor and self._damage is None:
            with suppress(LogUnavailable, LogCorrupt):  # the anchor may be behind the log
                self._anchor.finish(self.head(), self.hash_at)
        self._closed = True
        self._release()
        self._engine.dispose()

    @abstractmethod
    def _release(self) -> None:
        """Close the connections that are not in the engine's pool."""
