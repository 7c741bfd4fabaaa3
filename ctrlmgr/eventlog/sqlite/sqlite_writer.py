"""Commits groups of appends to a SQLite file.

Python's sqlite3 releases the GIL for every step of a statement. If dozens of threads are busy, acquiring the GIL again
takes longer than the step. Therefore the writer uses only about six statements for a group: inserts have many rows, and
the state of objects and causes is cached between groups. The cache is valid until another connection writes. While the
writer holds the write lock, `data_version` shows whether another connection has written.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache
from itertools import chain
from typing import Any, TypeVar

from ctrlmgr.api.resource import Revision
from ctrlmgr.errors import ApiError, LogCorrupt, LogError, LogUnavailable, OutcomeUnknown
from ctrlmgr.eventlog.appending import failure_rows
from ctrlmgr.eventlog.appending.committer import Answer, Finished
from ctrlmgr.eventlog.appending.pending import PendingAppend
from ctrlmgr.eventlog.event import Cause, Event, EventType, Proposal
from ctrlmgr.eventlog.hash_chain import Place, link
from ctrlmgr.eventlog.optimistic_concurrency import EMPTY, Slot, fence_refusal, namespace_refusal, refusal
from ctrlmgr.eventlog.sqlite.file_lock import FileLock

CHECKPOINT = 40 * 1024 * 1024
"""The size, in bytes, at which the WAL is checkpointed; the file keeps this size after the checkpoint.

