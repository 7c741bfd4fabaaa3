"""The report of a replay."""

from __future__ import annotations

from typing import Any

import msgspec

from ctrlmgr.api.resource import Key, Resource, Revision
from ctrlmgr.recording.object_comparison import Divergence
from ctrlmgr.recording.write_pairing import PairCounts


class UncomparedCounts(msgspec.Struct, frozen=True):
    """The number of times that an object could not be compared because the recording lacks inputs."""

    resource: str
    namespace: str
    name: str
    reason: str
    count: int

    @property
    def subject(self) -> str:
        """The name of the object in kubectl's form."""
        return f"{self.resource} {self.namespace}/{self.name}" if self.namespace else f"{self.resource} {self.name}"


class Report(msgspec.Struct, frozen=True, rename="camel"):
    """The result of one replay.

    `events` is the number of recorded changes, and `inputs` is the number of changes that were appended to our log.
    `reconciles` and `writes` count what our controllers did, `objects_compared` counts one per object and checkpoint,
    and `decisions_compared` counts autoscalers' decisions. `unjudged` counts objects that could not be compared.
    `revision` and `hash` are those of the log's head after the replay. All replays of one recording by one version of
    ctrlmgr give the same revision and hash.
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
    """The numbers of writes with and without a counterpart, if every write was compared."""

    @property
    def rate(self) -> float:
        """The number of recorded events that were replayed per second."""
        return self.events / self.seconds if self.seconds else 0.0

    def as_json(self) -> dict[str, Any]:
        """Return the report as plain JSON values, including the rate."""
        return {**msgspec.to_builtins(self), "rate": round(self.rate)}


class Findings:
    """Collects divergences over checkpoints.

    A divergence that consecutive checkpoints find counts as one divergence with a longer duration.
    """

    def __init__(self) -> None:
        """Create an empty instance."""
        self._ended: list[Divergence] = []
        self._open: dict[tuple[Resource, Key], Divergence] = {}

    def open_keys(self, resource: Resource) -> set[Key]:
        """Return the keys of `resource` that diverged at the last checkpoint and must be compared again."""
        return {key for found, key in self._open if found == resource}

    def add(self, resource: Resource, key: Key, divergence: Divergence | None) -> None:
        """Record the result of comparing an object at a checkpoint; None means that both sides are equal."""
        known = self._open.pop((resource, key), None)
        if known and divergence and (known.verdict, known.differences) == (divergence.verdict, divergence.differences):
            divergence = msgspec.structs.replace(known, checkpoints=known.checkpoints + 1)
        elif known:
            self._ended.append(known)
        if divergence:
            self._open[resource, key] = divergence

    def add_final(self, divergence: Divergence) -> None:
        """Record a divergence that does not concern an object, such as a looping controller."""
        self._ended.append(divergence)

    def all(self) -> tuple[Divergence, ...]:
        """Return all divergences, sorted by their first checkpoint, then by object."""
        found = [*self._ended, *self._open.values()]
        found.sort(key=lambda each: (each.line, each.resource, each.namespace, each.name))
        return tuple(found)
