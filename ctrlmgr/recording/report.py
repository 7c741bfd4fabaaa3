"""The report of a replay."""

from __future__ import annotations

from typing import Any

import msgspec

from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.recording.divergence import Divergence
from ctrlmgr.recording.write_comparison import PairCounts


class UncomparedCounts(msgspec.Struct, frozen=True):
    """How often an object could not be compared, because the recording lacks the necessary inputs."""

    resource: str
    namespace: str
    name: str
    reason: str
    count: int

    @property
    def subject(self) -> str:
        """The object in kubectl's form."""
        return f"{self.resource} {self.namespace}/{self.name}" if self.namespace else f"{self.resource} {self.name}"


class Report(msgspec.Struct, frozen=True, rename="camel"):
    """The result of one replay.

    `events` counts the recorded changes, `inputs` those appended to our log, `reconciles` and `writes` those of our
    controllers, `objects_compared` one per object and checkpoint, `decisions_compared` those of autoscalers. `unjudged`
    could not be compared. `revision` and `hash` are the log's head afterwards: equal for every replay of one recording
    by one version.
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
    unjudged: tuple[UncomparedCounts, ...]
    revision: Revision
    hash: str
    seconds: float
    paired: tuple[PairCounts, ...] = ()
    """The numbers of paired writes, if every write was compared."""

    @property
    def rate(self) -> float:
        """Recorded events per second."""
        return self.events / self.seconds if self.seconds else 0.0

    def as_json(self) -> dict[str, Any]:
        """Return the report as plain JSON values, including the rate."""
        return {**msgspec.to_builtins(self), "rate": round(self.rate)}


class Findings:
    """Collects divergences over checkpoints; an unchanged one is counted as the same, with a longer duration."""

    def __init__(self) -> None:
        """Start empty."""
        self._ended: list[Divergence] = []
        self._open: dict[tuple[Resource, Key], Divergence] = {}

    def open_keys(self, resource: Resource) -> set[Key]:
        """Return the keys of `resource` that diverged at the last checkpoint and must be compared again."""
        return {key for found, key in self._open if found == resource}

    def add(self, resource: Resource, key: Key, divergence: Divergence | None) -> None:
        """Record the comparison of an object at a checkpoint; None if both sides are equal."""
        known = self._open.pop((resource, key), None)
        if known and divergence and (known.verdict, known.differences) == (divergence.verdict, divergence.differences):
            divergence = msgspec.structs.replace(known, checkpoints=known.checkpoints + 1)
        elif known:
            self._ended.append(known)
        if divergence:
            self._open[resource, key] = divergence

    def add_final(self, divergence: Divergence) -> None:
        """Record a divergence that is not an object's."""
        self._ended.append(divergence)

    def all(self) -> tuple[Divergence, ...]:
        """Return all divergences, sorted by their first checkpoint, then by object."""
        found = [*self._ended, *self._open.values()]
        found.sort(key=lambda each: (each.line, each.resource, each.namespace, each.name))
        return tuple(found)
