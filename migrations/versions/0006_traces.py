"""Record the trace context of appends, so that reconciles in any process can continue a trace."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Create the table of trace contexts."""
    op.create_table(
        "append_trace",
        sa.Column("append_id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("trace_context", sa.Text, nullable=False),
    )
