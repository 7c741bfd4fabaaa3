"""The tables of the event log, for the SQL logs and for debugging with SQL.

Migrations create the tables (`migrations/versions`); a test compares them with this module. In all tables, times are
microseconds since 1970 (UTC). Bodies are JSON text, so that the database's JSON functions can read them and writes stay
fast.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
)

metadata = MetaData()

# SQLite assigns row numbers only to a key of the type INTEGER.
_Id = BigInteger().with_variant(Integer, "sqlite")

log_epoch = Table(
    "log_epoch",
    metadata,
    # An incarnation of the log. The first incarnation starts when the log is created. Each later incarnation starts
    # when the log is restored from an older copy.
    Column("uuid", Text, primary_key=True),
    Column("after_revision", BigInteger, nullable=False),  # the incarnation's events follow this revision
    Column("parent_hash", LargeBinary, nullable=False),  # the hash chain of the incarnation starts from this hash
    Column("started_at", BigInteger, nullable=False),
    Column("reason", Text, nullable=False),
)

log_head = Table(
    "log_head",
    metadata,
    # The table has one row, with id 1. Every append locks this row.
    Column("id", SmallInteger, primary_key=True, autoincrement=False),
    Column("uuid", Text, nullable=False),
    Column("revision", BigInteger, nullable=False),
    Column("hash", LargeBinary, nullable=False),
)

object_ = Table(
    "object",
    metadata,
    # The resource, namespace and name of an object. The row remains if the object is deleted, and is used again if the
    # object is created again.
    Column("id", _Id, primary_key=True, autoincrement=False),
    Column("resource", Text, nullable=False),
    Column("namespace", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("uid", Text, nullable=False),
    Column("create_revision", BigInteger, nullable=False),
    Column("head_revision", BigInteger, nullable=False),
    Column("deleted", Boolean, nullable=False),
    UniqueConstraint("resource", "namespace", "name", name="object_place"),
)

event = Table(
    "event",
    metadata,
    Column("revision", _Id, primary_key=True, autoincrement=False),
    Column("object_id", BigInteger, nullable=False),
    Column("previous", BigInteger, nullable=False),
    Column("type", SmallInteger, nullable=False),  # 1 ADDED, 2 MODIFIED, 3 DELETED
    Column("recorded_at", BigInteger, nullable=False),
    Column("actor", Text, nullable=False),
    Column("user_agent", Text, nullable=False),
    Column("term", BigInteger, nullable=False),
    Column("reconcile_id", BigInteger, nullable=False),
    Column("append_id", BigInteger, nullable=False),
    # The hash of the preceding event; set only if compaction has removed the preceding event.
    Column("parent_hash", LargeBinary, nullable=True),
    Column("hash", LargeBinary, nullable=False),
    Column("body", Text, nullable=False),
    # The index on objects serves optimistic concurrency checks, and reads of one object's history in order.
    UniqueConstraint("object_id", "previous", name="event_history"),
)
# The first index finds the events of a reconcile, the second the duration and events of a leader's term. The indexes on
# reconciles and terms are partial (`!= 0`), so they do not slow down writes without a reconcile and term. Only the
# migrations contain this condition, because in this module, it would load the dialects of both databases.
Index("event_reconcile", event.c.reconcile_id)
Index("event_term", event.c.term, event.c.revision)

lease_term = Table(
    "lease_term",
    metadata,
    Column("lease", Text, primary_key=True),
    Column("term", BigInteger, nullable=False),
)

compaction_floor = Table(
    "compaction_floor",
    metadata,
    Column("resource", Text, primary_key=True),  # "" for a compaction of all resources
    Column("floor", BigInteger, nullable=False),
)

log_import = Table(
    "log_import",
    metadata,
    # A range of the log whose revisions another server assigned. Revisions have gaps only within such ranges.
    Column("after_revision", BigInteger, primary_key=True, autoincrement=False),
    Column("last_revision", BigInteger, nullable=False),
)

reconcile = Table(
    "reconcile",
    metadata,
    Column("id", _Id, primary_key=True, autoincrement=False),
    Column("controller", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("started_at", BigInteger, nullable=False),
    # null while the reconcile runs, or if its process died during the reconcile
    Column("duration", BigInteger, nullable=True),
    Column("outcome", Text, nullable=True),
    Column("message", Text, nullable=False),
)

failure = Table(
    "failure",
    metadata,
    # One row contains the failed reconciles of a key, from the first failure to the next success. A retry of a failing
    # key updates the key's row.
    Column("controller", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("since", BigInteger, primary_key=True, autoincrement=False),
    Column("last_at", BigInteger, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("kind", Text, nullable=False),
    Column("error", Text, nullable=False),
    Column("traceback", Text, nullable=False),
    # null if the controller retries only after an object has changed
    Column("next_retry_at", BigInteger, nullable=True),
    Column("ended_at", BigInteger, nullable=True),  # null until a reconcile succeeds
    Index("failure_last", "last_at"),
)

append_trace = Table(
    "append_trace",
    metadata,
    # The trace context (W3C traceparent) in which an append was made; only appends while tracing is on have a row. The
    # hash chain does not include this table, because a trace is not part of the history.
    Column("append_id", BigInteger, primary_key=True, autoincrement=False),
    Column("trace_context", Text, nullable=False),
)

data_key = Table(
    "data_key",
    metadata,
    # A data key, which encrypts payloads of one resource. A key of the EncryptionConfiguration encrypts the data key
    # itself.
    Column("id", Text, primary_key=True),
    Column("resource", Text, nullable=False),
    Column("wrapped", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("wrapped_at", BigInteger, nullable=False),
)

schema_support = Table(
    "schema_support",
    metadata,
    # The table has one row: the oldest schema version that a ctrlmgr must know to use this database. A migration that
    # only adds tables, columns and indexes leaves the row unchanged.
    Column("oldest", Text, primary_key=True),
)

reconcile_trigger = Table(
    "reconcile_trigger",
    metadata,
    # All changes that triggered one reconcile.
    Column("reconcile_id", BigInteger, primary_key=True, autoincrement=False),
    Column("revision", BigInteger, primary_key=True, autoincrement=False),
    Index("reconcile_trigger_revision", "revision"),
    sqlite_with_rowid=False,
)
