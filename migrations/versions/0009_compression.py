"""Compress the bodies of events with LZ4 where PostgreSQL supports it, because the default (pglz) is much slower.

PostgreSQL compresses a body while it holds the lock of the log's head, so no other append can run meanwhile.
"""

from alembic import op

revision = "0009"
down_revision = "0008"

_SUPPORTED = "SELECT 'lz4' = ANY (enumvals) FROM pg_settings WHERE name = 'default_toast_compression'"


def upgrade() -> None:
    """Change the compression of new bodies; stored bodies stay as they are."""
    connection = op.get_bind()
    if connection.dialect.name == "postgresql" and connection.exec_driver_sql(_SUPPORTED).scalar():
        connection.exec_driver_sql("ALTER TABLE event ALTER COLUMN body SET COMPRESSION lz4")
