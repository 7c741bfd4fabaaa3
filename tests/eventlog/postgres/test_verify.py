from __future__ import annotations

import random
from collections.abc import Iterator

import psycopg
import pytest

from ctrlmgr.clock import SystemClock
from ctrlmgr.errors import LogCorrupt, LogRolledBack
from ctrlmgr.eventlog import open_log, verify
from ctrlmgr.testing.eventlog_contract import AUTHOR, VerifiableLog, add, modify, thing

pytestmark = pytest.mark.postgres


@pytest.fixture
def log(postgres_url: str) -> Iterator[VerifiableLog]:
    log = open_log(postgres_url, clock=SystemClock(), random=random.Random(1))
    for i in range(20):
        log.append([add(thing(f"p{i}", spec={"number": i}))], author=AUTHOR)
    yield log
    log.close()


def execute(url: str, statement: str) -> None:
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(statement.encode())


@pytest.mark.parametrize(
    "change",
    [
        "body = overlay(body placing 'X' from 9)",
        "body = body || ' '",
        "actor = 'mallory'",
        "user_agent = ''",
        "type = 2",
        "previous = 7",
        "recorded_at = recorded_at + 1",
        "term = 1",
        "reconcile_id = 1",
        "append_id = append_id + 1",
        "hash = decode(repeat('00', 32), 'hex')",
    ],
)
def test_verify_names_the_revision_of_a_changed_event(log: VerifiableLog, postgres_url: str, change: str) -> None:
    execute(postgres_url, f"UPDATE event SET {change} WHERE revision = 13")
    with pytest.raises(LogCorrupt, match="revision 13 is damaged"):
        verify(log)


def test_verify_names_the_revision_for_every_byte_of_a_payload(log: VerifiableLog, postgres_url: str) -> None:
    body = next(iter(log.scan(start=3))).object.body.decode()
    with psycopg.connect(postgres_url.replace("+psycopg", ""), autocommit=True) as connection:
        for at, character in enumerate(body):
            flipped = body[:at] + chr(ord(character) ^ 1) + body[at + 1 :]
            connection.execute("UPDATE event SET body = %s WHERE revision = 3", (flipped,))
            with pytest.raises(LogCorrupt, match="revision 3 is damaged"):
                verify(log)


def test_verify_detects_missing_rows(log: VerifiableLog, postgres_url: str) -> None:
    execute(postgres_url, "DELETE FROM event WHERE revision = 20")
    with pytest.raises(LogCorrupt, match="revision 20 is missing"):
        verify(log)
    execute(postgres_url, "DELETE FROM event WHERE revision = 8")
    with pytest.raises(LogCorrupt, match="revision 8 is missing"):
        verify(log)


def test_a_compacted_log_verifies_and_its_damage_is_detected(log: VerifiableLog, postgres_url: str) -> None:
    for i in range(5):
        log.append([modify(thing("p0", spec=i), None)], author=AUTHOR)
    log.compact(25)
    assert verify(log).events == 20
    execute(postgres_url, "UPDATE event SET parent_hash = hash WHERE revision = 25")
    with pytest.raises(LogCorrupt, match="revision 25 "):
        verify(log)


def test_a_database_restored_under_a_running_writer_is_detected(log: VerifiableLog, postgres_url: str) -> None:
    execute(postgres_url, "DELETE FROM event WHERE revision > 10")
    execute(
        postgres_url,
        "UPDATE log_head SET revision = 10, hash = (SELECT hash FROM event WHERE revision = 10)",
    )
    with pytest.raises(LogRolledBack):
        log.append([add(thing("new"))], author=AUTHOR)
