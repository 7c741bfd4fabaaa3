from __future__ import annotations

from typing import Any

import pytest
from prometheus_client import REGISTRY

from ctrlmgr.encryption.key_ciphers import KeyRefused
from ctrlmgr.encryption.kms.kms_cipher import KmsCipher
from ctrlmgr.encryption.kms.kms_client import KmsCallFailed
from ctrlmgr.encryption.kms.kms_messages import Encrypted, Status
from ctrlmgr.errors import LogError, LogUnavailable
from ctrlmgr.testing import FakeClock

CONTEXT = b"secrets/1"


class Client:
    """A KMS whose answers a test sets; an error in `broken` is raised instead."""

    def __init__(self) -> None:
        self.answer = Status("v2", "ok", "key-1")
        self.encrypted_with = ""
        self.annotations: dict[str, bytes] = {"a.example.com": b"x"}
        self.size = 10
        self.broken = ""
        self.calls: list[str] = []

    def _call(self, method: str) -> None:
        self.calls.append(method)
        if self.broken in (method, "all"):
            raise KmsCallFailed("rpc error: code = Unavailable desc = gone")

    def status(self) -> Status:
        self._call("status")
        return self.answer

    def encrypt(self, plaintext: bytes) -> Encrypted:
        self._call("encrypt")
        ciphertext = (b"!" + plaintext).ljust(self.size, b"!")[: self.size]
        return Encrypted(ciphertext, self.encrypted_with or self.answer.key_id, self.annotations)

    def decrypt(self, encrypted: Encrypted) -> bytes:
        self._call("decrypt")
        assert encrypted.annotations == self.annotations
        return encrypted.ciphertext.strip(b"!")

    def close(self) -> None:
        self._call("close")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def client() -> Client:
    return Client()


@pytest.fixture
def cipher(client: Any, clock: FakeClock) -> KmsCipher:
    return KmsCipher("example", client, clock)


def nothing() -> None:
    """Encrypt no data keys."""


def test_a_data_key_is_encrypted_and_decrypted(cipher: KmsCipher, client: Client) -> None:
    stored = cipher.encrypt(b"seed", CONTEXT)
    assert client.calls == ["status", "encrypt"], "the first call reads the key id"
    assert Encrypted.decode_stored(stored) == Encrypted(b"!seed!!!!!", "key-1", client.annotations)
    assert cipher.decrypt(stored, CONTEXT) == b"seed"
    assert cipher.prefix == "k8s:enc:kms:v2:example:"
    cipher.close()
    assert client.calls[-1] == "close"


def test_a_changed_key_id_renews_the_data_keys(cipher: KmsCipher, client: Client) -> None:
    stored: list[bytes] = []
    cipher.check(lambda: stored.append(b"too early"))
    old = cipher.encrypt(b"one", CONTEXT)
    assert cipher.is_current(old)
    client.answer = Status("v2", "ok", "key-2")
    cipher.check(lambda: stored.append(cipher.encrypt(b"two", CONTEXT)))
    assert [Encrypted.decode_stored(each).key_id for each in stored] == ["key-2"]
    assert not cipher.is_current(old)
    assert cipher.is_current(stored[0])


def test_a_renewal_that_fails_keeps_the_previous_key_id(cipher: KmsCipher, client: Client) -> None:
    cipher.check(nothing)
    old = cipher.encrypt(b"one", CONTEXT)
    client.answer, client.encrypted_with = Status("v2", "ok", "key-2"), "key-1"
    with pytest.raises(
        LogUnavailable, match=r"kmsv2 Provider example is not healthy, error: failed to rotate DEK stat"
    ):
        cipher.check(lambda: cipher.encrypt(b"two", CONTEXT))
    assert cipher.is_current(old)
    with pytest.raises(LogUnavailable):
        cipher.encrypt(b"two", CONTEXT)
    client.encrypted_with = ""
    cipher.check(nothing)
    assert cipher.problem is None
    assert not cipher.is_current(old)


def test_writes_are_refused_three_minutes_after_the_last_healthy_status(
    cipher: KmsCipher, client: Client, clock: FakeClock
) -> None:
    cipher.check(nothing)
    client.broken = "all"
    clock.step(180)
    with pytest.raises(
        LogUnavailable, match=r"^failed to perform status section of the healthz check for KMS Provider "
    ):
        cipher.check(nothing)
    cipher.require_usable()
    clock.step(20)
    text = (
        r'^encryptedDEKSource with keyID hash "sha256:[0-9a-f]{64}" expired at 2026-01-01T00:03:00Z \(current time is '
    )
    with pytest.raises(LogError, match=text + r"2026-01-01T00:03:20Z\)$"):
        cipher.require_usable()
    client.broken = ""
    cipher.check(nothing)
    cipher.require_usable()
    assert cipher.problem is None


