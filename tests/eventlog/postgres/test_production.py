"""Tests of the example configuration for PostgreSQL in production: settings, roles, grants and the
connection pooler.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest

from ctrlmgr.clock import SystemClock
from ctrlmgr.errors import LogUnavailable, QueryRefused
from ctrlmgr.eventlog import migrate_log, open_log
from ctrlmgr.eventlog.sqllog import SQLLog
from ctrlmgr.inspection.database import open_database
from ctrlmgr.testing.eventlog_contract import AUTHOR, add, modify, thing
from ctrlmgr.testing.postgres import PostgresCluster
from tests.eventlog.pooler import PgBouncer
from tests.robustness.failover.leaders import Candidate, Group

pytestmark = [pytest.mark.postgres, pytest.mark.slow, pytest.mark.timeout(600)]

EXAMPLES = Path(__file__).parents[3] / "examples" / "postgresql"
OWNER, SERVE, READER = ROLES = ("ctrlmgr_owner", "ctrlmgr_serve", "ctrlmgr_reader")
DATABASE = "ctrlmgr"
SHORT = (
    "--leader-elect-lease-duration",
    "3s",
    "--leader-elect-renew-deadline",
    "2s",
    "--leader-elect-retry-period",
    "500ms",
)


class Production(NamedTuple):
    """A PostgreSQL server with the configuration in `examples`."""

    cluster: PostgresCluster

    def url(self, role: str) -> str:
        """Return the URL of the log for a database role; the password of each role is the role's name."""
        return f"postgresql://{role}:{role}@127.0.0.1:{self.cluster.port}/{DATABASE}"

    def run(self, role: str, statement: str) -> None:
        with psycopg.connect(self.url(role), autocommit=True) as connection:
            for each in statement.split("; "):  # each statement in a separate transaction
                connection.execute(each.encode())


def settings_of(file: Path) -> dict[str, str]:
    return dict(re.findall(r"^(\w+) = (.*)$", file.read_text(), re.MULTILINE))


@pytest.fixture(scope="module")
def production() -> Iterator[Production]:
    with PostgresCluster(settings=settings_of(EXAMPLES / "ctrlmgr.conf")) as cluster:
        cluster.execute((EXAMPLES / "roles.sql").read_text())
        for role in ROLES:
            cluster.execute(f"ALTER ROLE {role} PASSWORD '{role}'")
        cluster.execute(f"CREATE DATABASE {DATABASE} OWNER {OWNER}")
        cluster.execute((EXAMPLES / "grants.sql").read_text(), DATABASE)
        production = Production(cluster)
        migrate_log(production.url(OWNER), clock=SystemClock(), random=random.Random(1))
        yield production


def opened(url: str, seed: int) -> SQLLog:
    log = open_log(url, clock=SystemClock(), random=random.Random(seed), migrate=True, patience=2.0)
    assert isinstance(log, SQLLog)
    return log


def test_session_settings_are_active(production: Production) -> None:
    found = production.cluster.execute("SELECT name, setting FROM pg_file_settings WHERE applied AND error IS NULL")
    assert settings_of(EXAMPLES / "ctrlmgr.conf").items() <= dict(found).items()


@pytest.mark.parametrize(
    ("role", "statement", "refusal"),
    [
        (SERVE, "DROP TABLE event", "42501"),
        (SERVE, "TRUNCATE event", "42501"),
        (SERVE, "ALTER TABLE event ADD COLUMN mine text", "42501"),
        (SERVE, "CREATE TABLE mine (a int)", "42501"),
        (SERVE, "CREATE ROLE mine", "42501"),
        (READER, "SELECT count(*) FROM event", ""),
        (READER, "SELECT count(*) FROM objects_at(0)", ""),
        (READER, "UPDATE log_head SET revision = 1", "25006"),
        (READER, "SET default_transaction_read_only = off; UPDATE log_head SET revision = 1", "42501"),
        (READER, "SET default_transaction_read_only = off; SELECT revision FROM log_head FOR UPDATE", "42501"),
        (READER, "SET default_transaction_read_only = off; CREATE TABLE mine (a int)", "42501"),
        (OWNER, "CREATE TABLE passing (a int); DROP TABLE passing", ""),
    ],
)
def test_each_role_has_its_rights(production: Production, role: str, statement: str, refusal: str) -> None:
    if not refusal:
        production.run(role, statement)
        return
    with pytest.raises(psycopg.Error) as refused:
        production.run(role, statement)
    assert refused.value.sqlstate == refusal


def test_serve_needs_only_the_rights_of_its_role(production: Production) -> None:
    with closing(opened(production.url(SERVE), 2)) as log:
        log.append([add(thing("a"))], author=AUTHOR)
        log.append([modify(thing("a", spec={}), None)], author=AUTHOR)
        assert log.compact(2) == 1
        with open_database(production.url(READER)) as database:
            assert database.query("SELECT name FROM objects").rows == [("a",)]
            with pytest.raises(QueryRefused):
                database.query("DELETE FROM event")
    with closing(opened(production.url(READER), 3)) as log, pytest.raises(LogUnavailable):
        log.append([add(thing("b"))], author=AUTHOR)


def test_tables_of_later_migrations_can_be_used(production: Production) -> None:
    production.run(OWNER, "CREATE TABLE later (a int)")
    production.run(SERVE, "INSERT INTO later VALUES (1)")
    production.run(READER, "SELECT * FROM later")
    production.run(OWNER, "DROP TABLE later")


def test_two_servers_run_through_the_pooler_with_their_role(production: Production, tmp_path: Path) -> None:
    with (
        PgBouncer(production.cluster, users={SERVE: SERVE}) as pooler,
        Group(tmp_path, pooler.url(production.url(SERVE)), *SHORT) as group,
    ):
        leader = group.leader()
        group.await_endpoints(group.service(leader))
        other = group.other(leader)
        group.await_endpoints(group.service(other))
        await_successor(group, leader)
        group.await_endpoints(group.service(other))
        assert group.violations() == []
        used = production.cluster.execute(f"SELECT DISTINCT usename FROM pg_stat_activity WHERE datname = '{DATABASE}'")
        assert used == [(SERVE,)]
        locks = production.cluster.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'")
        assert locks == [(0,)], "a session's lock would be somebody else's soon"


def await_successor(group: Group, leader: Candidate) -> None:
    """Kill the leader in such a way that only its expired lease reveals its end."""
    before = group.lease().term
    leader.kill()
    group.await_term(before)
