"""Pods that need not be checked: most come from a template, and what was right of the last one is right of this one.

Guarantees:
- Only what was checked without an error or a warning is remembered, under all of the pod that these checks read.
- How its spec is written is remembered with it: the bytes are those that encoding it once more would make.
- The volume of an account's token has another name in each pod. It counts as the same name: no rule tells two valid
  names of one length apart, and every place that has the name is compared. A second such volume keeps its name.
- What is remembered is bounded in bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec

from ctrlmgr.kinds.core.pod.volumes.defaults import TOKEN_VOLUME

_ENTRIES: Final = 128
_LONGEST: Final = 8 * 1024
"""Bytes beyond which a pod is not remembered."""
_is_token_volume = re.compile(f"{TOKEN_VOLUME}[a-z0-9]{{5}}").fullmatch
_ANY_TOKEN_VOLUME: Final = b"\0"  # which nothing is written with in JSON
_encode = msgspec.json.Encoder().encode


class Sight:
    """What is known of all pods that look alike."""

    __slots__ = ("is_sound", "quality", "spec")

    def __init__(self) -> None:
        """Know nothing yet."""
        self.is_sound = False
        """Whether such a pod was found to be without errors, and nothing to warn of."""
        self.quality = ""
        """Its quality of service, empty while that is not known."""
        self.spec: Sequence[bytes] | None = None
        """How its spec is stored: what stands between the names of the token's volume."""


class Seen(NamedTuple):
    """One pod by the looks of it: a `schema.codec.Part`."""

    sight: Sight
    token_volume: bytes
    """Empty for none."""

    def text(self) -> bytes | None:
        """Return how its spec is stored, if that is known."""
        spec = self.sight.spec
        return self.token_volume.join(spec) if spec is not None else None

    def learn(self, text: bytes) -> None:
        """Remember how its spec is stored."""
        self.sight.spec = text.split(self.token_volume) if self.token_volume else (text,)


_remembered = lru_cache(maxsize=_ENTRIES)(lambda _looks: Sight())


def sight_of(pod: Mapping[str, Any]) -> Seen | None:
    """Return what is known of a pod with its defaults; None for one that is not remembered.

    That is a large one, and one whose name matters: the claim of an ephemeral volume is called after it.
    """
    spec, annotations = pod.get("spec") or {}, (pod.get("metadata") or {}).get("annotations")
    looks = _encode((spec, annotations) if annotations else spec)
    if len(looks) > _LONGEST:
        return None
    token_volume = b""
    for volume in spec.get("volumes") or ():
        if volume.get("ephemeral") is not None:
            return None
        name = volume.get("name") or ""
        if not token_volume and _is_token_volume(name):
            token_volume = name.encode()
            looks = looks.replace(token_volume, _ANY_TOKEN_VOLUME)
    return Seen(_remembered(looks), token_volume)
