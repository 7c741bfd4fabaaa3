"""What a replay found, for people and for machines."""

from __future__ import annotations

from typing import Any

import msgspec

from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.recording.divergence import Divergence
from ctrlmgr.recording.every_write import Paired


class Unjudged(msgspec.Struct, frozen=True):
    """How often something of an object could not be compared, for a recording does not show what it came from."""

    resource: str
    namespace: str
    name: str
    reason: str
    count: int

    @property
    def subject(self) -> str:
        """What it is of, as kubectl names it."""
        return f"{self.resource} {self.namespace}/{self.name}" if self.namespace else f"{self.resource} {self.name}"


class Report(msgspec.Struct, frozen=True, rename="camel"):
    """The outcome of one replay.

    `events` counts the recorded changes read, `inputs` those of them appended to our log, `reconciles` and
    `writes` what our controllers did with them, `objects_compared` one per object and checkpoint, `decisions_compared`
    those of autoscalers. `unjudged` is what could not be compared. `revision` and `hash` are the log's head afterwards:
    equal for every replay of one recording by one version.
    """

    file: str
    events: int
    inputs: int
    reconciles: int
    writes: int
    checkpoints: int
    objects_compared: int
    decisions_compared: int
    divergences: tuple[Divergence, ...]
    unjudged: tuple[Unjudged, ...]
    revision: Revision
    hash: str
    seconds: float
    paired: tuple[Paired, ...] = ()
    """How many of the recorded controllers' writes ours have a counterpart to, where every write was asked for."""

    @property
    def rate(self) -> float:
        """Recorded events a second."""
        return self.events / self.seconds if self.seconds else 0.0

    def as_json(self) -> dict[str, Any]:
        """Return the whole report as plain JSON values, rate included."""
        return {**msgspec.to_builtins(self), "rate": round(self.rate)}


class Findings:
    """Collects divergences over checkpoints: one that stays as it is is the same one, lasting longer."""

    def __init__(self) -> None:
        """Start with none."""
        self._ended: list[Divergence] = []
        self._open: dict[tuple[Resource, Key], Divergence] = {}

    def open_keys(self, resource: Resource) -> set[Key]:
        """Return what of `resource` diverged at the last checkpoint, so is to be looked at again."""
        return {key for found, key in self._open if found == resource}

    def add(self, resource: Resource, key: Key, divergence: Divergence | None) -> None:
        """Note how an object compares at a checkpoint; None means it is as recorded."""
        known = self._open.pop((resource, key), None)
        if known and divergence and (known.verdict, known.differences) == (divergence.verdict, divergence.differences):
            divergence = msgspec.structs.replace(known, checkpoints=known.checkpoints + 1)
        elif known:
            self._ended.append(known)
        if divergence:
            self._open[resource, key] = divergence

    def add_final(self, divergence: Divergence) -> None:
        """Note a divergence that is not an object's."""
        self._ended.append(divergence)

    def all(self) -> tuple[Divergence, ...]:
        """Return every divergence, in the order of the checkpoints where they began, then by object."""
        found = [*self._ended, *self._open.values()]
        found.sort(key=lambda each: (each.line, each.resource, each.namespace, each.name))
        return tuple(found)
