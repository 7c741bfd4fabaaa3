"""Alembic's entry point, which runs the migrations on the connection that `ctrlmgr.eventlog.database_schema` passes."""

from alembic import context

from ctrlmgr.eventlog.log_tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
