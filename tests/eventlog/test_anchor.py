"""Tests of anchors: an anchor is signed and shipped, and is not updated to a history that the
process did not append.
"""

from __future__ import annotations

import random
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec
import psycopg
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from ctrlmgr.clock import SystemClock
from ctrlmgr.errors import LogCorrupt, SettingsError
from ctrlmgr.eventlog import open_log, verify
from ctrlmgr.eventlog.anchor import Anchor, Content, parse
from ctrlmgr.eventlog.anchor_signing import Sealing, fingerprint, load_seal, read_public_key
from ctrlmgr.eventlog.event import Head
from ctrlmgr.eventlog.hash_chain import Stamp, content_digest, link
from ctrlmgr.eventlog.sqllog import SQLLog
from ctrlmgr.testing import FakeClock
from ctrlmgr.testing.eventlog_contract import AUTHOR, add, thing

HEAD = Head("log", 7, b"\x01" * 32)


def sealing(folder: Path, command: str = "") -> Sealing:
    return Sealing(folder / "anchor.key", makes_key=True, command=command)


def opened(url: str, folder: Path, sealed: Sealing | None = None, seed: int = 1) -> SQLLog:
    log = open_log(
        url,
        clock=SystemClock(),
        random=random.Random(seed),
        migrate=True,
        anchor=folder / f"anchor-{seed}",
        sealing=sealed or sealing(folder),
    )
    assert isinstance(log, SQLLog)
    return log


def rewritten(url: str, log: SQLLog, at: int) -> None:
    """Change an event and recompute the later hashes, as an attacker with write access to the database could."""
    rows: list[tuple[bytes, str, int]] = []
    events = list(log.stored())
    parent = events[at - 2].event.hash
    for event, key, _ in events[at - 1 :]:
        body = event.object.body
        if event.revision == at:
            body = body.replace(b'"n":', b'"m":')
        stamp = Stamp(event.recorded_at, event.actor, event.user_agent, event.term, event.reconcile, event.append_id)
        digest = content_digest((str(event.resource), key.namespace, key.name), body, event.type.value, stamp)
        parent = link(parent, event.revision, event.previous, digest)
        rows.append((parent, body.decode(), event.revision))
    event_sql, head_sql = "UPDATE event SET hash = ?, body = ? WHERE revision = ?", "UPDATE log_head SET hash = ?"
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection, connection:
            connection.executemany(event_sql, rows)
            connection.execute(head_sql, (parent,))
        return
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as postgres:
        for row in rows:
            postgres.execute(event_sql.replace("?", "%s").encode(), row)
        postgres.execute(head_sql.replace("?", "%s").encode(), (parent,))


def filled(log: SQLLog, first: int = 0, last: int = 20) -> None:
    for number in range(first, last):
        log.append([add(thing(f"p{number}", spec={"n": number}))], author=AUTHOR)


def test_a_history_rewritten_during_a_process_is_detected_at_its_next_append(url: str, tmp_path: Path) -> None:
    log = opened(url, tmp_path)
    filled(log)
    head = log.head()
    rewritten(url, log, 5)
    verify(log)  # the hash chain alone does not detect this
    for _ in range(2):
        with pytest.raises(LogCorrupt, match="differs from this process's copy"):
            filled(log, 20, 21)
    log.close()
    assert Anchor(tmp_path / "anchor-1", SystemClock()).read() == head, "the anchor says where the log was right"


def test_a_history_rewritten_between_two_processes_is_detected_by_the_anchor(url: str, tmp_path: Path) -> None:
    first, second = opened(url, tmp_path), opened(url, tmp_path, seed=2)
    filled(first)
    rewritten(url, first, 5)
    with pytest.raises(LogCorrupt):
        filled(first, 20, 22)
    filled(second, 30, 32)  # the process knew only the empty log
    second.close()
    first.close()
    with pytest.raises(LogCorrupt, match=r"hash in .*anchor-1"):
        opened(url, tmp_path)


def test_appends_compactions_and_restores_of_others_are_no_rewrite(url: str, tmp_path: Path) -> None:
    first, second = opened(url, tmp_path), opened(url, tmp_path, seed=2)
    for number in range(0, 30, 3):
        filled(first, number, number + 1)
        filled(second, number + 1, number + 3)
    first.compact(20)
    filled(second, 30, 31)
    filled(first, 31, 32)
    second.begin_epoch("test", above=1000)
    filled(second, 32, 33)
    verify(second)
    second.close()
    first.close()


