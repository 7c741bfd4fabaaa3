from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import SECRETS
from ctrlmgr.clock import Clock
from ctrlmgr.encryption.key_providers import KeyProviders
from ctrlmgr.encryption.kms.kms_cipher import KmsCipher
from ctrlmgr.encryption.kms.kms_client import KmsCallFailed, KmsClient
from ctrlmgr.encryption.kms.kms_messages import Encrypted, Status
from ctrlmgr.errors import LogError, LogUnavailable
from ctrlmgr.eventlog import Author, EventType, Proposal, open_log
from ctrlmgr.eventlog.sqllog import SQLLog
from ctrlmgr.serve.log_keys.encryption_at_rest import require_keys
from ctrlmgr.serve.log_keys.kms_polling import KmsPolling, kms_polling
from ctrlmgr.testing import FakeClock


class Client(KmsClient):
    """A KMS in this process."""

    def __init__(self) -> None:
        self.key_id = "key-1"
        self.is_down = False
        self.is_closed = False

    def _answers(self) -> None:
        if self.is_down:
            raise KmsCallFailed("rpc error: code = Unavailable desc = gone")

    def status(self) -> Status:
        self._answers()
        return Status("v2", "ok", self.key_id)

    def encrypt(self, plaintext: bytes) -> Encrypted:
        self._answers()
        return Encrypted(plaintext[::-1], self.key_id, {"a.example.com": b"x"})

    def decrypt(self, encrypted: Encrypted) -> bytes:
        self._answers()
        return encrypted.ciphertext[::-1]

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def client() -> Client:
    return Client()


def providers(client: Client, clock: Clock) -> KeyProviders:
    return KeyProviders({SECRETS: [KmsCipher("example", client, clock)]})


@pytest.fixture
def log(tmp_path: Path, client: Client, clock: FakeClock) -> Iterator[SQLLog]:
    url = f"sqlite:///{tmp_path}/log.db"
    log = open_log(url, clock=clock, random=random.Random(1), migrate=True, providers=providers(client, clock))
    assert isinstance(log, SQLLog)
    require_keys(log)
    yield log
    log.close()


@pytest.fixture
def polling(log: SQLLog) -> KmsPolling:
    (found,) = kms_polling(log, reloads=False)
    return found


def append(log: SQLLog, name: str, kind: str = "Secret") -> None:
    body = f'{{"kind":"{kind}","apiVersion":"v1","metadata":{{"name":"{name}","namespace":"shop","uid":"u-{name}"}}}}'
    log.append([Proposal(EventType.ADDED, Object.from_wire(body.encode()), 0)], author=Author("tester"))


def test_a_changed_key_id_adds_data_keys_for_new_objects(log: SQLLog, client: Client, polling: KmsPolling) -> None:
    append(log, "a")
    client.key_id = "key-2"
    polling.poll()
    append(log, "b")
    assert log.codec is not None
    assert sorted(key.resource for key in log.data_keys.all()) == ["secrets", "secrets", "texts", "texts"]
    assert {each.key.name for each in log.scan()} == {"a", "b"}
    assert len([*log.codec.rotate()]) == 2, "the two data keys of the old key"
    assert [*log.codec.rotate()] == []


def test_a_failing_plugin_fails_its_check_and_after_three_minutes_writes_of_its_kinds(
    log: SQLLog, client: Client, polling: KmsPolling, clock: FakeClock
) -> None:
    append(log, "a")
    client.is_down = True
    polling.poll()
    problem = "failed to perform status section of the healthz check for KMS Provider example, error: rpc error: "
    assert polling.problem() == f"kms-provider-0: {problem}code = Unavailable desc = gone"
    append(log, "b")
    clock.step(181)
    polling.poll()
    with pytest.raises(LogError, match=r"^encryptedDEKSource with keyID hash"):
        append(log, "c")
    append(log, "open", "ConfigMap")
    assert {each.key.name for each in log.scan()} == {"a", "b", "open"}, "what was read before needs no plugin"
    client.is_down = False
    polling.poll()
    assert polling.problem() is None
    append(log, "c")


def test_a_process_without_a_plugin_does_not_start(log: SQLLog, client: Client, clock: FakeClock) -> None:
    append(log, "a")
    client.is_down = True
    assert log.codec is not None
    with pytest.raises(LogUnavailable, match="KMS Provider example"):
        require_keys(log)


def test_a_reload_closes_the_previous_plugin_and_is_refused_if_the_new_one_fails(
    log: SQLLog, client: Client, polling: KmsPolling, clock: FakeClock
) -> None:
    assert log.codec is not None
    failing, working = Client(), Client()
    failing.is_down = True
    with pytest.raises(LogUnavailable):
        log.codec.use(providers(failing, clock))
    assert [failing.is_closed, client.is_closed] == [True, False]
    log.codec.use(providers(working, clock))
    assert [client.is_closed, working.is_closed] == [True, False]
    working.is_down = True
    polling.poll()
    assert polling.problem() is not None, "the plugin of the new configuration is checked"


def test_several_plugins_are_named_by_their_number(log: SQLLog, client: Client, clock: FakeClock) -> None:
    assert log.codec is not None
    other = Client()
    both = [KmsCipher("one", client, clock), KmsCipher("two", other, clock)]
    log.codec.use(KeyProviders({SECRETS: [*both, KmsCipher("example", client, clock)]}))
    client.is_down = other.is_down = True
    polling = KmsPolling(log.codec)
    polling.poll()
    problem = polling.problem() or ""
    assert problem.startswith("[kms-provider-0: failed to perform status section of the healthz check for KMS Provider")
    assert ", kms-provider-1: " in problem
    assert problem.endswith("]")


def test_the_runnable_stops(polling: KmsPolling) -> None:
    stop = threading.Event()
    stop.set()
    polling.run(stop)
    assert polling.name == "kms-providers"


def test_a_log_without_kms_needs_no_polling(tmp_path: Path, clock: FakeClock) -> None:
    url = f"sqlite:///{tmp_path}/open.db"
    log = open_log(url, clock=clock, random=random.Random(1), migrate=True, providers=KeyProviders({}))
    assert [*kms_polling(log, reloads=False)] == []
    assert [each.problem() for each in kms_polling(log, reloads=True)] == [None]
    log.close()
