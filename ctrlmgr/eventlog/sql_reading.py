"""Reads a log in an SQL database; `sqllog` adds the writing methods.

Guarantees: reads return objects as they were written. If the log stores objects encrypted, reads decrypt them with the
given keys.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import BigInteger, Connection, Engine, Row, Select, bindparam, case, func, select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.elements import ColumnElement
from sqlalchemy.sql.selectable import FromClause

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.errors import BadRequest, Expired, LogClosed, LogCorrupt, LogUnavailable, SchemaOutdated
from ctrlmgr.eventlog import import_rows, read_rows
from ctrlmgr.eventlog.event import Event, EventType, Failure, Head, Reconcile, Snapshot
from ctrlmgr.eventlog.imports import ImportedRange
from ctrlmgr.eventlog.log_tables import event, log_epoch, object_
from ctrlmgr.eventlog.read_rows import as_event, as_object, given, narrowed, read_floor, read_head
from ctrlmgr.eventlog.verification import Epoch, Stored

if TYPE_CHECKING:  # the cryptography package is imported only if payloads are encrypted
    from ctrlmgr.eventlog.encrypted.payload_codec import PayloadCodec

_SCAN_CHUNK = 1000
_IS_THE_PLACE = tuple(object_.c[part] == bindparam(part) for part in ("resource", "namespace", "name"))


class SQLReading(ABC):
    """The reading methods of an `EventLog` in an SQL database."""

    def __init__(self, engine: Engine) -> None:
        """Read through connections of `engine`."""
        self._engine = engine
        self._closed = False
        self.codec: PayloadCodec | None = None
        """Encrypts and decrypts payloads; None if no EncryptionConfiguration is given."""
        # Without encryption, rows are converted directly, so that reads cost no more.
        self._as_event: Callable[[Row[Any]], Event] = as_event
        self._as_object: Callable[[Row[Any]], Object] = as_object

    def _decrypt_with(self, codec: PayloadCodec) -> None:
        """Use `codec` from now on; must be called before the first read."""
        self.codec = codec
        self._as_event = self._decrypted_event
        self._as_object = self._decrypted_object

    # Dialect-specific methods.

    @abstractmethod
    def _body(self, events: FromClause) -> ColumnElement[bytes]:
        """Return the body column of `events` (the event table or an alias of it) as bytes."""

    @abstractmethod
    def _nearest(self, at: ColumnElement[int]) -> tuple[FromClause, ColumnElement[bool]]:
        """Return a subquery for an object's event with the greatest `previous` up to `at`, and the join condition."""

    def _since(self, revision: Revision) -> tuple[ColumnElement[bool], ...]:
        """Return extra conditions for events after `revision` that help the database choose its index."""
        return ()

    @abstractmethod
    def _consistent_read(self) -> AbstractContextManager[Connection]:
        """Open a transaction in which all statements see the same state of the database."""

    # Reading.

    def imports(self) -> Sequence[ImportedRange]:
        """Return the imported ranges of revisions, oldest first."""
        with self._read() as connection:
            return import_rows.stretches(connection)

    def failures(self) -> Sequence[Failure]:
        """Return the recorded failures, the most recent first."""
        with self._read() as connection:
            failures = read_rows.read_failures(connection)
        return [self.codec.shown_failure(each) for each in failures] if self.codec else failures

    def traces(self, revisions: Collection[Revision]) -> Mapping[Revision, str]:
        """Return the trace contexts of events whose appends were traced."""
        with self._read() as connection:
            return read_rows.read_traces(connection, revisions)

    @contextmanager
    def _read(self) -> Iterator[Connection]:
        """Open a connection for single statements; database errors are raised as log errors."""
        if self._closed:
            raise LogClosed
        try:
            with self._engine.connect() as connection:
                yield connection
        except DBAPIError as error:
            raise self._translated(error) from error

    def _translated(self, error: DBAPIError) -> LogUnavailable | SchemaOutdated | LogCorrupt:
        return read_rows.read_error(error)

    @cached_property
    def _events(self) -> Select[Any]:
        """Select events with all columns that decryption needs."""
        return self._stored_events.add_columns(*self._place_columns)

    @cached_property
    def _place_columns(self) -> tuple[ColumnElement[str], ...]:
        """Return the columns of the object's key, which decryption needs; without encryption, return no columns."""
        return (object_.c.namespace, object_.c.name) if self.codec else ()

    def _decrypted_event(self, row: Row[Any]) -> Event:
        found = as_event(row)
        return msgspec.structs.replace(found, object=self._decrypted_object(row))

    def _decrypted_object(self, row: Row[Any]) -> Object:
        assert self.codec is not None
        body = self.codec.plain((row.resource, row.namespace, row.name), row.body)
        return Object(Resource.parse(row.resource), body, row.revision)

    @cached_property
    def _stored_events(self) -> Select[Any]:
        """Select events with their resource; `as_event` expects this column order."""
        return select(
            event.c.revision,
            event.c.previous,
            event.c.type,
            event.c.recorded_at,
            event.c.actor,
            event.c.user_agent,
            event.c.term,
            event.c.reconcile_id,
            event.c.append_id,
            event.c.hash,
            self._body(event).label("body"),
            object_.c.resource,
        ).join_from(event, object_, object_.c.id == event.c.object_id)

    def events_after(
        self, revision: Revision, *, resource: Resource | None = None, limit: int = 500
    ) -> Sequence[Event]:
        """Return up to `limit` events after `revision`."""
        query = self._events.where(event.c.revision > revision).order_by(event.c.revision).limit(limit)
        if resource is not None:
            query = query.where(object_.c.resource == str(resource), *self._since(revision))
        with self._read() as connection:
            rows = connection.execute(query).all()
            # Compaction raises the floor before it deletes events. Therefore, if rows were missing, the floor is
            # already raised.
            self._refuse_expired(connection, revision, *given(resource))
        return [self._as_event(row) for row in rows]

    def _refuse_expired(self, connection: Connection, requested: Revision, *resources: Resource) -> None:
        floor = read_floor(connection, *resources)
        if requested < floor:
            raise Expired(requested, floor)

    def snapshot(
        self, resource: Resource | None = None, *, namespace: str | None = None, at: Revision | None = None
    ) -> Snapshot:
        """Return the objects that exist now, or existed at revision `at`."""
        with self._consistent_read() as connection:
            head = read_head(connection).revision
            self._refuse_unreadable(connection, at, head, *given(resource))
            query = self._states_now if at is None else self._states_then
            if resource is not None:
                query = query.where(object_.c.resource == str(resource))
            if namespace is not None:
                query = query.where(object_.c.namespace == namespace)
            query = query.order_by(object_.c.resource, object_.c.namespace, object_.c.name)
            objects = [self._as_object(row) for row in connection.execute(query, {"at": at})]
        return Snapshot(head if at is None else at, objects)

    def snapshots(self, resources: Collection[Resource], *, at: Revision) -> Mapping[Resource, Snapshot]:
        """Return a snapshot of each of `resources` at revision `at`."""
        found: dict[Resource, list[Object]] = {each: [] for each in resources}
        with self._consistent_read() as connection:
            self._refuse_unreadable(connection, at, read_head(connection).revision, *resources)
            query = self._states_then.where(object_.c.resource.in_([str(each) for each in resources]))
            query = query.order_by(object_.c.resource, object_.c.namespace, object_.c.name)
            for obj in map(self._as_object, connection.execute(query, {"at": at})):
                found[obj.resource].append(obj)
        return {resource: Snapshot(at, objects) for resource, objects in found.items()}

    def _refuse_unreadable(
        self, connection: Connection, at: Revision | None, head: Revision, *resources: Resource
    ) -> None:
        if at is None:
            return
        if at > head:
            raise BadRequest(f"revision {at} is beyond the head, {head}")
        self._refuse_expired(connection, at, *resources)

    def _columns(self, state: FromClause) -> Select[Any]:
        return select(state.c.revision, object_.c.resource, self._body(state).label("body"), *self._place_columns)

    # Statements are cached, because building a statement takes longer than running it and creates hundreds of objects
    # in reference cycles.

    @cached_property
    def _states_now(self) -> Select[Any]:
        """Select the current state of each existing object."""
        state = event.alias("state")
        return (
            self._columns(state)
            .join_from(object_, state, state.c.revision == object_.c.head_revision)
            .where(object_.c.deleted.is_(False))
        )

    @cached_property
    def _states_then(self) -> Select[Any]:
        """Select each object's state at revision `:at` using only index lookups.

        The query finds the object's event with the greatest `previous` not above `:at`. If the revision of that event
        is not above `:at`, the event contains the state; otherwise the event at `previous` contains it.
        """
        at = bindparam("at", type_=BigInteger)
        state = event.alias("state")
        nearest, is_its_own = self._nearest(at)
        revision = case((nearest.c.revision <= at, nearest.c.revision), else_=nearest.c.previous)
        return (
            self._columns(state)
            .join_from(object_, nearest, is_its_own)
            .join(state, state.c.revision == revision)
            .where(state.c.type != EventType.DELETED)
        )

    def get(self, resource: Resource, key: Key, *, at: Revision | None = None) -> Object | None:
        """Return one object as it is now or was at a revision."""
        place = {"resource": str(resource), "namespace": key.namespace, "name": key.name}
        if at is None:
            with self._read() as connection:
                row = connection.execute(self._state_now, place).first()
        else:
            with self._consistent_read() as connection:
                self._refuse_unreadable(connection, at, read_head(connection).revision, resource)
                row = connection.execute(self._state_then, {**place, "at": at}).first()
        return self._as_object(row) if row else None

    def states(self, resource: Resource, keys: Collection[Key], *, at: Revision) -> Mapping[Key, Object]:
        """Return the objects of `keys` that existed at revision `at`."""
        with self._consistent_read() as connection:
            self._refuse_unreadable(connection, at, read_head(connection).revision, resource)
            queries = narrowed(self._states_then.where(object_.c.resource == str(resource)), keys)
            objects = [self._as_object(row) for query in queries for row in connection.execute(query, {"at": at})]
        return {obj.key: obj for obj in objects}

    @cached_property
    def _state_now(self) -> Select[Any]:
        return self._states_now.where(*_IS_THE_PLACE)

    @cached_property
    def _state_then(self) -> Select[Any]:
        return self._states_then.where(*_IS_THE_PLACE)

    def head(self) -> Head:
        """Return the newest revision of the log and its hash."""
        with self._read() as connection:
            return read_head(connection)

    def floor(self, resource: Resource | None = None) -> Revision:
        """Return the revision up to which `resource` has been compacted; None means the highest of all resources."""
        with self._read() as connection:
            return read_floor(connection, *given(resource))

    def revision_at(self, moment: int) -> Revision:
        """Return the newest revision recorded at or before `moment`, by bisection.

        The clocks of writers differ slightly, so the timestamps of events are only nearly ascending. Therefore the
        result can be inexact by the difference between the clocks.
        """
        with self._read() as connection:
            low, high = 0, read_head(connection).revision
            while low < high:
                middle = (low + high + 1) // 2
                row = connection.execute(
                    select(event.c.revision, event.c.recorded_at)
                    .where(event.c.revision <= middle, event.c.revision > low)
                    .order_by(event.c.revision.desc())
                    .limit(1)
                ).first()
                if row is None or row.recorded_at <= moment:
                    low = middle
                else:
                    high = row.revision - 1
            newest = connection.execute(select(func.max(event.c.revision)).where(event.c.revision <= low)).scalar()
        return newest or 0

    def reconcile(self, id: int) -> Reconcile | None:
        """Return the recorded reconcile with this id; None if there is none."""
        with self._read() as connection:
            found = read_rows.read_reconcile(connection, id)
        if self.codec and found and found.outcome:
            outcome = msgspec.structs.replace(found.outcome, message=self.codec.shown(found.outcome.message))
            return Reconcile(found.cause, outcome)
        return found

    def scan(self, *, start: Revision = 1) -> Iterator[Event]:
        """Yield every retained event from `start` on."""
        for each in self.stored(start=start):
            yield self._decrypted(each) if self.codec else each.event

    def _decrypted(self, each: Stored) -> Event:
        assert self.codec is not None
        obj = each.event.object
        body = self.codec.plain((str(obj.resource), *each.key), obj.body)
        return msgspec.structs.replace(each.event, object=Object(obj.resource, body, obj.revision))

    def stored(self, *, start: Revision = 1) -> Iterator[Stored]:
        """Yield every retained event from `start` on as it is stored, with the data that `verify` needs, in chunks."""
        query = self._stored_events.add_columns(event.c.parent_hash, object_.c.namespace, object_.c.name)
        after, size = start - 1, _SCAN_CHUNK
        while True:
            chunk = query.where(event.c.revision > after).order_by(event.c.revision).limit(size)
            try:
                with self._read() as connection:
                    rows = connection.execute(chunk).all()
            except LogCorrupt as error:
                if size == 1:
                    raise LogCorrupt(
                        f"the first revision after {after} is damaged: {error}", revision=after + 1
                    ) from error
                size = 1  # read single events to find the damaged event
                continue
            for row in rows:
                yield Stored(as_event(row), Key(row.namespace, row.name), row.parent_hash)
            if not rows:
                return
            after = rows[-1].revision

    def epochs(self) -> Sequence[Epoch]:
        """Return the log's incarnations, oldest first."""
        with self._read() as connection:
            rows = connection.execute(select(log_epoch).order_by(log_epoch.c.after_revision)).all()
        return [Epoch(row.uuid, row.after_revision, row.parent_hash, row.started_at, row.reason) for row in rows]

    def hash_at(self, revision: Revision) -> bytes | None:
        """Return the chain hash of the event at a revision; None if that event is not retained."""
        with self._read() as connection:
            return connection.execute(select(event.c.hash).where(event.c.revision == revision)).scalar()
