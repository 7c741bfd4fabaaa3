"""Compares our controllers' results with the recorded results; all functions are pure.

Whole objects are compared, except for fields that differ between any two clusters: the API server's metadata (uid,
resourceVersion, creationTimestamp, generation, managedFields) and `IGNORED_ANNOTATIONS`. List items are compared in
order, because packing and sorting are part of Kubernetes' behaviour.
"""

from __future__ import annotations

import difflib
import enum
from collections.abc import Iterator
from typing import Any

import msgspec

from ctrlmgr.api.object import Object

ABSENT = "<absent>"
"""A value that represents a missing value in a comparison."""

IGNORED_ANNOTATIONS = ("endpoints.kubernetes.io/last-change-trigger-time",)
"""Annotations whose values depend on the time and not on the state of the cluster."""

_SERVER_MADE = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink")


class Verdict(enum.Enum):
    """The type of a divergence between the recording and our log."""

    DIFFERS = "differs"
    MISSING = "missing"
    """The object exists in the recording but not in our log."""
    UNEXPECTED = "unexpected"
    """The object exists in our log but not in the recording."""
    UNPAIRED = "unpaired"
    """A recorded write for which ctrlmgr's controllers made no equal write.

    Only a replay that compares every write reports it.
    """
    RESTLESS = "restless"
    """Our controllers did not become quiescent, so their result is unknown."""


class Difference(msgspec.Struct, frozen=True):
    """A path in an object at which the recorded state and our state differ, such as `.subsets[0].addresses[2].ip`."""

    path: str
    recorded: Any
    ours: Any


class Divergence(msgspec.Struct, frozen=True, rename="camel"):
    """A divergence from the recording that was found at `checkpoints` consecutive checkpoints.

    `line` is the line of the divergence's first checkpoint in the recording. A RESTLESS divergence names the controller
    instead of an object.
    """

    checkpoint: str
    line: int
    verdict: Verdict
    resource: str
    namespace: str
    name: str
    differences: tuple[Difference, ...]
    checkpoints: int = 1

    @property
    def subject(self) -> str:
        """The diverging object as kubectl names it, such as `endpoints shop/web`."""
        place = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.resource} {place}"


def comparable(obj: Object) -> dict[str, Any]:
    """Return the fields of an object that are compared."""
    fields = msgspec.json.decode(obj.body)
    metadata = {name: value for name, value in fields["metadata"].items() if name not in _SERVER_MADE}
    annotations = metadata.pop("annotations", None) or {}
    kept = {name: value for name, value in annotations.items() if name not in IGNORED_ANNOTATIONS}
    if kept:
        metadata["annotations"] = kept
    return {**fields, "metadata": metadata}


def differences(recorded: Any, ours: Any, path: str = "") -> Iterator[Difference]:
    """Yield every path at which two JSON values differ, depth first, with the keys in order."""
    if recorded == ours:
        return
    if isinstance(recorded, dict) and isinstance(ours, dict):
        for name in sorted(recorded.keys() | ours.keys()):
            yield from differences(recorded.get(name, ABSENT), ours.get(name, ABSENT), f"{path}.{_quoted(name)}")
    elif isinstance(recorded, list) and isinstance(ours, list):
        yield from _list_differences(recorded, ours, path)
    else:
        yield Difference(path, recorded, ours)


def _list_differences(recorded: list[Any], ours: list[Any], path: str) -> Iterator[Difference]:
    """Align two lists, so that an additional item does not make all later items differ.

    The indexes in the result are those of the recorded list.
    """
    encode = msgspec.json.Encoder(order="deterministic").encode
    matcher = difflib.SequenceMatcher(None, [encode(item) for item in recorded], [encode(item) for item in ours], False)
    for _, at, until, ours_at, ours_until in (block for block in matcher.get_opcodes() if block[0] != "equal"):
        for offset in range(max(until - at, ours_until - ours_at)):
            left = recorded[at + offset] if at + offset < until else ABSENT
            right = ours[ours_at + offset] if ours_at + offset < ours_until else ABSENT
            yield from differences(left, right, f"{path}[{at + offset}]")


def _quoted(name: str) -> str:
    return f'"{name}"' if "." in name or "/" in name else name
