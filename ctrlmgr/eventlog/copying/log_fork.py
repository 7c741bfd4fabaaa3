"""Forks a log: creates a new log that is a copy of another log up to a revision, for experiments.

Guarantees:
- Up to the fork's revision, both logs contain the same states, histories, causes and leader terms, with the same
  hashes. After the fork's revision, the new log continues as a new incarnation with its own UUID.
- The log that is forked is only read. The new log must be empty. One transaction fills the new log, so it is empty
  after a failed fork.
- The fork contains only states that the log recorded. If all resources were compacted beyond the fork's revision,
  `fork` raises `Expired`. If only one resource was compacted beyond the revision, the fork omits the objects whose
  state is lost.
"""

from __future__ import annotations

from random import Random
from typing import Any

from sqlalchemy import Connection, select, update
from sqlalchemy.exc import DBAPIError

from ctrlmgr.api.resource import Revision
from ctrlmgr.clock import Clock
from ctrlmgr.errors import LogUnavailable, SettingsError
from ctrlmgr.eventlog.copying.copied_tables import Read, TableCopy, lock_for_writing, open_engine, require_same_schema
from ctrlmgr.eventlog.database_schema import new_uuid
from ctrlmgr.eventlog.event import Head
from ctrlmgr.eventlog.hash_chain import GENESIS
from ctrlmgr.eventlog.log_tables import data_key, log_epoch, log_head


def fork(read: Read, url: str, at: Revision, *, clock: Clock, random: Random) -> Head:
    """Copy the log that `read` queries, up to revision `at`, into the empty, migrated log at `url`; return its head.

    Raises `Expired` if compaction has passed `at`, `SettingsError` if the log at `url` is not empty, and
    `LogUnavailable` if a database cannot be used. Raises `SchemaOutdated` if the log that `read` queries has a newer
    schema than this ctrlmgr.
    """
    require_same_schema(read)
    engine = open_engine(url)
    try:
        with engine.connect() as connection:
            lock_for_writing(connection)
            head = _copy(connection, read, at, clock.now(), new_uuid(random))
            connection.commit()
    except DBAPIError as error:
        raise LogUnavailable(f"the fork cannot be written: {error.orig}") from error
    finally:
        engine.dispose()
    return head


def _copy(connection: Connection, read: Read, at: Revision, now: int, uuid: str) -> Head:
    own = connection.execute(select(log_head).with_for_update()).one()
    if own.revision:
        raise SettingsError(f"the new log is not empty: it is already at revision {own.revision}")
    copied = TableCopy(read, connection, at)
    newest, after = GENESIS, 0
    while page := copied.copy_page(after):
        after, newest, _ = page
    copied.copy_objects()
    copied.copy_reconciles()
    copied.copy_terms()
    copied.copy_floors()
    copied.copy_imports()
    copied.copy_whole([data_key])
    begun = {"after_revision": at, "parent_hash": newest, "started_at": now}
    return _begin_epoch(connection, copied.epochs(at - 1), own.uuid, uuid, begun)


def _begin_epoch(
    connection: Connection, past: list[dict[str, Any]], own: str, other: str, begun: dict[str, Any]
) -> Head:
    """Insert the incarnations of the other log, then the new incarnation of the fork.

    The new log keeps its own UUID, unless both logs have the same UUID because they began as copies of one empty
    database.
    """
    uuid = other if any(row["uuid"] == own for row in past) else own
    origin = past[-1]["uuid"] if past else "an empty log"
    head = Head(uuid, begun["after_revision"], begun["parent_hash"])
    reason = f"forked from {origin} at revision {head.revision}"
    connection.execute(log_epoch.delete())
    connection.execute(log_epoch.insert(), [*past, {"uuid": uuid, **begun, "reason": reason}])
    connection.execute(update(log_head).values(uuid=uuid, revision=head.revision, hash=head.hash))
    return head
