"""Record the oldest schema version that a ctrlmgr must know to use this database."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Create the table with its row. A later migration changes the row only if older servers cannot use its schema."""
    table = op.create_table("schema_support", sa.Column("oldest", sa.Text, primary_key=True))
    op.bulk_insert(table, [{"oldest": revision}])
