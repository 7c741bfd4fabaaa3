"""Computes the hashes in generated names: the hashes of pod templates and of revisions.

Guarantees: `template_hash` and `revision_hash` return exactly the same hashes as kube-controller-manager 1.36
(`pkg/controller/controller_utils.go`, `ComputeHash`; `pkg/controller/history/controller_history.go`,
`HashControllerRevision`). Therefore a cluster that migrates from Kubernetes or to Kubernetes keeps its ReplicaSets and
ControllerRevisions.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from ctrlmgr.controllers.workloads.go_print import print_value

_OFFSET: Final = 2166136261
_PRIME: Final = 16777619
_LONGEST_REMEMBERED: Final = 16 * 1024
"""The maximum size of a template whose hash is cached, in bytes."""
_MASK: Final = 2**32 - 1
_SAFE: Final = "bcdfghjklmnpqrstvwxz2456789"
"""The alphabet of generated names; it has no vowels, so that no words occur, and no similar characters
(`rand.alphanums`).

"""

_encode = msgspec.json.Encoder(order="sorted").encode
_decode = msgspec.json.Decoder().decode


def fnv1a_32(data: bytes) -> int:
    """Return the 32-bit FNV-1a hash of bytes."""
    value = _OFFSET
    for byte in data:
        value = ((value ^ byte) * _PRIME) & _MASK
    return value


def fnv1_32(data: bytes) -> int:
    """Return the 32-bit FNV-1 hash of bytes; the algorithm multiplies before the XOR."""
    value = _OFFSET
    for byte in data:
        value = ((value * _PRIME) & _MASK) ^ byte
    return value


def safe_encoded(text: str) -> str:
    """Encode each byte of `text` in the alphabet of generated names (`rand.SafeEncodeString`)."""
    return "".join(_SAFE[byte % len(_SAFE)] for byte in text.encode())


def template_hash(template: Mapping[str, Any], collisions: int | None) -> str:
    """Return the hash of a stored PodTemplateSpec; `collisions` is the `collisionCount` of the owner."""
    written = _encode(template)
    return (_template_hash if len(written) <= _LONGEST_REMEMBERED else _template_hash.__wrapped__)(written, collisions)


@lru_cache(maxsize=512)
def _template_hash(template: bytes, collisions: int | None) -> str:
    data = print_value("v1.PodTemplateSpec", _decode(template)).encode()
    if collisions is not None:
        data += (collisions & _MASK).to_bytes(4, "little") + bytes(4)
    return safe_encoded(str(fnv1a_32(data)))


def revision_hash(data: bytes, collisions: int | None) -> str:
    """Return the hash of a ControllerRevision's data (JSON); `collisions` is the `collisionCount` of the owner."""
    return safe_encoded(str(fnv1_32(data if collisions is None else data + str(collisions).encode())))
