"""Tests of the temporary PostgreSQL cluster that other tests use."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ctrlmgr.testing.postgres import PostgresCluster, PostgresMissing, find_program

pytestmark = pytest.mark.postgres


@pytest.fixture(scope="module")
def own() -> Iterator[PostgresCluster]:
    with PostgresCluster(settings={"max_connections": "17"}) as cluster:
        yield cluster


def test_a_missing_program_is_reported_with_advice() -> None:
    with pytest.raises(PostgresMissing, match="run scripts/test"):
        find_program("initdb-of-nobody")


def test_the_test_server_is_durable(cluster: PostgresCluster) -> None:
    for setting in ("fsync", "synchronous_commit", "full_page_writes"):
        assert cluster.execute(f"SHOW {setting}") == [("on",)]


def test_the_test_server_accepts_settings(own: PostgresCluster) -> None:
    assert own.execute("SHOW max_connections") == [("17",)]


@pytest.mark.parametrize("end", ["fast", "immediate", "kill"])
def test_committed_data_survives_every_kind_of_stop(own: PostgresCluster, end: str) -> None:
    own.execute("CREATE TABLE IF NOT EXISTS kept (how text)")
    own.execute(f"INSERT INTO kept VALUES ('{end}')")
    if end == "kill":
        own.kill()
        own.start()
    else:
        own.restart(end)
    assert own.execute(f"SELECT how FROM kept WHERE how = '{end}'") == [(end,)]


def test_a_database_is_dropped_with_its_block(cluster: PostgresCluster) -> None:
    with cluster.database("passing") as url:
        assert url.endswith("/passing")
        assert cluster.execute("SELECT current_database()", "passing") == [("passing",)]
    assert cluster.execute("SELECT 1 FROM pg_database WHERE datname = 'passing'") == []
