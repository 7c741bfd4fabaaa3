"""Refuse appends if a Namespace has changed: PostgreSQL's append function gets these preconditions."""

from pathlib import Path

from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Replace the append function."""
    if op.get_bind().dialect.name == "postgresql":
        op.get_bind().exec_driver_sql("DROP FUNCTION log_append")
        statement = (Path(__file__).parents[1] / "postgres" / "append.sql").read_text()
        op.get_bind().exec_driver_sql(statement)
