"""Encrypts data keys with a KMS plugin, and knows whether the plugin is healthy.

Guarantees:
- New data keys are encrypted only with the key id that the plugin's status names.
- Reads need the plugin only for a data key that this process has not decrypted yet.
- A process that checks the plugin regularly refuses writes if the plugin has not been healthy for three minutes.
  Therefore no write uses a replaced key for more than three minutes.
- A data key is stored with the key id and the annotations that the plugin returned.

Source: apiserver `pkg/server/options/encryptionconfig/config.go`, `encrypt/envelope/kmsv2/envelope.go`.
"""

from __future__ import annotations

import re
from base64 import b32encode
from collections.abc import Callable
from hashlib import sha256
from math import inf
from socket import gethostname
from typing import Final

from prometheus_client import Counter, Gauge

from ctrlmgr.clock import Clock, format_time_seconds
from ctrlmgr.encryption.key_ciphers import KeyCipher, KeyRefused
from ctrlmgr.encryption.kms.kms_client import KmsCallFailed, KmsClient
from ctrlmgr.encryption.kms.kms_messages import PREFIX, Encrypted, Status
from ctrlmgr.errors import BadRequest, LogError, LogUnavailable

_VERSIONS: Final = ("v2", "v2beta1")
_LONGEST: Final = 1024
"""The maximum size in bytes of a key id, and of an encrypted data key."""
_MOST_ANNOTATIONS: Final = 32 * 1024
_LIFETIME: Final = 180.0
"""The seconds after the plugin's last healthy status during which data keys may encrypt objects."""
_DOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+\.?")

_SEEN_AT: Final = Gauge(
    "apiserver_envelope_encryption_key_id_hash_status_last_timestamp_seconds",
    "The time at which the status of a KMS plugin last named a key id.",
    ["provider_name", "key_id_hash", "apiserver_id_hash"],
)
_INVALID: Final = Counter(
    "apiserver_envelope_encryption_invalid_key_id_from_status",
    "Invalid key ids in the status of a KMS plugin, by error.",
    ["provider_name", "error"],
)