A commit that fits into the existing WAL file is faster, because the file system need not record a new length.
"""
_REMEMBERED = 20_000
"""The maximum number of cached object keys (places) and causes."""
_LARGEST_INSERT = 128
"""The maximum number of rows in one INSERT."""
_USUAL = 16
"""The maximum number of rows for which a statement is prepared for each number of rows, because most groups are small.
"""


L = TypeVar("L", bound=LogError)


class _State:
    """The cached state of an object key: its row in the table `object`, including changes of the current group."""

    __slots__ = ("create_revision", "id", "place", "slot", "uid")

    def __init__(self, place: Place, id: int, slot: Slot, uid: str, created: Revision) -> None:
        self.place = place
        self.id = id
        self.slot = slot
        self.uid = uid
        self.create_revision = created

    def move(self, proposal: Proposal, revision: Revision) -> None:
        self.slot = Slot(revision, proposal.type is not EventType.DELETED)
        if proposal.type is EventType.ADDED:
            self.create_revision = revision
        self.uid = proposal.object.metadata.uid

    def row(self) -> tuple[Any, ...]:
        head, exists = self.slot
        return (self.id, *self.place, self.uid, self.create_revision, head, not exists)


class _Group:
    """The rows that one transaction inserts, which are collected before the inserts."""

    def __init__(self) -> None:
        self.changed: dict[int, _State] = {}
        self.terms: dict[str, int] = {}  # only leases that an append of this group takes over
        self.events: list[Any] = []  # the values of all rows, in one list
        self.causes: list[Cause] = []
        self.traces: list[Any] = []  # the ids and trace contexts of traced appends, in one list


class SQLiteWriter:
    """Commits groups of appends on this process's only connection for writes.

    Only one thread at a time may use a writer.
    """

    def __init__(self, connection: sqlite3.Connection, lock: FileLock) -> None:
        """Create a writer on `connection`, which `close` also closes; `lock` is the write lock of the file."""
        self._connection = connection
        self._lock = lock
        self._dirty = False  # whether the WAL may hold pages to checkpoint
        # The fields below cache the database as of data_version, which changes if another connection commits.
        self._version = -1
        self._revision: Revision = 0
        self._hash = b""
        self._committed: tuple[Revision, bytes] | None = None  # the head after this process's last commit
        self._newest_object = 0
        self._states: dict[Place, _State] = {}
        self._causes: set[int] = set()
        # The cache size is 16,384 KiB: a busy server fills this cache, and a larger cache is not faster.
        connection.execute("PRAGMA cache_size = -16384")
        connection.execute("PRAGMA temp_store = MEMORY")  # keeps journals of multi-row inserts out of files
        pages = CHECKPOINT // self._one("PRAGMA page_size")[0]
        connection.execute(f"PRAGMA wal_autocheckpoint = {pages}")  # the checkpoint runs within a commit
        connection.execute(f"PRAGMA journal_size_limit = {CHECKPOINT}")
        lock.begin(lambda: self._one("SELECT revision FROM log_head")[0])

    def commit(
        self, group: Sequence[PendingAppend], outcomes: Sequence[Finished], *, since: Revision | None
    ) -> list[Answer]:
        """Commit a group of appends, as `GroupWriter` specifies."""
        try:
            with self._lock:
                return self._transaction(group, outcomes, since)
        except sqlite3.OperationalError as error:
            raise self._placed(LogUnavailable(f"the database cannot be written: {error}")) from error
        except sqlite3.DatabaseError as error:
            raise LogCorrupt(f"the database is damaged: {error}") from error

    def _transaction(
        self, group: Sequence[PendingAppend], outcomes: Sequence[Finished], since: Revision | None
    ) -> list[Answer]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            self._look(group)
            work = _Group()
            answers = [self._answer(work, pending, since) for pending in group]
            self._write(work, outcomes)
        except BaseException:
            self._rollback()
            raise
        try:
            self._connection.execute("COMMIT")
        except sqlite3.OperationalError as error:
            # The disk failed during the commit, so the durability of the commit is unknown.
            self._rollback()
            raise self._placed(OutcomeUnknown(f"the commit failed: {error}")) from error
        self._lock.head = self._revision
        self._committed = self._revision, self._hash
        self._dirty = True
        self._causes.update(cause.id for cause in work.causes)
        return answers

    def _placed(self, error: L) -> L:
        error.place = self._one("PRAGMA database_list")[2]
        return error

    def _rollback(self) -> None:
        self._version = -1  # the cache includes the changes of this transaction
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def _look(self, group: Sequence[PendingAppend]) -> None:
        """Clear the cache if another connection has written, and load the rows of the group's object keys."""
        places = self._unknown(group)
        version = self._find(places)
        if version == self._version and len(self._states) + len(self._causes) < _REMEMBERED:
            return
        self._version = version
        self._states.clear()
        self._causes.clear()
        self._revision, self._hash = self._one("SELECT revision, hash FROM log_head WHERE id = 1")
        self._require_our_past()
        self._newest_object = self._one("SELECT coalesce(max(id), 0) FROM object")[0]
        self._find(self._unknown(group))

    def _unknown(self, group: Sequence[PendingAppend]) -> list[Place]:
        """Return the object keys of a group that are not cached."""
        places = [place for pending in group for place in pending.places if place not in self._states]
        for pending in group:
            if pending.within:
                places += [place for place in pending.within.values() if place not in self._states]
        return places

    def _find(self, places: Sequence[Place]) -> int:
        """Load the rows of the given object keys into the cache; return `data_version`.

        If the list of keys is short, one statement loads the rows and `data_version`.
        """
        version, at = 0, 0
        for run in _runs(len(places)) or (0,):
            values = list(chain.from_iterable(places[at : at + run]))
            at += run
            for resource, namespace, name, id_, head, deleted, uid, created in self._connection.execute(
                _lookup_statement(run), values
            ):
                if resource is None:
                    version = id_
                else:
                    place = (resource, namespace, name)
                    self._states[place] = _State(place, id_, Slot(head, not deleted), uid, created)
        return version

    def _require_our_past(self) -> None:
        """Raise `LogCorrupt` if the log no longer contains this process's last commit.

        If compaction has removed the event of the commit, the hashes cannot be compared, and the log is accepted.
        """
        if self._committed is None or not self._committed[0]:
            return
        revision, chain = self._committed
        found = self._one("SELECT hash FROM event WHERE revision = ?", revision)
        if self._revision < revision or (found is not None and found[0] != chain):
            raise LogCorrupt(
                f"revision {revision} differs from this process's copy: the log was rewritten", revision=revision
            )

    def _one(self, query: str, *parameters: Any) -> Any:
        return self._connection.execute(query, parameters).fetchone()

    def _answer(self, work: _Group, pending: PendingAppend, since: Revision | None) -> Answer:
        """Add one append to the group, or refuse it and leave the group unchanged."""
        if since is not None and (already := self._already(pending, since)):
            return already
        fence = pending.fence
        if fence and (fenced := fence_refusal(fence, self._term(work, fence.lease))):
            return fenced
        return self._refusal(pending) or self._place(work, pending)

    def _already(self, pending: PendingAppend, since: Revision) -> list[Event]:
        """Return the events of an append if an earlier try has committed the append."""
        rows = self._connection.execute(
            "SELECT revision, previous, hash FROM event WHERE revision > ? AND append_id = ? ORDER BY revision",
            (since, pending.stamp.append_id),
        ).fetchall()
        return [pending.event(index, *row) for index, row in enumerate(rows)]

    def _term(self, work: _Group, lease: str) -> int:
        if lease in work.terms:
            return work.terms[lease]
        row = self._one("SELECT term FROM lease_term WHERE lease = ?", lease)
        return row[0] if row else 0

    def _refusal(self, pending: PendingAppend) -> ApiError | None:
        """Check all proposals of an append before any of them is added.

        The check of a proposal takes the effects of the proposals before it into account.
        """
        if len(pending.proposals) == 1:
            state = self._states.get(pending.places[0])
            refused = refusal(pending.proposals[0], state.slot if state else EMPTY)
            if refused is None and pending.within:
                return namespace_refusal(pending.proposals[0], self._slot(pending.within[0]))
            return refused
        touched: dict[Place, Slot] = {}
        revision = self._revision
        for number, (place, proposal) in enumerate(zip(pending.places, pending.proposals, strict=True)):
            if refused := refusal(proposal, touched.get(place) or self._slot(place)):
                return refused
            namespace = pending.within.get(number)
            if namespace and (refused := namespace_refusal(proposal, touched.get(namespace) or self._slot(namespace))):
                return refused
            revision += 1
            touched[place] = Slot(revision, proposal.type is not EventType.DELETED)
        return None

    def _slot(self, place: Place) -> Slot:
        state = self._states.get(place)
        return state.slot if state else EMPTY

    def _place(self, work: _Group, pending: PendingAppend) -> list[Event]:
        """Add an accepted append to the group and return its events."""
        events = []
        revision, parent = self._revision, self._hash
        for index, place in enumerate(pending.places):
            state = self._states.get(place) or self._new_state(place)
            previous = state.slot.head
            revision += 1
            parent = link(parent, revision, previous, pending.digests[index])
            event = pending.event(index, revision, previous, parent)
            state.move(pending.proposals[index], revision)
            work.changed[state.id] = state
            body = event.object.body if pending.bodies is None else pending.bodies[index]
            work.events += _row(event, state.id, body)
            events.append(event)
        self._revision, self._hash = revision, parent
        if pending.fence and pending.fence.takeover:
            work.terms[pending.fence.lease] = pending.fence.term
        if pending.cause:
            work.causes.append(pending.cause)
        if pending.trace:
            work.traces += (pending.stamp.append_id, pending.trace)
        return events

    def _new_state(self, place: Place) -> _State:
        self._newest_object += 1
        state = self._states[place] = _State(place, self._newest_object, EMPTY, "", 0)
        return state

    def _write(self, work: _Group, outcomes: Sequence[Finished]) -> None:
        if work.events:
            self._insert(
                "object (id, resource, namespace, name, uid, create_revision, head_revision, deleted)",
                [value for state in work.changed.values() for value in state.row()],
                " ON CONFLICT (id) DO UPDATE SET uid = excluded.uid, create_revision = excluded.create_revision,"
                " head_revision = excluded.head_revision, deleted = excluded.deleted",
            )
            self._insert(
                "event (revision, object_id, previous, type, recorded_at, actor, user_agent, term, reconcile_id,"
                " append_id, hash, body)",
                work.events,
            )
            self._connection.execute(
                "UPDATE log_head SET revision = ?, hash = ? WHERE id = 1", (self._revision, self._hash)
            )
        if work.causes:
            self._write_causes(work.causes)
        if work.traces:
            self._insert("append_trace (append_id, trace_context)", work.traces)
        if work.terms:
            newer = " ON CONFLICT (lease) DO UPDATE SET term = excluded.term"
            self._insert("lease_term (lease, term)", list(chain.from_iterable(work.terms.items())), newer)
        if outcomes:
            self._write_finished(outcomes)

    def _write_finished(self, finished: Sequence[Finished]) -> None:
        outcomes = failure_rows.outcomes_of(finished)
        self._connection.executemany(
            "UPDATE reconcile SET duration = ?, outcome = ?, message = ? WHERE id = ?",
            [(outcome.duration, outcome.result, outcome.message, reconcile) for reconcile, outcome in outcomes],
        )
        if failures := failure_rows.failures_of(finished):
            self._connection.executemany(failure_rows.UPSERT, failures)
            self._connection.execute(failure_rows.PRUNE)

    def _write_causes(self, causes: Sequence[Cause]) -> None:
        new = (cause for cause in reversed(causes) if cause.id not in self._causes)
        distinct = {cause.id: cause for cause in new}.values()  # the first cause with each id
        rows = [(c.id, c.controller, c.key, c.attempt, c.started_at, "") for c in distinct]
        triggers = [(cause.id, revision) for cause in distinct for revision in cause.triggers]
        known = " ON CONFLICT DO NOTHING"
        table = "reconcile (id, controller, key, attempt, started_at, message)"
        self._insert(table, list(chain.from_iterable(rows)), known)
        self._insert("reconcile_trigger (reconcile_id, revision)", list(chain.from_iterable(triggers)), known)

    def _insert(self, table: str, values: Sequence[Any], conflict: str = "") -> None:
        """Insert rows; `values` contains the values of all rows, one after the other."""
        columns = table.count(",") + 1
        every = len(values) // columns
        if every <= _USUAL:
            if every:
                self._connection.execute(_insert_statement(table, columns, every, conflict), values)
            return
        at = 0
        for rows in _runs(every):
            self._connection.execute(
                _insert_statement(table, columns, rows, conflict), values[at : at + rows * columns]
            )
            at += rows * columns

    def idle(self) -> None:
        """Checkpoint the WAL while no process writes, so that the WAL file is reused from the start.

        The checkpoint does not wait for readers, because a frozen reader would then block all writers. Raises
        `LogUnavailable` if the disk is full or if another process holds the write lock for too long.
        """
        if not self._dirty:
            return
        try:
            with self._lock, self._without_patience():
                busy, _, _ = self._one("PRAGMA wal_checkpoint(RESTART)")
        except sqlite3.OperationalError as error:
            raise self._placed(LogUnavailable(f"the database cannot be compacted: {error}")) from error
        self._dirty = bool(busy)

    @contextmanager
    def _without_patience(self) -> Iterator[None]:
        usual = self._one("PRAGMA busy_timeout")[0]
        self._connection.execute("PRAGMA busy_timeout = 0")
        try:
            yield
        finally:
            self._connection.execute(f"PRAGMA busy_timeout = {usual}")

    def close(self) -> None:
        """Close the connection with the lock held, because closing a database's last connection checkpoints the WAL.

        If another process holds the lock for too long, close the connection without the lock.
        """
        with ExitStack() as stack:
            stack.callback(self._lock.close)
            with suppress(LogUnavailable):
                stack.enter_context(self._lock)
            stack.callback(self._connection.close)


