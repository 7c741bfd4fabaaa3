"""Encodes the protobuf messages of the KMS API v2, and the stored form of a data key that a KMS encrypted.

Guarantees: a message that is decoded and encoded again has the same fields; unknown fields are ignored. A damaged
message raises `BadRequest`.

Source: `k8s.io/kms/apis/v2/api.proto`, apiserver `pkg/storage/value/encrypt/envelope/kmsv2/v2/api.proto`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from ctrlmgr.schema.protobuf.wire import LENGTH, extent, skip, varint, write_number, write_part

SERVICE: Final = "v2.KeyManagementService"
"""The name of the gRPC service."""
PREFIX: Final = "k8s:enc:kms:v2:"
"""The prefix of stored data keys that a KMS encrypted; after the prefix follow the provider's name and the data."""

_SEED: Final = 1
"""The type of a data key from which keys are derived: HKDF_SHA256_XNONCE_AES_GCM_SEED."""


@dataclass(frozen=True)
class Status:
    """The answer of the method Status: `healthz` is "ok", or says what is wrong."""

    version: str = ""
    healthz: str = ""
    key_id: str = ""

    @classmethod
    def decode(cls, data: bytes) -> Status:
        """Return the decoded message."""
        fields = {number: value.decode() for number, value in _fields(data)}
        return cls(fields.get(1, ""), fields.get(2, ""), fields.get(3, ""))

    def encode(self) -> bytes:
        """Return the encoded message."""
        return _text(1, self.version) + _text(2, self.healthz) + _text(3, self.key_id)


@dataclass(frozen=True)
class Encrypted:
    """A value that a KMS encrypted, with the key id and the annotations that the KMS needs to decrypt the value."""

    ciphertext: bytes = b""
    key_id: str = ""
    annotations: Mapping[str, bytes] = field(default_factory=dict)

    @classmethod
    def decode(cls, data: bytes) -> Encrypted:
        """Return the decoded answer of the method Encrypt."""
        return cls._of(data, (1, 2, 3))

    def encode(self) -> bytes:
        """Return the encoded answer of the method Encrypt."""
        return _part(1, self.ciphertext) + _text(2, self.key_id) + _annotations(3, self.annotations)

    @classmethod
    def decode_request(cls, data: bytes) -> Encrypted:
        """Return the decoded request of the method Decrypt."""
        return cls._of(data, (1, 3, 4))

    def encode_request(self, uid: str) -> bytes:
        """Return the encoded request of the method Decrypt."""
        known = _part(1, self.ciphertext) + _text(2, uid) + _text(3, self.key_id)
        return known + _annotations(4, self.annotations)

    @classmethod
    def decode_stored(cls, data: bytes) -> Encrypted:
        """Decode a value from its stored form, an EncryptedObject of kube-apiserver without data."""
        return cls._of(data, (3, 2, 4))

    def encode_stored(self) -> bytes:
        """Encode the value in its stored form, an EncryptedObject of kube-apiserver without data."""
        known = _text(2, self.key_id) + _part(3, self.ciphertext)
        return known + _annotations(4, self.annotations) + write_number(5, _SEED)

    @classmethod
    def _of(cls, data: bytes, numbers: tuple[int, int, int]) -> Encrypted:
        """Decode a message; the fields for ciphertext, key id and annotations have the given numbers."""
        ciphertext, key_id, annotations = b"", "", {}
        for number, value in _fields(data):
            if number == numbers[0]:
                ciphertext = value
            elif number == numbers[1]:
                key_id = value.decode()
            elif number == numbers[2]:
                entry = dict(_fields(value))
                annotations[entry.get(1, b"").decode()] = entry.get(2, b"")
        return cls(ciphertext, key_id, annotations)


def encode_plaintext(plaintext: bytes, uid: str = "") -> bytes:
    """Encode a request of the method Encrypt, or an answer of the method Decrypt; an answer has no `uid`."""
    return _part(1, plaintext) + _text(2, uid)


def decode_plaintext(data: bytes) -> bytes:
    """Return the plaintext in a request of the method Encrypt, or in an answer of Decrypt."""
    return dict(_fields(data)).get(1, b"")


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the number and the value of each field that is a string, bytes or a message."""
    at, end = 0, len(data)
    while at < end:
        tag, at = varint(data, at, end)
        if tag & 7 != LENGTH:
            at = skip(tag, data, at, end, "kms")
            continue
        start, at = extent(data, at, end)
        yield tag >> 3, data[start:at]


def _text(number: int, text: str) -> bytes:
    return _part(number, text.encode())


def _part(number: int, value: bytes) -> bytes:
    """Return an encoded field; return no bytes for an empty value."""
    return write_part(number, value) if value else b""


def _annotations(number: int, annotations: Mapping[str, bytes]) -> bytes:
    entries = (_text(1, key) + _part(2, annotations[key]) for key in sorted(annotations))
    return b"".join(write_part(number, entry) for entry in entries)
