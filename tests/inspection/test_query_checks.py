"""Tests of the queries that the PostgreSQL connection accepts, and of statements that it refuses in read-only
transactions.
"""

from __future__ import annotations

import pytest

from ctrlmgr.errors import QueryRefused
from ctrlmgr.inspection.queries import questions
from ctrlmgr.inspection.query_checks import require_question


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 1",
        "  select * from events where actor = 'pg_terminate_backend(1)'",
        "WITH a AS (SELECT 1) SELECT * FROM a",
        "(VALUES (1), (2))",
        "TABLE events",
        "EXPLAIN ANALYZE SELECT count(*) FROM event",
        "SHOW server_version",
        "SELECT pg_size_pretty(pg_relation_size('event'))",
        "-- a comment\nSELECT /* pg_sleep(1) */ 1",
        "SELECT $$pg_sleep(1)$$, $a$ ' $a$",
        'SELECT "pg_sleep" FROM (SELECT 1 AS "pg_sleep") AS a',
        "SELECT E'it\\'s pg_sleep(9)'",
    ],
)
def test_queries_are_accepted(statement: str) -> None:
    require_question(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "",
        ";",
        "COPY event TO PROGRAM 'sh'",
        "copy (select 1) to '/tmp/x'",
        "DO $$ BEGIN END $$",
        "CALL p()",
        "SET ROLE postgres",
        "RESET ROLE",
        "LOCK TABLE event",
        "LISTEN a",
        "NOTIFY a",
        "VACUUM",
        "BEGIN",
        "COMMIT",
        "PREPARE a AS SELECT 1",
        "EXECUTE a",
        "DELETE FROM event",
        "SELECT pg_terminate_backend(1)",
        "SELECT PG_Terminate_Backend (1)",
        "SELECT pg_catalog.pg_cancel_backend(1)",
        'SELECT "pg_advisory_lock"(1)',
        'SELECT pg_catalog . "pg_advisory_lock" /* x */ (1)',
        "SELECT pg_try_advisory_xact_lock_shared(1)",
        "SELECT pg_read_file('/etc/passwd')",
        "SELECT pg_ls_dir('/')",
        "SELECT pg_sleep(1000)",
        "SELECT lo_import('/etc/passwd')",
        "SELECT set_config('role', 'postgres', false)",
        "SELECT query_to_xml('SELECT pg_sleep(1)', true, true, '')",
        "SELECT * FROM dblink('x', 'DROP TABLE event')",
        "SELECT nextval('a')",
        'SELECT U&"pg\\005fsleep"(1)',
        "WITH a AS (SELECT pg_reload_conf()) SELECT * FROM a",
        "EXPLAIN ANALYZE SELECT pg_rotate_logfile()",
        "SELECT '' || pg_switch_wal()",
        "SELECT ts_stat('SELECT pg_sleep(1)')",
    ],
)
def test_other_statements_are_refused(statement: str) -> None:
    with pytest.raises(QueryRefused, match="only queries are allowed"):
        require_question(statement)


def test_predefined_queries_are_accepted() -> None:
    asked = questions()
    assert asked
    for question in asked.values():
        require_question(question.statement)
