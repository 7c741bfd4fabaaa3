"""Keep the data keys of encrypted payloads, each encrypted by a key of the EncryptionConfiguration."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Create the table of data keys."""
    op.create_table(
        "data_key",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("resource", sa.Text, nullable=False),
        sa.Column("wrapped", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("wrapped_at", sa.BigInteger, nullable=False),
    )
