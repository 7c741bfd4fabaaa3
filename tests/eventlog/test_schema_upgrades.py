"""Tests that a log of each earlier schema version can be upgraded, and that two versions can share a database during an
upgrade.

The folder `schema_versions` contains a dump of a log for each schema version and type of database. A `ctrlmgr serve` of
that version wrote the log. Meanwhile, kubectl created a ConfigMap, a Secret, a Deployment and a Service in namespace
`demo`. Then kubectl changed the ConfigMap `settings`, and deleted the ConfigMap `gone`. No ctrlmgr had the schema 0002.
"""

from __future__ import annotations

import gzip
import itertools
import json
import random
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text

from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.clock import SystemClock
from ctrlmgr.errors import SchemaOutdated
from ctrlmgr.eventlog import database_schema, migrate_log, open_log, verify
from ctrlmgr.eventlog.copying.copied_tables import open_engine
from ctrlmgr.eventlog.copying.log_copy import copy
from ctrlmgr.eventlog.sqllog import SQLLog
from ctrlmgr.inspection.database import open_database
from ctrlmgr.testing.eventlog_contract import AUTHOR, add, thing
from ctrlmgr.testing.postgres import PostgresCluster
from tests.e2e.serving import Server, until

DUMPS = Path(__file__).parent / "schema_versions"
NEVER_RELEASED = {"0002"}
CONFIG_MAPS = Resource.parse("configmaps")
NEWER = "9998"
"""The version of a schema that only a newer ctrlmgr knows."""

_SCHEMAS = {
    "sqlite": ["SELECT type || ' ' || name, sql FROM sqlite_master WHERE sql IS NOT NULL"],
    "postgresql": [
        "SELECT 'column ' || table_name || '.' || column_name, data_type || is_nullable || coalesce(column_default, '')"
        " FROM information_schema.columns WHERE table_schema = 'public'",
        "SELECT 'index ' || indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'",
        "SELECT 'view ' || viewname, definition FROM pg_views WHERE schemaname = 'public'",
        "SELECT 'function ' || proname, pg_get_functiondef(oid) FROM pg_proc"
        " WHERE pronamespace = 'public'::regnamespace",
    ],
}
_numbers = itertools.count(1)


def databases() -> Iterator[Any]:
    """Return a parameter for each dump: the schema version and the type of database, oldest version first."""
    for dump in sorted(DUMPS.glob("*.sql.gz")):
        version, _, kind = dump.name.removesuffix(".sql.gz").partition("-")
        marks = [pytest.mark.postgres] if kind == "postgres" else []
        yield pytest.param((version, kind), id=f"{version}-{kind}", marks=marks)


