"""Create the views for queries, and the index for the terms of leaders."""

import sqlalchemy as sa
from alembic import op

from ctrlmgr.eventlog import sql_views

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Create them."""
    op.create_index(
        "event_term",
        "event",
        ["term", "revision"],
        sqlite_where=sa.text("term != 0"),
        postgresql_where=sa.text("term != 0"),
    )
    connection = op.get_bind()
    for statement in sql_views.statements(connection.dialect.name):
        connection.exec_driver_sql(statement)
