"""Copies a whole log into another database, with its identity: the same UUID, revisions, hashes and terms.

Guarantees:
- The log that is copied is only read, and a server may write to it meanwhile. The copy ends at a revision that the log
  had during the copy.
- Each page of events is one transaction. If a copy is stopped at any point, the next call continues with the next page.
- While a copy is unfinished, `alembic_version` contains `database_schema.UNFINISHED` instead of a schema version, so
  no server, command or migration uses the database.
- A finished copy can be updated with the newer events of the same log, unless the copy was written to.
- If a compaction removes events during the copy, or between two copies, the copy starts again with the first event. The
  copy detects this by comparing its floors with the log's floors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, Table, func, select, text, update
from sqlalchemy.exc import DBAPIError

from ctrlmgr.errors import LogUnavailable, SettingsError
from ctrlmgr.eventlog.copying.copied_tables import Read, TableCopy, lock_for_writing, open_engine, require_same_schema
from ctrlmgr.eventlog.database_schema import LATEST, UNFINISHED, require_version, version
from ctrlmgr.eventlog.event import Head
from ctrlmgr.eventlog.hash_chain import GENESIS
from ctrlmgr.eventlog.log_tables import (
    compaction_floor,
    event,
    log_epoch,
    log_head,
    log_import,
    metadata,
    object_,
    reconcile,
    reconcile_trigger,
    schema_support,
)

_Begin = Callable[[], AbstractContextManager[Connection]]
_ATTEMPTS = 5
_UP_TO_A_REVISION = (object_, log_import, reconcile, reconcile_trigger)
_KEPT = (event, log_head, log_epoch, compaction_floor, schema_support, *_UP_TO_A_REVISION)
_OTHERS = [table for table in metadata.sorted_tables if table not in _KEPT]
"""The tables that are copied as a whole: all tables of the schema that are not copied in another way."""


class Copied(NamedTuple):
    """A finished copy: its head, and the number of events that were copied by this call."""

    head: Head
    events: int


def copy(read: Read, url: str, *, progress: Callable[[int], None] = lambda events: None) -> Copied:
    """Copy the log that `read` queries into the migrated database at `url`, or continue an earlier copy there.

    Calls `progress` with the number of events that the copy contains, after each page. Raises `SettingsError` if the
    database holds another log or was written to, and `LogUnavailable` if a database cannot be used or compactions
    interrupt the copy again and again. Raises `SchemaOutdated` if the log has a newer schema than this ctrlmgr.
    """
    require_same_schema(read)
    engine = open_engine(url)

    @contextmanager
    def begin() -> Iterator[Connection]:
        with engine.connect() as connection:
            lock_for_writing(connection)
            yield connection
            connection.commit()

    try:
        for attempt in range(_ATTEMPTS):
            if copied := _attempt(read, begin, progress, afresh=attempt > 0):
                return copied
    except DBAPIError as error:
        raise LogUnavailable(f"the copy cannot be written: {error.orig}") from error
    finally:
        engine.dispose()
    raise LogUnavailable("the log was compacted during the copy, again and again; run the same command later")


def _attempt(read: Read, begin: _Begin, progress: Callable[[int], None], *, afresh: bool) -> Copied | None:
    """Copy up to the log's present head; return None if a compaction removed events meanwhile.

    If `afresh` is set, copy the events that the copy already contains again.
    """
    target = _head(read)
    floors = _floors(read)
    with begin() as connection:
        total = before = _prepare(connection, read, target, floors, afresh=afresh)
    progress(total)
    while True:
        with begin() as connection:
            page = _copy_page(connection, read, target)
        if page == 0:
            break
        total += page
        progress(total)
    with begin() as connection:
        if not _finish(connection, read, target, floors):
            return None
    return Copied(target, total - before)


def _head(read: Read) -> Head:
    uuid, revision, newest = read("SELECT uuid, revision, hash FROM log_head", {})[0]
    return Head(uuid, revision, newest)


def _floors(read: Read) -> dict[str, int]:
    return {row[0]: row[1] for row in read("SELECT resource, floor FROM compaction_floor", {})}


def _prepare(connection: Connection, read: Read, target: Head, floors: dict[str, int], *, afresh: bool) -> int:
    """Mark the copy as unfinished; return the number of events that it contains and keeps."""
    found = version(connection)
    if found != UNFINISHED:
        require_version(found)
    own = connection.execute(select(log_head).with_for_update()).one()
    _require_same_log(own, read, target, unfinished=found == UNFINISHED)
    _set_version(connection, UNFINISHED)
    connection.execute(update(log_head).values(uuid=target.uuid))
    known = {row.resource: row.floor for row in connection.execute(select(compaction_floor))}
    if afresh or (own.revision and known != floors):
        connection.execute(event.delete())
        connection.execute(update(log_head).values(revision=0, hash=GENESIS))
    _replace(connection, compaction_floor, [{"resource": name, "floor": at} for name, at in floors.items()])
    return connection.execute(select(func.count()).select_from(event)).scalar_one()


def _require_same_log(own: Row[Any], read: Read, target: Head, *, unfinished: bool) -> None:
    """Raise `SettingsError` unless the database is empty or holds an earlier state of the log."""
    if unfinished and own.uuid == target.uuid:
        return  # no program can have written to it
    if unfinished or (own.revision and own.uuid != target.uuid):
        raise SettingsError(f"the database to copy to holds another log, {own.uuid}, at revision {own.revision}")
    if own.revision and bytes(own.hash) not in _hashes_at(read, own.revision):
        raise SettingsError(
            f"the log's history does not contain the last event of the copy, revision {own.revision}: the copy was "
            "written to, or compaction removed the event; copy to an empty database"
        )


def _hashes_at(read: Read, revision: int) -> list[bytes]:
    """Return the hash of the log at a revision, if it is known."""
    found = read("SELECT hash FROM event WHERE revision = :at", {"at": revision})
    begun = read("SELECT parent_hash FROM log_epoch WHERE after_revision = :at", {"at": revision})
    return [bytes(row[0]) for row in (*found, *begun)]


def _copy_page(connection: Connection, read: Read, target: Head) -> int:
    """Copy the page after the copy's newest event; return its number of events."""
    own = connection.execute(select(log_head).with_for_update()).one()
    page = TableCopy(read, connection, target.revision).copy_page(own.revision)
    if page is None:
        return 0
    revision, newest, events = page
    connection.execute(update(log_head).values(revision=revision, hash=newest))
    return events


def _finish(connection: Connection, read: Read, target: Head, floors: dict[str, int]) -> bool:
    """Write all other tables and the schema's version; return False if a compaction removed events meanwhile."""
    copied = TableCopy(read, connection, target.revision)
    copied.see_copied()
    for table in (*_UP_TO_A_REVISION, *_OTHERS):
        connection.execute(table.delete())
    if copied.copy_objects():
        connection.rollback()
        return False
    copied.copy_imports()
    copied.copy_reconciles(without_events=True)
    copied.copy_whole(_OTHERS)
    _replace(connection, log_epoch, copied.epochs(target.revision))
    if _floors(read) != floors:
        connection.rollback()
        return False
    connection.execute(update(log_head).values(revision=target.revision, hash=target.hash))
    _set_version(connection, LATEST)
    return True


def _replace(connection: Connection, table: Table, rows: list[dict[str, Any]]) -> None:
    connection.execute(table.delete())
    if rows:
        connection.execute(table.insert(), rows)


def _set_version(connection: Connection, value: str) -> None:
    connection.execute(text("UPDATE alembic_version SET version_num = :value"), {"value": value})
