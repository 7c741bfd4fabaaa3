"""Create the event log: head, objects, events, terms, reconciles; on PostgreSQL, also the append function."""

from pathlib import Path

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Create everything."""
    op.create_table(
        "log_epoch",
        sa.Column("uuid", sa.Text, primary_key=True),
        sa.Column("after_revision", sa.BigInteger, nullable=False),
        sa.Column("parent_hash", sa.LargeBinary, nullable=False),
        sa.Column("started_at", sa.BigInteger, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
    )
    op.create_table(
        "log_head",
        sa.Column("id", sa.SmallInteger, primary_key=True, autoincrement=False),
        sa.Column("uuid", sa.Text, nullable=False),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.Column("hash", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "object",
        sa.Column("id", _ID, primary_key=True, autoincrement=False),
        sa.Column("resource", sa.Text, nullable=False),
        sa.Column("namespace", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("uid", sa.Text, nullable=False),
        sa.Column("create_revision", sa.BigInteger, nullable=False),
        sa.Column("head_revision", sa.BigInteger, nullable=False),
        sa.Column("deleted", sa.Boolean, nullable=False),
        sa.UniqueConstraint("resource", "namespace", "name", name="object_place"),
    )
    op.create_table(
        "event",
        sa.Column("revision", _ID, primary_key=True, autoincrement=False),
        sa.Column("object_id", sa.BigInteger, nullable=False),
        sa.Column("previous", sa.BigInteger, nullable=False),
        sa.Column("type", sa.SmallInteger, nullable=False),
        sa.Column("recorded_at", sa.BigInteger, nullable=False),
        sa.Column("actor", sa.Text, nullable=False),
        sa.Column("user_agent", sa.Text, nullable=False),
        sa.Column("term", sa.BigInteger, nullable=False),
        sa.Column("reconcile_id", sa.BigInteger, nullable=False),
        sa.Column("append_id", sa.BigInteger, nullable=False),
        sa.Column("parent_hash", sa.LargeBinary, nullable=True),
        sa.Column("hash", sa.LargeBinary, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.UniqueConstraint("object_id", "previous", name="event_history"),
    )
    op.create_index(
        "event_reconcile",
        "event",
        ["reconcile_id"],
        sqlite_where=sa.text("reconcile_id != 0"),
        postgresql_where=sa.text("reconcile_id != 0"),
    )
    op.create_table(
        "lease_term",
        sa.Column("lease", sa.Text, primary_key=True),
        sa.Column("term", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "compaction_floor",
        sa.Column("resource", sa.Text, primary_key=True),
        sa.Column("floor", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "reconcile",
        sa.Column("id", _ID, primary_key=True, autoincrement=False),
        sa.Column("controller", sa.Text, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("started_at", sa.BigInteger, nullable=False),
        sa.Column("duration", sa.BigInteger, nullable=True),
        sa.Column("outcome", sa.Text, nullable=True),
        sa.Column("message", sa.Text, nullable=False),
    )
    op.create_table(
        "reconcile_trigger",
        sa.Column("reconcile_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("revision", sa.BigInteger, primary_key=True, autoincrement=False),
        sqlite_with_rowid=False,
    )
    op.create_index("reconcile_trigger_revision", "reconcile_trigger", ["revision"])
    if op.get_bind().dialect.name == "postgresql":
        statement = (Path(__file__).parents[1] / "postgres" / "append.sql").read_text()
        op.get_bind().exec_driver_sql(statement)
