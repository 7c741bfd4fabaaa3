"""Counts the encryption and decryption of payloads, under kube-apiserver's metric names.

Guarantees: for each data key, the counters are looked up once, so that counting costs little. Payloads that are not
encrypted are not counted.

Source: apiserver `pkg/storage/value/metrics.go`, `encrypt/envelope/metrics/metrics.go`.
"""

from __future__ import annotations

from typing import Final

from prometheus_client import Counter, Gauge, Histogram

from ctrlmgr.encryption.kms.kms_cipher import hashed, identity_hash

FROM_STORAGE: Final = "from_storage"
TO_STORAGE: Final = "to_storage"
_OK: Final = "OK"
_FAILED: Final = "unknown-non-grpc"
_KEY_LABELS: Final = ["transformation_type", "provider_name", "key_id_hash", "apiserver_id_hash"]

_operations = Counter(
    "apiserver_storage_transformation_operations",
    "Total number of transformations. Successful transformation will have a status 'OK' and a varied status string "
    "when the transformation fails.",
    ["resource", "transformation_type", "transformer_prefix", "status"],
)
_seconds = Histogram(
    "apiserver_storage_transformation_duration_seconds",
    "Latencies in seconds of value transformation operations.",
    ["transformation_type", "transformer_prefix"],
    buckets=[5e-6 * 2**step for step in range(25)],
)
_key_uses = Counter(
    "apiserver_envelope_encryption_key_id_hash",
    "Number of times a keyID is used split by transformation type, provider, and apiserver identity.",
    _KEY_LABELS,
)
_key_used_at = Gauge(
    "apiserver_envelope_encryption_key_id_hash_last_timestamp_seconds",
    "The last time in seconds when a keyID was used.",
    _KEY_LABELS,
)
DATA_KEYS: Final = Gauge(
    "apiserver_envelope_encryption_dek_source_cache_size",
    "Number of records in data encryption key (DEK) source cache.",
    ["provider_name"],
)
CACHE_MISSES: Final = Counter(
    "apiserver_storage_envelope_transformation_cache_misses",
    "Total number of cache misses while accessing key decryption key(KEK).",
)
GENERATION_SECONDS: Final = Histogram(
    "apiserver_storage_data_key_generation_duration_seconds",
    "Latencies in seconds of data encryption key(DEK) generation operations.",
    buckets=[5e-6 * 2**step for step in range(14)],
)
GENERATION_FAILURES: Final = Counter(
    "apiserver_storage_data_key_generation_failures",
    "Total number of failed data encryption key(DEK) generation operations.",
)


class KeyUse:
    """The counters of one data key and one direction."""

    def __init__(self, resource: str, direction: str, prefix: str, provider: str, key_id: str) -> None:
        """Count for a data key of `resource` that the cipher with this prefix encrypted.

        `provider` and `key_id` name the KMS and the KMS's key; both are empty if no KMS encrypted the data key.
        """
        self._succeeded = _operations.labels(resource, direction, prefix, _OK)
        self._failed = _operations.labels(resource, direction, prefix, _FAILED)
        self._seconds = _seconds.labels(direction, prefix)
        labels = (direction, provider, hashed(key_id), identity_hash()) if provider else ()
        self._uses = _key_uses.labels(*labels) if labels else None
        self._used_at = _key_used_at.labels(*labels) if labels else None

    def succeeded(self, seconds: float, now: int) -> None:
        """Count a use that took `seconds`; `now` is in microseconds since 1970."""
        self._succeeded.inc()
        self._seconds.observe(seconds)
        if self._uses is not None and self._used_at is not None:
            self._uses.inc()
            self._used_at.set(now / 1_000_000)

    def failed(self) -> None:
        """Count a payload that the data key cannot decrypt."""
        self._failed.inc()