class KmsCipher(KeyCipher):
    """Encrypts data keys with one KMS plugin."""

    def __init__(self, name: str, client: KmsClient, clock: Clock) -> None:
        """Create a cipher for the plugin with this name in the configuration, without calling the plugin."""
        self.name = self.provider = name
        self.prefix = f"{PREFIX}{name}:"
        self.problem: str | None = None
        """The reason why the last check failed; None if the last check succeeded."""
        self._client = client
        self._clock = clock
        self._version = ""
        self._key_id = ""  # the key id of the last healthy status
        self._expires_at = inf

    def check(self, renew: Callable[[], object] | None = None) -> None:
        """Read the plugin's status; raises `LogUnavailable` if the plugin is not healthy.

        If the key id has changed, `check` calls `renew`, which adds new data keys. If `renew` fails, the previous key
        id stays in use. Without `renew`, the cipher does not require regular checks.
        """
        expires_at = self._clock.monotonic() + _LIFETIME
        try:
            status = self._client.status()
        except KmsCallFailed as error:
            section = "failed to perform status section of the healthz check for KMS Provider"
            raise self._failed(f"{section} {self.name}, error: {error}") from error
        if problem := self._refused(status):
            raise self._failed(f"kmsv2 Provider {self.name} is not healthy, error: {problem}")
        self._use(status.key_id, renew)
        self.problem = None
        if renew is not None:
            self._expires_at = expires_at

    def _use(self, key_id: str, renew: Callable[[], object] | None) -> None:
        _SEEN_AT.labels(self.name, hashed(key_id), identity_hash()).set(self._clock.now() / 1_000_000)
        previous, self._key_id = self._key_id, key_id
        if renew is None or previous in ("", key_id):
            return
        self.problem = None  # so that `encrypt` calls the plugin
        try:
            renew()
        except LogUnavailable as error:
            self._key_id = previous
            raise self._failed(f"kmsv2 Provider {self.name} is not healthy, error: {error}") from error

    def _failed(self, problem: str) -> LogUnavailable:
        self.problem = problem
        return LogUnavailable(problem)

    def _refused(self, status: Status) -> str | None:
        """Return the reason why a status is not healthy, in kube-apiserver's words; None if the status is healthy."""
        problems = []
        if status.healthz != "ok":
            problems.append(f"got unexpected healthz status: {status.healthz}")
        if status.version not in _VERSIONS:
            problems.append(f"expected KMSv2 API version v2, got {status.version}")
        elif self._version not in ("", status.version):
            problems.append(
                "KMSv2 API version should not change after the initial status response version "
                f"{self._version}, got {status.version}"
            )
        else:
            self._version = status.version
        if problem := _key_id_problem(status.key_id):
            _INVALID.labels(self.name, "too_long" if status.key_id else "empty").inc()
            problems.append(f'got invalid KMSv2 KeyID hash "{hashed(status.key_id)}": {problem}')
        return f"[{', '.join(problems)}]" if len(problems) > 1 else "".join(problems) or None

    def encrypt(self, value: bytes, context: bytes) -> bytes:
        """Return the encrypted value in its stored form; raises `LogUnavailable` if the plugin fails."""
        if not self._key_id:
            self.check()
        if self.problem is not None:
            raise LogUnavailable(self.problem)
        try:
            encrypted = self._client.encrypt(value)
        except KmsCallFailed as error:
            raise LogUnavailable(f"failed to encrypt DEK, error: {error}") from error
        if problem := _encrypted_problem(encrypted):
            raise LogUnavailable(problem)
        if encrypted.key_id != self._key_id:
            hashes = f'statusKeyIDHash="{hashed(self._key_id)}", encryptKeyIDHash="{hashed(encrypted.key_id)}"'
            raise LogUnavailable(f"failed to rotate DEK {hashes}")
        return encrypted.encode_stored()

    def decrypt(self, value: bytes, context: bytes) -> bytes:
        """Return the decrypted value; raises `LogUnavailable` if the plugin does not decrypt the value."""
        try:
            encrypted = Encrypted.decode_stored(value)
        except (BadRequest, UnicodeDecodeError) as error:
            raise KeyRefused from error
        try:
            return self._client.decrypt(encrypted)
        except KmsCallFailed as error:
            raise LogUnavailable(f"failed to decrypt DEK, error: {error}") from error

    def key_id(self, value: bytes) -> str:
        """Return the id of the key that encrypted a value."""
        return Encrypted.decode_stored(value).key_id

    def is_current(self, value: bytes) -> bool:
        """Return whether the plugin's current key encrypted a value; raises `LogUnavailable` if the plugin fails."""
        if not self._key_id:
            self.check()
        return self.key_id(value) == self._key_id

    def require_usable(self) -> None:
        """Raise `LogError` if the plugin has not been healthy for too long."""
        late = self._clock.monotonic() - self._expires_at
        if late > 0:
            now = self._clock.now()
            expired_at = format_time_seconds(now - round(late * 1_000_000))
            raise LogError(
                f'encryptedDEKSource with keyID hash "{hashed(self._key_id)}" expired at {expired_at} '
                f"(current time is {format_time_seconds(now)})"
            )

    def close(self) -> None:
        """Close the connection to the plugin."""
        self._client.close()


def identity_hash() -> str:
    """Return the hash of the identity that kube-apiserver would have on this machine, for metrics."""
    named = b32encode(sha256(gethostname().encode()).digest()[:16]).decode().rstrip("=").lower()
    return hashed(f"apiserver-{named}")


def hashed(key_id: str) -> str:
    """Return the hash with which metrics and errors name a key id; empty for an empty key id."""
    return f"sha256:{sha256(key_id.encode()).hexdigest()}" if key_id else ""


def _key_id_problem(key_id: str) -> str | None:
    if not key_id:
        return "keyID is empty"
    size = len(key_id.encode())
    return f"keyID is {size} bytes, which exceeds the max size of {_LONGEST}" if size > _LONGEST else None


def _encrypted_problem(encrypted: Encrypted) -> str | None:
    """Return the reason why an encrypted data key cannot be stored, in kube-apiserver's words; None if it can be."""
    size = len(encrypted.ciphertext)
    if not size:
        return "failed to validate encrypted DEK source: encrypted DEK source is empty"
    if size > _LONGEST:
        text = f"encrypted DEK source is {size} bytes, which exceeds the max size of {_LONGEST}"
        return f"failed to validate encrypted DEK source: {text}"
    if problem := _key_id_problem(encrypted.key_id):
        return f"failed to validate key id: {problem}"
    return _annotations_problem(encrypted)


def _annotations_problem(encrypted: Encrypted) -> str | None:
    problems = [
        f'annotations: Invalid value: "{key}": should be a domain with at least two segments separated by dots'
        for key in sorted(encrypted.annotations)
        if not _DOMAIN.fullmatch(key)
    ]
    size = sum(len(key.encode()) + len(value) for key, value in encrypted.annotations.items())
    if size > _MOST_ANNOTATIONS:
        problems.append(f"total size of annotations is {size}, which exceeds the max size of {_MOST_ANNOTATIONS}")
    return f"failed to validate annotations: {', '.join(problems)}" if problems else None
