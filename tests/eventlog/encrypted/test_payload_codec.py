from __future__ import annotations

import os
import random
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import SECRETS, Key
from ctrlmgr.encryption.key_providers import KeyProviders, read_providers
from ctrlmgr.errors import BadRequest, LogCorrupt, LogUnavailable
from ctrlmgr.eventlog import Author, EventType, Proposal, migrate_log, open_log
from ctrlmgr.eventlog.imports import Imported
from ctrlmgr.eventlog.sqllog import SQLLog
from ctrlmgr.eventlog.verification import verify
from ctrlmgr.testing import FakeClock

AUTHOR = Author("tester")
KEY = Key("shop", "db")


def configuration(folder: Path, *keys: str, provider: str = "aescbc", resources: str = "secrets") -> KeyProviders:
    """Return the providers of a configuration whose keys are derived from their names."""
    lines = [f"      - {{name: {key}, secret: {b64encode(key.encode().ljust(32)).decode()}}}" for key in keys]
    text = (
        "kind: EncryptionConfiguration\napiVersion: apiserver.config.k8s.io/v1\nresources:\n"
        f"- resources: ['{resources}']\n  providers:\n  - {provider}:\n      keys:\n" + "\n".join(lines)
    )
    (folder / "keys.yaml").write_text(text + "\n  - identity: {}\n", encoding="utf-8")
    return read_providers(folder / "keys.yaml")


def opened(url: str, providers: KeyProviders | None) -> SQLLog:
    log = open_log(url, clock=FakeClock(), random=random.Random(1), migrate=True, providers=providers)
    assert isinstance(log, SQLLog)
    return log


def secret(value: str, name: str = "db", *, kind: str = "Secret") -> Object:
    body = (
        f'{{"kind":"{kind}","apiVersion":"v1","metadata":{{"name":"{name}","namespace":"shop","uid":"u-{name}"}}'
        f',"data":{{"password":"{value}"}}}}'
    )
    return Object.from_wire(body.encode())


@pytest.fixture
def log(url: str, tmp_path: Path) -> Iterator[SQLLog]:
    log = opened(url, configuration(tmp_path, "key1"))
    yield log
    log.close()


def stored(log: SQLLog) -> list[bytes]:
    return [each.event.object.body for each in log.stored()]


def test_an_encrypted_object_is_stored_as_ciphertext_and_read_as_it_was(log: SQLLog) -> None:
    first = log.append([Proposal(EventType.ADDED, secret("one"), 0)], author=AUTHOR)[0]
    log.append([Proposal(EventType.MODIFIED, secret("two"), first.revision)], author=AUTHOR)
    config_map = Proposal(EventType.ADDED, secret("open", kind="ConfigMap"), 0)
    log.append([config_map], author=AUTHOR)
    assert [b"one" in body or b"two" in body for body in stored(log)] == [False] * 3
    assert stored(log)[0].startswith(
        b'{"kind":"Secret","apiVersion":"v1","metadata":{"name":"db","namespace":"shop","uid":"u-db"}'
        b',"encrypted":"k8s:enc:log:v1:'
    )
    assert stored(log)[2] == config_map.object.body
    assert [each.object.body for each in log.events_after(0)] == [
        secret("one").body,
        secret("two").body,
        config_map.object.body,
    ]
    assert [each.object.body for each in log.scan()] == [each.object.body for each in log.events_after(0)]
    now, then = log.get(SECRETS, KEY), log.get(SECRETS, KEY, at=1)
    assert now is not None
    assert then is not None
    assert (now.body, then.body) == (secret("two").body, secret("one").body)
    assert [each.body for each in log.snapshot(SECRETS).objects] == [secret("two").body]
    assert [each.body for each in log.snapshots([SECRETS], at=1)[SECRETS].objects] == [secret("one").body]
    assert log.states(SECRETS, [KEY], at=1)[KEY].body == secret("one").body


def test_the_chain_is_verified_without_keys(log: SQLLog, url: str) -> None:
    log.append([Proposal(EventType.ADDED, secret("one"), 0)], author=AUTHOR)
    keyless = opened(url, None)
    assert verify(keyless).events == 1
    assert verify(log).events == 1
    found = keyless.get(SECRETS, KEY)
    keyless.close()
    assert found is not None
    assert b"one" not in found.body
    assert found.key == KEY


def test_imported_events_are_encrypted(log: SQLLog) -> None:
    added = log.import_events([Imported(EventType.ADDED, secret("one").at(7), 0, AUTHOR)])
    assert added[0].object.body == secret("one").body
    assert b"one" not in stored(log)[0]
    assert verify(log).events == 1
    assert log.events_after(0)[0].object.body == secret("one").body


def test_error_texts_are_encrypted(log: SQLLog, url: str) -> None:
    from ctrlmgr.eventlog.event import Cause, Failure, Outcome

    failure = Failure(
        controller="c", key="shop/db", since=1, last_at=1, attempts=1, kind="error", error="hush", traceback="hush hush"
    )
    cause = Cause(9, "c", "shop/db", 1, 1, (1,))
    log.append([Proposal(EventType.ADDED, secret("one"), 0)], author=AUTHOR, cause=cause)
    log.finish(9, Outcome(1, "error", "hush"))
    log.record_failure(failure)
    log.flush()
    assert list(log.failures()) == [failure]
    found = log.reconcile(9)
    assert found is not None
    assert found.outcome == Outcome(1, "error", "hush")
    keyless = opened(url, None)
    seen = keyless.reconcile(9)
    assert seen is not None
    assert "hush" not in f"{keyless.failures()}{seen}"
    keyless.close()