def test_a_process_that_does_not_poll_may_write_at_any_time(cipher: KmsCipher, clock: FakeClock) -> None:
    cipher.check()
    clock.step(1000)
    cipher.require_usable()
    assert cipher.problem is None


def test_an_unhealthy_plugin_is_not_called_for_a_new_data_key(cipher: KmsCipher, client: Client) -> None:
    cipher.check(nothing)
    client.broken = "status"
    with pytest.raises(LogUnavailable):
        cipher.check(nothing)
    with pytest.raises(LogUnavailable, match="rpc error: code = Unavailable desc = gone"):
        cipher.encrypt(b"seed", CONTEXT)
    assert client.calls == ["status", "status"]


def test_calls_that_fail_say_what_failed(cipher: KmsCipher, client: Client) -> None:
    stored = cipher.encrypt(b"seed", CONTEXT)
    client.broken = "all"
    with pytest.raises(
        LogUnavailable, match=r"^failed to encrypt DEK, error: rpc error: code = Unavailable desc = gone$"
    ):
        cipher.encrypt(b"seed", CONTEXT)
    with pytest.raises(LogUnavailable, match=r"^failed to decrypt DEK, error: rpc error"):
        cipher.decrypt(stored, CONTEXT)
    with pytest.raises(KeyRefused):
        cipher.decrypt(b"\x0a\x09short", CONTEXT)


@pytest.mark.parametrize(
    ("status", "problem"),
    [
        (Status("v2", "sealed", "k"), "got unexpected healthz status: sealed"),
        (Status("v1", "ok", "k"), "expected KMSv2 API version v2, got v1"),
        (Status("v2beta1", "ok", "k"), "should not change after the initial status response version v2, got v2beta1"),
        (Status("v2", "ok", ""), 'got invalid KMSv2 KeyID hash "": keyID is empty'),
        (Status("v2", "ok", "k" * 1025), "keyID is 1025 bytes, which exceeds the max size of 1024"),
        (Status("v3", "bad", "k"), "[got unexpected healthz status: bad, expected KMSv2 API version v2, got v3]"),
    ],
)
def test_a_status_that_is_not_healthy_is_refused(
    cipher: KmsCipher, client: Client, status: Status, problem: str
) -> None:
    cipher.check(nothing)
    client.answer = status
    with pytest.raises(LogUnavailable, match=r"^kmsv2 Provider example is not healthy, error: ") as raised:
        cipher.check(nothing)
    assert problem in str(raised.value)
    assert cipher.problem == str(raised.value)


def test_invalid_key_ids_are_counted(cipher: KmsCipher, client: Client) -> None:
    name, labels = (
        "apiserver_envelope_encryption_invalid_key_id_from_status_total",
        {"provider_name": "example", "error": "empty"},
    )
    before = REGISTRY.get_sample_value(name, labels) or 0
    client.answer = Status("v2", "ok", "")
    with pytest.raises(LogUnavailable):
        cipher.check(nothing)
    assert REGISTRY.get_sample_value(name, labels) == before + 1


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"size": 0}, "failed to validate encrypted DEK source: encrypted DEK source is empty"),
        ({"size": 1025}, "encrypted DEK source is 1025 bytes, which exceeds the max size of 1024"),
        ({"encrypted_with": "k" * 1025}, "failed to validate key id: keyID is 1025 bytes"),
        ({"annotations": {"short": b""}}, 'Invalid value: "short": should be a domain with at least two segments'),
        ({"annotations": {"a.b": bytes(32 * 1024)}}, "total size of annotations is 32771, which exceeds the max size"),
    ],
)
def test_an_encrypted_data_key_that_breaks_the_contract_is_refused(
    cipher: KmsCipher, client: Client, changes: dict[str, Any], problem: str
) -> None:
    for name, value in changes.items():
        setattr(client, name, value)
    with pytest.raises(LogUnavailable) as raised:
        cipher.encrypt(b"seed", CONTEXT)
    assert problem in str(raised.value)