@lru_cache(maxsize=32)
def _lookup_statement(places: int) -> str:
    """Return the query for the rows of `places` object keys.

    An extra row without a resource contains the `data_version`.
    """
    version = "SELECT NULL, NULL, NULL, data_version, 0, 0, NULL, 0 FROM pragma_data_version"
    if not places:
        return version
    return (
        f"WITH wanted (resource, namespace, name) AS (VALUES {', '.join(['(?, ?, ?)'] * places)})"
        f" {version} UNION ALL"
        " SELECT object.resource, object.namespace, object.name, id, head_revision, deleted, uid, create_revision"
        " FROM wanted CROSS JOIN object USING (resource, namespace, name)"
    )


@lru_cache(maxsize=128)
def _insert_statement(table: str, columns: int, rows: int, conflict: str) -> str:
    row = f"({', '.join('?' * columns)})"
    return f"INSERT INTO {table} VALUES {', '.join([row] * rows)}{conflict}"


def _runs(rows: int) -> list[int]:
    """Split a number of rows into chunks; there are only few sizes of chunks, so that few statements are prepared."""
    runs = []
    while rows:
        run = rows if rows <= _USUAL else min(_LARGEST_INSERT, 1 << (rows.bit_length() - 1))
        runs.append(run)
        rows -= run
    return runs


def _row(event: Event, object_id: int, body: bytes) -> tuple[Any, ...]:
    return (
        event.revision,
        object_id,
        event.previous,
        event.type.value,
        event.recorded_at,
        event.actor,
        event.user_agent,
        event.term,
        event.reconcile,
        event.append_id,
        event.hash,
        body.decode(),
    )
