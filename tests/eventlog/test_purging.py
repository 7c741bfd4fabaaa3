"""Tests of purging: the database files contain no byte of the purged payload, and the hash chain
can still be verified.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import SECRETS, Key
from ctrlmgr.clock import SystemClock
from ctrlmgr.errors import Conflict, Expired, LogCorrupt, NotFound
from ctrlmgr.eventlog import Author, EventType, Proposal, open_log, verify
from ctrlmgr.eventlog.purged_payload import purged_digest, remains
from ctrlmgr.eventlog.sqllog import SQLLog

KEY = Key("n", "password")
VALUES = [f"S3cretV4lue{number}".encode() * 40 for number in range(30)]


def secret(value: bytes, name: str = "password") -> Object:
    metadata = {"name": name, "namespace": "n", "uid": "u", "annotations": {"note": value.decode()}}
    return Object.from_dict({"kind": "Secret", "apiVersion": "v1", "metadata": metadata, "data": {"a": value.decode()}})


def live(log: SQLLog, *, deleted: bool) -> None:
    """Change one Secret often, between changes of another Secret."""
    revision = other = 0
    for value in VALUES:
        kind = EventType.MODIFIED if revision else EventType.ADDED
        revision = log.append([Proposal(kind, secret(value), revision)], author=Author("alice", "test"))[0].revision
        other = log.append([Proposal(kind, secret(b"x" * 900, "other"), other)], author=Author("bob"))[0].revision
    if deleted:
        log.append([Proposal(EventType.DELETED, secret(VALUES[-1]), revision)], author=Author("alice"))


@pytest.fixture
def log(url: str) -> Iterator[SQLLog]:
    log = open_log(url, clock=SystemClock(), random=random.Random(1), migrate=True)
    assert isinstance(log, SQLLog)
    yield log
    log.close()


def execute(url: str, statement: str) -> None:
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection, connection:
            connection.execute(statement)
    else:
        with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as postgres:
            postgres.execute(statement.encode())


def test_a_purged_object_keeps_its_name_and_the_chain_is_valid(log: SQLLog) -> None:
    live(log, deleted=True)
    head = log.head()
    assert log.purge(SECRETS, KEY) == (31, 61)
    assert log.head() == head
    assert verify(log)[:3] == (61, head, 31)
    with pytest.raises(Expired):
        log.events_after(5, resource=SECRETS)
    left = [event for event in log.scan() if event.key == KEY]
    assert {event.actor for event in left} == {"alice"}
    assert all(b"S3cret" not in event.object.body for event in left)
    assert left[-1].object.metadata.uid == "u"
    assert log.purge(SECRETS, KEY) == (0, 61)


def test_an_existing_object_keeps_its_state(log: SQLLog) -> None:
    live(log, deleted=False)
    with pytest.raises(Conflict, match="exists"):
        log.purge(SECRETS, KEY)
    assert log.purge(SECRETS, KEY, superseded=True).events == 29
    now = log.get(SECRETS, KEY)
    assert now is not None
    assert now.body == secret(VALUES[-1]).body
    assert verify(log).purged == 29
    log.append([Proposal(EventType.MODIFIED, secret(b"next"), now.revision)], author=Author("alice"))
    assert verify(log).events == 61


def test_an_object_that_never_existed_cannot_be_purged(log: SQLLog) -> None:
    with pytest.raises(NotFound, match="never existed"):
        log.purge(SECRETS, KEY)


@pytest.mark.parametrize("how", ["purged", "superseded", "compacted"])
def test_no_byte_of_a_payload_remains_in_the_files(how: str, tmp_path: Path) -> None:
    log = open_log(f"sqlite:///{tmp_path / 'log.db'}", clock=SystemClock(), random=random.Random(1), migrate=True)
    assert isinstance(log, SQLLog)
    live(log, deleted=how != "superseded")
    if how == "compacted":
        log.append([Proposal(EventType.ADDED, secret(b"x", "third"), 0)], author=Author("alice"))
        assert log.compact(log.head().revision, resource=SECRETS)
        log.close()
    else:
        log.purge(SECRETS, KEY, superseded=how == "superseded")
    found = VALUES[-1:] if how == "superseded" else []
    for path in tmp_path.iterdir():
        held = path.read_bytes()
        assert [value for value in VALUES if value in held] == (found if path.name == "log.db" else [])
    log.close()


@pytest.mark.parametrize(
    "change",
    [
        "body = replace(body, 'purged', 'merged')",
        'body = replace(body, \'"purged"\', \'"a":"b","purged"\')',
        "body = replace(body, 'password', 'passport')",
        "previous = 100",
    ],
)
def test_changes_of_purged_events_are_detected(log: SQLLog, url: str, change: str) -> None:
    live(log, deleted=True)
    log.purge(SECRETS, KEY)
    execute(url, f"UPDATE event SET {change} WHERE revision = 13")
    with pytest.raises(LogCorrupt, match="revision 13 is damaged"):
        verify(log)


def test_remains_of_a_payload_are_distinguished_from_other_data() -> None:
    left = remains(secret(b"x").body, b"\x01" * 32)
    assert purged_digest(left, KEY) == b"\x01" * 32
    assert purged_digest(left, Key("n", "other")) is None
    assert purged_digest(left + b" ", KEY) is None
    assert purged_digest(left.replace(b"01", b"0z"), KEY) is None
    assert purged_digest(secret(b"x").body, KEY) is None