@pytest.fixture
def old_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a database that contains the dump of the parameter."""
    version, kind = request.param
    script = gzip.decompress((DUMPS / f"{version}-{kind}.sql.gz").read_bytes()).decode()
    if kind == "sqlite":
        with closing(sqlite3.connect(tmp_path / "ctrlmgr.db")) as connection:
            connection.executescript(script)
        yield f"sqlite:///{tmp_path}/ctrlmgr.db"
        return
    cluster: PostgresCluster = request.getfixturevalue("cluster")
    name = f"dump_{next(_numbers)}"
    with cluster.database(name) as url:
        cluster.execute(script, name)
        yield url


def migrate(url: str) -> str | None:
    return migrate_log(url, clock=SystemClock(), random=random.Random(1))


def opened(url: str) -> SQLLog:
    log = open_log(url, clock=SystemClock(), random=random.Random(2))
    assert isinstance(log, SQLLog)
    return log


def schema(url: str) -> Mapping[str, str]:
    """Return the definitions of all tables, columns, indexes, views and functions, without comments and white space.

    PostgreSQL adds the alias `AS text` to a function in a view that was restored from a dump.
    """
    engine = open_engine(url)
    with engine.connect() as connection:
        rows = [row for query in _SCHEMAS[engine.dialect.name] for row in connection.execute(text(query))]
    engine.dispose()
    ignored = re.compile(r"--[^\n]*| AS text(?=\))")
    return {name: " ".join(ignored.sub("", definition).split()) for name, definition in rows}


def execute(url: str, statements: Sequence[str]) -> None:
    """Run statements in one transaction, as a migration of a newer ctrlmgr does."""
    engine: Engine = open_engine(url)
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))
    engine.dispose()


def test_each_schema_version_has_a_dump_for_each_database() -> None:
    migrations = database_schema.migrations_folder() / "versions"
    versions = {each.name[:4] for each in migrations.glob("0*.py")} - NEVER_RELEASED
    expected = {f"{version}-{kind}.sql.gz" for version in versions for kind in ("sqlite", "postgres")}
    assert {each.name for each in DUMPS.iterdir()} == expected


@pytest.mark.parametrize("old_url", list(databases()), indirect=True)
def test_an_upgraded_log_has_the_newest_schema_and_its_history(
    old_url: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    version = request.node.callspec.params["old_url"][0]
    assert migrate(old_url) == version
    fresh = (
        f"sqlite:///{tmp_path}/fresh.db" if old_url.startswith("sqlite") else request.getfixturevalue("postgres_url")
    )
    migrate(fresh)
    assert schema(old_url) == schema(fresh)
    with closing(opened(old_url)) as log:
        head = log.head()
        assert verify(log).events == head.revision
        settings = log.get(CONFIG_MAPS, Key("demo", "settings"))
        assert settings is not None
        assert json.loads(settings.body)["data"] == {"color": "green"}
        assert log.get(CONFIG_MAPS, Key("demo", "gone")) is None
        log.append([add(thing("new"))], author=AUTHOR)
        assert verify(log).events == head.revision + 1


@pytest.mark.parametrize("old_url", [next(databases())], indirect=True)
def test_a_server_continues_with_the_oldest_log(old_url: str, tmp_path: Path) -> None:
    """The oldest ctrlmgr had no ReplicaSet controller, so its Deployment had no pods."""
    server = Server(tmp_path, "--database", old_url)
    pods = "/api/v1/namespaces/demo/pods?labelSelector=app%3Dweb"
    with server.running():
        until(lambda: len(server.request("GET", pods)[1]["items"]) == 2)
        _, settings = server.request("GET", "/api/v1/namespaces/demo/configmaps/settings")
        assert settings["data"] == {"color": "green"}


@pytest.mark.postgres
def test_bodies_are_compressed_with_lz4_where_postgresql_supports_it(postgres_url: str) -> None:
    engine = open_engine(postgres_url)
    with engine.connect() as connection:
        supported = connection.execute(
            text("SELECT 'lz4' = ANY (enumvals) FROM pg_settings WHERE name = 'default_toast_compression'")
        ).scalar_one()
        query = "SELECT attcompression FROM pg_attribute WHERE attrelid = 'event'::regclass AND attname = 'body'"
        assert connection.execute(text(query)).scalar_one() == ("l" if supported else "")
    engine.dispose()


def test_two_versions_use_a_database_whose_newer_schema_supports_the_older(url: str, tmp_path: Path) -> None:
    """The newer ctrlmgr only adds a table and a column, and the older one is this ctrlmgr."""
    migrate(url)
    with closing(opened(url)) as running:
        running.append([add(thing("a"))], author=AUTHOR)
        addition = ["CREATE TABLE newer (id INTEGER)", "ALTER TABLE failure ADD COLUMN newer TEXT"]
        execute(url, [*addition, f"UPDATE alembic_version SET version_num = '{NEWER}'"])
        running.append([add(thing("b"))], author=AUTHOR)
        assert migrate(url) == NEWER, "the older ctrlmgr leaves the newer schema unchanged"
        with closing(opened(url)) as restarted:
            restarted.append([add(thing("c"))], author=AUTHOR)
            assert verify(restarted).events == 3
    with open_database(url) as database:
        assert database.query("SELECT count(*) FROM event").rows == [(3,)]
        target = f"sqlite:///{tmp_path}/target.db"
        migrate(target)
        with pytest.raises(SchemaOutdated, match=f"the database is at schema {NEWER}, newer than this ctrlmgr's"):
            copy(lambda query, values: database.query(query, values).rows, target)


@pytest.mark.parametrize("oldest", [f"UPDATE schema_support SET oldest = '{NEWER}'", "DROP TABLE schema_support"])
def test_a_newer_schema_that_does_not_support_this_version_is_refused(url: str, oldest: str) -> None:
    migrate(url)
    execute(url, [oldest, f"UPDATE alembic_version SET version_num = '{NEWER}'"])
    for use in (migrate, opened, open_database):
        with pytest.raises(SchemaOutdated, match=f"the database is at schema {NEWER}, newer than this ctrlmgr's"):
            use(url)
