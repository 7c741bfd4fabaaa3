from __future__ import annotations

import random
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, inspect

from ctrlmgr.eventlog import database_schema, migrate_log
from ctrlmgr.eventlog.log_tables import metadata
from ctrlmgr.eventlog.sqlite.sqlite_log import open_engine
from ctrlmgr.testing import FakeClock


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def migrated(request: pytest.FixtureRequest, tmp_path: Path) -> Engine:
    if request.param == "sqlite":
        migrate_log(f"sqlite:///{tmp_path}/log.db", clock=FakeClock(), random=random.Random(1))
        return open_engine(tmp_path / "log.db")
    from ctrlmgr.eventlog.postgres import postgres_log as postgres

    return postgres.open_engine(request.getfixturevalue("postgres_url"))


def test_migrations_create_the_tables_that_the_code_queries(migrated: Engine) -> None:
    with migrated.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []
        found = {index["name"] for index in inspect(connection).get_indexes("event")}
        assert "event_reconcile" in found
    migrated.dispose()


def test_the_newest_migration_equals_the_codes_version() -> None:
    config = Config()
    config.set_main_option("script_location", str(database_schema.migrations_folder()))
    config.set_main_option("path_separator", "os")
    assert ScriptDirectory.from_config(config).get_current_head() == database_schema.LATEST


def test_migrating_twice_changes_nothing(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/log.db"
    assert migrate_log(url, clock=FakeClock(), random=random.Random(1)) is None
    before = (tmp_path / "log.db").read_bytes()
    assert migrate_log(url, clock=FakeClock(), random=random.Random(2)) == database_schema.LATEST
    assert (tmp_path / "log.db").read_bytes() == before


def test_concurrent_starts_wait_for_the_migrating_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    patience: list[int] = []
    run = database_schema._make

    def migrate(connection: Connection) -> None:
        patience.append(connection.exec_driver_sql("PRAGMA busy_timeout").scalar_one())
        run(connection)

    monkeypatch.setattr(database_schema, "_make", migrate)
    migrate_log(f"sqlite:///{tmp_path / 'log.db'}", clock=FakeClock(), random=random.Random(1))
    assert patience == [60_000], "milliseconds: a loaded machine takes seconds to migrate"


def test_a_failing_migration_leaves_the_database_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise RuntimeError("the power is gone")

    monkeypatch.setattr(database_schema, "_found", fail)
    with pytest.raises(RuntimeError):
        migrate_log(f"sqlite:///{tmp_path}/log.db", clock=FakeClock(), random=random.Random(1))
    engine = open_engine(tmp_path / "log.db")
    assert inspect(engine).get_table_names() == []
    engine.dispose()