def test_a_payload_copied_to_another_object_is_refused(log: SQLLog) -> None:
    from sqlalchemy import update

    from ctrlmgr.eventlog.log_tables import event

    log.append([Proposal(EventType.ADDED, secret("one"), 0)], author=AUTHOR)
    log.append([Proposal(EventType.ADDED, secret("two", "web"), 0)], author=AUTHOR)
    with log._write() as connection:
        connection.execute(update(event).where(event.c.revision == 2).values(body=stored(log)[0].decode()))
    with pytest.raises(LogCorrupt, match=r"the payload of secrets/shop/web is damaged"):
        log.get(SECRETS, Key("shop", "web"))


def test_an_object_cannot_pretend_to_be_encrypted(log: SQLLog) -> None:
    log.append([Proposal(EventType.ADDED, secret("one"), 0)], author=AUTHOR)
    pretended = Object.from_wire(stored(log)[0].replace(b"Secret", b"ConfigMap"))
    with pytest.raises(BadRequest, match="must not have a field `encrypted`"):
        log.append([Proposal(EventType.ADDED, pretended, 0)], author=AUTHOR)


def test_a_rotation_changes_no_payload_and_makes_the_old_key_needless(url: str, tmp_path: Path) -> None:
    log = opened(url, configuration(tmp_path, "old"))
    log.append([Proposal(EventType.ADDED, secret("one"), 0)], author=AUTHOR)
    log.close()
    log = opened(url, configuration(tmp_path, "new", "old"))
    before = stored(log)
    log.append([Proposal(EventType.MODIFIED, secret("two"), 1)], author=AUTHOR)
    assert log.codec is not None
    moved = [(key.resource, prefix) for key, prefix in log.codec.rotate()]
    assert moved == [("secrets", "k8s:enc:aescbc:v1:new:")]
    assert list(log.codec.rotate()) == []
    assert stored(log)[:1] == before
    assert len(log.data_keys.all()) == 2, "new payloads have a data key that the old key never encrypted"
    log.close()
    log = opened(url, configuration(tmp_path, "new"))
    assert [each.object.body for each in log.scan()] == [secret("one").body, secret("two").body]
    assert verify(log).events == 2
    log.close()


def test_a_rotation_killed_at_any_step_loses_nothing(url: str, tmp_path: Path) -> None:
    log = opened(url, configuration(tmp_path, "old", resources="*."))
    kinds = ["Secret", "ConfigMap", "Pod", "Service"]
    for kind in kinds:
        log.append([Proposal(EventType.ADDED, secret("one", kind=kind), 0)], author=AUTHOR)
    log.close()
    for step in range(len(kinds)):  # each process rotates one more key and dies
        child = os.fork()
        if not child:
            log = opened(url, configuration(tmp_path, "new", "old", resources="*."))
            assert log.codec is not None
            next(log.codec.rotate())
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        log = opened(url, configuration(tmp_path, "new", "old", resources="*."))
        assert sum(":new:" in key.wrapped for key in log.data_keys.all()) == step + 1
        assert [each.object.body for each in log.scan()] == [secret("one", kind=kind).body for kind in kinds]
        log.close()
    log = opened(url, configuration(tmp_path, "new", resources="*."))
    assert len(list(log.scan())) == 4
    log.close()


def test_a_missing_key_is_named(url: str, tmp_path: Path) -> None:
    log = opened(url, configuration(tmp_path, "key1"))
    log.append([Proposal(EventType.ADDED, secret("one"), 0)], author=AUTHOR)
    log.close()
    log = opened(url, configuration(tmp_path, "key2"))
    with pytest.raises(LogUnavailable, match=r"encrypted with k8s:enc:aescbc:v1:key1:, which the"):
        log.get(SECRETS, KEY)
    log.close()


@pytest.mark.parametrize("provider", ["aescbc", "aesgcm", "secretbox"])
def test_each_provider_encrypts_data_keys(provider: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/log.db"
    log = opened(url, configuration(tmp_path, "key1", provider=provider))
    log.append([Proposal(EventType.ADDED, secret("one"), 0)], author=AUTHOR)
    assert log.data_keys.all()[0].wrapped.startswith(f"k8s:enc:{provider}:v1:key1:")
    log.close()
    log = opened(url, configuration(tmp_path, "key1", provider=provider))
    assert [each.object.body for each in log.scan()] == [secret("one").body]
    log.close()
    file = tmp_path / "keys.yaml"
    other = file.read_text(encoding="utf-8").replace(b64encode(b"key1".ljust(32)).decode(), "A" * 43 + "=")
    file.write_text(other, encoding="utf-8")
    log = opened(url, read_providers(file))
    with pytest.raises(LogUnavailable, match="is not the one that encrypted it"):
        list(log.scan())
    log.close()


def test_a_fork_is_encrypted_and_read_with_the_same_keys(tmp_path: Path) -> None:
    from sqlalchemy import text

    from ctrlmgr.eventlog.copying.log_fork import fork

    url, other = f"sqlite:///{tmp_path}/log.db", f"sqlite:///{tmp_path}/fork.db"
    log = opened(url, configuration(tmp_path, "key1"))
    log.append([Proposal(EventType.ADDED, secret("hushhush"), 0)], author=AUTHOR)
    migrate_log(other, clock=FakeClock(), random=random.Random(2))
    with log._read() as connection:
        fork(
            lambda query, given: [tuple(row) for row in connection.execute(text(query), dict(given))],
            other,
            1,
            clock=FakeClock(),
            random=random.Random(3),
        )
    log.close()
    copy = opened(other, configuration(tmp_path, "key1"))
    assert [each.object.body for each in copy.scan()] == [secret("hushhush").body]
    assert b"hushhush" not in stored(copy)[0]
    copy.close()
