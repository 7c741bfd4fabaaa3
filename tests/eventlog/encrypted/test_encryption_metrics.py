"""Tests of the metrics of encryption: how often and when each key of a KMS was used, and the number of data keys."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from random import Random
from typing import Any

import pytest
from prometheus_client import REGISTRY

from ctrlmgr.api.resource import SECRETS
from ctrlmgr.encryption.key_ciphers import AesGcm, KeyCipher
from ctrlmgr.encryption.key_providers import KeyProviders
from ctrlmgr.encryption.kms.kms_cipher import KmsCipher, identity_hash
from ctrlmgr.errors import LogCorrupt, LogUnavailable
from ctrlmgr.eventlog.encrypted.data_keys import DataKey
from ctrlmgr.eventlog.encrypted.payload_codec import PayloadCodec
from ctrlmgr.testing import FakeClock
from tests.encryption.kms.test_kms_cipher import Client
from tests.eventlog.encrypted.test_payload_codec import secret

PLACE = (str(SECRETS), "shop", "db")
BODY = secret("one").body
RANDOM = Random(1).randbytes


class MemoryKeys:
    """A table of data keys in memory."""

    def __init__(self) -> None:
        self.rows: list[DataKey] = []

    def all(self) -> Sequence[DataKey]:
        return self.rows

    def add(self, key: DataKey) -> None:
        self.rows.append(key)

    def rewrap(self, key: DataKey, wrapped: str, now: int) -> bool:
        raise NotImplementedError


class Stage:
    """A codec whose data keys a KMS encrypts."""

    def __init__(self, cipher: KeyCipher | None = None) -> None:
        self.clock = FakeClock()
        self.client = Client()
        self.client.size = 64
        client: Any = self.client
        self.cipher = cipher or KmsCipher("example", client, self.clock)
        self.keys = MemoryKeys()
        self.codec = self.new_codec()

    def new_codec(self) -> PayloadCodec:
        return PayloadCodec(KeyProviders({SECRETS: [self.cipher]}), self.keys, clock=self.clock, random=RANDOM)


class Deltas:
    """The changes of metrics since an instance was created."""

    def __init__(self) -> None:
        self._before = self._samples()

    @staticmethod
    def _samples() -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for metric in REGISTRY.collect()
            for sample in metric.samples
        }

    def of(self, name: str, **labels: str) -> float:
        key = name, frozenset(labels.items())
        return self._samples().get(key, 0.0) - self._before.get(key, 0.0)


@pytest.fixture
def stage() -> Stage:
    return Stage()


@pytest.fixture
def deltas(stage: Stage) -> Deltas:
    return Deltas()


def of_key(name: str, direction: str) -> dict[str, str]:
    return {
        "transformation_type": direction,
        "provider_name": "example",
        "key_id_hash": f"sha256:{sha256(name.encode()).hexdigest()}",
        "apiserver_id_hash": identity_hash(),
    }


def operations(direction: str, prefix: str, status: str = "OK") -> dict[str, str]:
    return {
        "resource": "secrets",
        "transformation_type": direction,
        "transformer_prefix": prefix,
        "status": status,
    }


def test_each_use_of_a_kms_key_is_counted(stage: Stage, deltas: Deltas) -> None:
    stored = stage.codec.stored(PLACE, BODY)
    for _ in range(2):
        assert stage.codec.plain(PLACE, stored) == BODY
    total = "apiserver_envelope_encryption_key_id_hash_total"
    assert deltas.of(total, **of_key("key-1", "to_storage")) == 1
    assert deltas.of(total, **of_key("key-1", "from_storage")) == 2
    prefix = "k8s:enc:kms:v2:example:"
    name = "apiserver_storage_transformation_operations_total"
    assert deltas.of(name, **operations("from_storage", prefix)) == 2
    seconds = "apiserver_storage_transformation_duration_seconds_count"
    assert deltas.of(seconds, transformation_type="to_storage", transformer_prefix=prefix) == 1


def test_the_time_of_the_last_use_is_shown(stage: Stage) -> None:
    stored = stage.codec.stored(PLACE, BODY)
    stage.clock.step(5)
    stage.codec.plain(PLACE, stored)
    name = "apiserver_envelope_encryption_key_id_hash_last_timestamp_seconds"
    times = [REGISTRY.get_sample_value(name, of_key("key-1", each)) for each in ("to_storage", "from_storage")]
    assert times == [stage.clock.now() / 1_000_000 - 5, stage.clock.now() / 1_000_000]


def test_after_a_renewal_the_new_key_is_counted(stage: Stage, deltas: Deltas) -> None:
    stage.codec.stored(PLACE, BODY)
    stage.client.answer = type(stage.client.answer)("v2", "ok", "key-2")
    assert isinstance(stage.cipher, KmsCipher)
    stage.cipher.check(stage.codec.renew)
    stage.codec.stored(PLACE, BODY)
    total = "apiserver_envelope_encryption_key_id_hash_total"
    assert [deltas.of(total, **of_key(each, "to_storage")) for each in ("key-1", "key-2")] == [1, 1]


def test_a_damaged_payload_is_counted_as_a_failure(stage: Stage, deltas: Deltas) -> None:
    stored = stage.codec.stored(PLACE, BODY)
    with pytest.raises(LogCorrupt):
        stage.codec.plain(("secrets", "shop", "other"), stored)
    failed = operations("from_storage", "k8s:enc:kms:v2:example:", "unknown-non-grpc")
    assert deltas.of("apiserver_storage_transformation_operations_total", **failed) == 1


def test_data_keys_and_calls_of_the_kms_are_counted(stage: Stage, deltas: Deltas) -> None:
    stage.codec.stored(PLACE, BODY)
    size = "apiserver_envelope_encryption_dek_source_cache_size"
    assert REGISTRY.get_sample_value(size, {"provider_name": "example"}) == 1
    assert deltas.of("apiserver_storage_data_key_generation_duration_seconds_count") == 1
    misses = "apiserver_storage_envelope_transformation_cache_misses_total"
    assert deltas.of(misses) == 0
    stage.new_codec().check()
    assert deltas.of(misses) == 1


def test_a_data_key_that_cannot_be_added_is_counted(stage: Stage, deltas: Deltas) -> None:
    stage.client.encrypted_with = "another key"
    with pytest.raises(LogUnavailable):
        stage.codec.stored(PLACE, BODY)
    assert deltas.of("apiserver_storage_data_key_generation_failures_total") == 1


def test_without_a_kms_only_transformations_are_counted() -> None:
    stage = Stage(AesGcm("key1", b"k" * 32, RANDOM))
    deltas = Deltas()
    stage.codec.plain(PLACE, stage.codec.stored(PLACE, BODY))
    name = "apiserver_storage_transformation_operations_total"
    counts = [deltas.of(name, **operations(each, "k8s:enc:aesgcm:v1:key1:")) for each in ("to_storage", "from_storage")]
    assert counts == [1, 1]
    assert deltas.of("apiserver_storage_envelope_transformation_cache_misses_total") == 0
