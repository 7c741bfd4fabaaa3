"""Record the ranges of revisions that were imported, in which gaps are correct."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Create the table of imports."""
    op.create_table(
        "log_import",
        sa.Column("after_revision", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("last_revision", sa.BigInteger, nullable=False),
    )