def test_an_anchor_is_signed_and_cannot_be_changed(tmp_path: Path) -> None:
    sealed = sealing(tmp_path)
    anchor = Anchor(tmp_path / "anchor", FakeClock(), sealed)
    anchor.write(HEAD)
    assert sealed.key.stat().st_mode & 0o777 == 0o600
    content = parse((tmp_path / "anchor").read_bytes(), tmp_path / "anchor")
    public = read_public_key(sealed.key)
    assert content.is_signed_by(public)
    assert anchor.read() == HEAD
    for changes in ({"revision": 6}, {"hash": "02" * 32}, {"uuid": "other"}, {"at": 1}, {"signature": "zz"}):
        changed = msgspec.structs.replace(content, **changes)
        assert not changed.is_signed_by(public)
        (tmp_path / "anchor").write_bytes(msgspec.json.encode(changed))
        with pytest.raises(LogCorrupt, match="not signed with the key"):
            anchor.read()


def test_a_signed_anchor_is_not_replaced_without_the_key(tmp_path: Path) -> None:
    path = tmp_path / "anchor"
    Anchor(path, FakeClock(), sealing(tmp_path)).write(HEAD)
    before = path.read_bytes()
    Anchor(path, FakeClock()).write(HEAD._replace(revision=9))
    assert path.read_bytes() == before
    Anchor(tmp_path / "plain", FakeClock()).write(HEAD)
    assert parse((tmp_path / "plain").read_bytes(), path) == Content("log", 7, "01" * 32, FakeClock().now())


def test_an_existing_unsigned_anchor_is_accepted_and_signed(tmp_path: Path) -> None:
    path = tmp_path / "anchor"
    Anchor(path, FakeClock()).write(HEAD)
    anchor = Anchor(path, FakeClock(), sealing(tmp_path))
    assert anchor.read() == HEAD
    anchor.write(HEAD)
    assert parse(path.read_bytes(), path).signature


def test_a_key_is_created_once_and_read_as_private_or_public(tmp_path: Path) -> None:
    sealed = sealing(tmp_path)
    assert load_seal(sealed._replace(makes_key=False)) is None
    first, second = load_seal(sealed), load_seal(sealed)
    assert first is not None
    assert second is not None
    assert first.public == second.public
    private = serialization.load_pem_private_key(sealed.key.read_bytes(), None)
    form = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    (tmp_path / "anchor.pub").write_bytes(private.public_key().public_bytes(*form))
    assert read_public_key(tmp_path / "anchor.pub") == read_public_key(sealed.key) == first.public
    assert len(fingerprint(first.public)) == 16


def an_elliptic_curve_key() -> bytes:
    return ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


@pytest.mark.parametrize("make", [lambda: b"nonsense", an_elliptic_curve_key])
def test_an_invalid_key_is_refused_with_a_message(make: Callable[[], bytes], tmp_path: Path) -> None:
    path = tmp_path / "anchor.key"
    path.write_bytes(make())
    for use in (lambda: load_seal(Sealing(path)), lambda: read_public_key(path)):
        with pytest.raises(SettingsError, match=r"database\.anchor_key"):
            use()


def test_anchors_are_shipped_and_the_last_one_at_shutdown(tmp_path: Path) -> None:
    there = tmp_path / "anchors"
    script = "import sys; open(sys.argv[1], 'ab').write(sys.stdin.buffer.read())"
    log = opened(
        f"sqlite:///{tmp_path / 'log.db'}",
        tmp_path,
        sealing(tmp_path, command=f"{sys.executable} -c \"{script}\" '{there}'"),
    )
    filled(log, 0, 3)
    head = log.head()
    log.close()
    shipped = [parse(line, there) for line in there.read_bytes().splitlines()]
    assert shipped[-1].head == head
    assert all(each.is_signed_by(read_public_key(tmp_path / "anchor.key")) for each in shipped)


@pytest.mark.parametrize("command", ["false", "/no/such/program"])
def test_a_failing_command_delays_nothing(command: str, tmp_path: Path) -> None:
    log = opened(f"sqlite:///{tmp_path / 'log.db'}", tmp_path, sealing(tmp_path, command=command))
    filled(log, 0, 3)
    log.close()
    with pytest.raises(SettingsError, match="anchor_command"):
        Anchor(tmp_path / "anchor", SystemClock(), sealing(tmp_path, command="'"))
