from __future__ import annotations

import random
import threading
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from ctrlmgr.api.object import Object
from ctrlmgr.encryption import providers_from
from ctrlmgr.errors import SettingsError
from ctrlmgr.eventlog import Author, EventLog, EventType, Proposal, open_log
from ctrlmgr.eventlog.sqllog import SQLLog
from ctrlmgr.serve.log_keys.key_reloads import KeyReloads, key_reloads
from ctrlmgr.settings.sections import DatabaseSettings
from ctrlmgr.testing import FakeClock

AUTHOR = Author("tester")
RELOADS = "apiserver_encryption_config_controller_automatic_reloads_total"
RELOADED_AT = "apiserver_encryption_config_controller_automatic_reload_last_timestamp_seconds"
IN_USE = "apiserver_encryption_config_controller_last_config_info"


def write(file: Path, *keys: str) -> str:
    """Write an EncryptionConfiguration whose keys are derived from their names, and return its path."""
    listed = ", ".join(f"{{name: {key}, secret: {b64encode(key.encode().ljust(32)).decode()}}}" for key in keys)
    file.write_text(
        "kind: EncryptionConfiguration\napiVersion: apiserver.config.k8s.io/v1\nresources:\n- resources: [secrets]\n"
        f"  providers:\n  - aesgcm: {{keys: [{listed}]}}\n  - identity: {{}}\n",
        encoding="utf-8",
    )
    return str(file)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return Path(write(tmp_path / "keys.yaml", "key1"))


@pytest.fixture
def log(file: Path, clock: FakeClock) -> Iterator[SQLLog]:
    url, providers = f"sqlite:///{file.with_name('log.db')}", providers_from(str(file))
    log = open_log(url, clock=clock, random=random.Random(1), migrate=True, providers=providers)
    assert isinstance(log, SQLLog)
    yield log
    log.close()


@pytest.fixture
def calls() -> list[str]:
    return []


@pytest.fixture
def reloads(log: SQLLog, file: Path, clock: FakeClock, calls: list[str]) -> KeyReloads:
    settings = DatabaseSettings(encryption_provider_config=str(file), encryption_provider_config_automatic_reload=True)
    (found,) = key_reloads(settings, log, lambda: calls.append("reloaded"), clock=clock)
    return found


def append(log: EventLog, name: str) -> None:
    body = f'{{"kind":"Secret","apiVersion":"v1","metadata":{{"name":"{name}","namespace":"shop","uid":"u-{name}"}}}}'
    log.append([Proposal(EventType.ADDED, Object.from_wire(body.encode()), 0)], author=AUTHOR)


def prefixes(log: SQLLog) -> list[str]:
    """Return the keys that encrypt the data keys of Secrets, oldest data key first."""
    return [key.wrapped.split(":")[4] for key in log.data_keys.all() if key.resource == "secrets"]


def sample(name: str, **labels: str) -> float:
    """Return the sum of a metric's samples that have the labels."""
    return sum(
        sample.value
        for metric in REGISTRY.collect()
        for sample in metric.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    )


def test_a_changed_file_is_used_without_a_restart(
    log: SQLLog, file: Path, reloads: KeyReloads, clock: FakeClock, calls: list[str]
) -> None:
    append(log, "a")
    before = sample(RELOADS, status="success")
    clock.step(60)
    assert not reloads.reload(), "the file has not changed"
    write(file, "key2", "key1")
    assert reloads.reload()
    append(log, "b")
    assert prefixes(log) == ["key1", "key2"]
    assert {each.key.name for each in log.scan()} == {"a", "b"}
    assert sample(RELOADS, status="success") == before + 1
    assert sample(RELOADED_AT, status="success") == clock.now() / 1_000_000
    assert log.codec is not None
    assert sample(IN_USE, hash=log.codec.content_hash) == 1
    assert sample(IN_USE) == 1, "the series of the previous file ended"
    assert calls == ["reloaded"]
    assert not reloads.reload()


@pytest.mark.parametrize("content", ["kind: [", "kind: Other\napiVersion: v1\n", None])
def test_an_invalid_file_keeps_the_previous_configuration(
    log: SQLLog, file: Path, reloads: KeyReloads, calls: list[str], content: str | None
) -> None:
    before = sample(RELOADS, status="failure")
    if content is None:
        file.unlink()
    else:
        file.write_text(content, encoding="utf-8")
    assert not reloads.reload()
    assert not reloads.reload(), "each check tries the file again"
    assert sample(RELOADS, status="failure") == before + 2
    append(log, "a")
    assert prefixes(log) == ["key1"]
    assert calls == []
    write(file, "key2", "key1")
    assert reloads.reload()


def test_a_configuration_without_the_old_key_is_not_used(log: SQLLog, file: Path, reloads: KeyReloads) -> None:
    append(log, "a")
    write(file, "key2")
    assert not reloads.reload()
    append(log, "b")
    assert prefixes(log) == ["key1"]
    assert {each.key.name for each in log.scan()} == {"a", "b"}


def test_the_controller_stops(reloads: KeyReloads) -> None:
    stop = threading.Event()
    stop.set()
    reloads.run(stop)
    assert reloads.name == "encryption-provider-config-automatic-reload-controller"


def test_reloads_need_a_file_and_an_encrypted_log(log: SQLLog, file: Path, clock: FakeClock) -> None:
    with pytest.raises(SettingsError, match="must be set with --encryption-provider-config"):
        list(key_reloads(DatabaseSettings(encryption_provider_config_automatic_reload=True), log, list, clock=clock))
    off = DatabaseSettings(encryption_provider_config=str(file))
    assert list(key_reloads(off, log, list, clock=clock)) == []
