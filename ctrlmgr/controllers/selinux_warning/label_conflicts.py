"""Stores the SELinux label and the policy with which each pod uses each volume, and finds the conflicts.

Guarantees, which are the same as in Kubernetes' `pkg/controller/volume/selinuxwarning/cache` and `…/translator`:
- Two labels conflict if their levels differ. Two labels also conflict if both contain another part, and the values of
  this part differ.
- When a pod is added or changed and conflicts with another pod, the conflict is returned twice: once for each of the
  two pods.

Only one worker may use an instance. Other threads may call the method `conflicts`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from ctrlmgr.api.resource import Key

RECURSIVE: Final = "Recursive"
MOUNT_OPTION: Final = "MountOption"
_LABEL, _POLICY = "SELinuxLabel", "SELinuxChangePolicy"
_LEVEL: Final = 3
"""The index of the level in a label `user:role:type:level`."""
_WARNING: Final = "If both pods land on the same node, only one of them may access the volume."


class Use(NamedTuple):
    """The SELinux label with which a pod uses a volume, and the policy that determines how the files get this label."""

    label: str
    policy: str


class Conflict(NamedTuple):
    """A property whose values differ between two pods with the same volume."""

    name: str
    """The name of the property: SELinuxLabel or SELinuxChangePolicy."""
    pod: Key
    value: str
    other: Key
    other_value: str

    @property
    def reason(self) -> str:
        """The reason of the Event about a conflict."""
        return f"{self.name}Conflict"

    @property
    def message(self) -> str:
        """The message of the Event; the message does not contain the names of pods in other namespaces."""
        if self.pod.namespace == self.other.namespace:
            rest = f"uses the same volume as this pod with {self.name} {_quoted(self.other_value)}. {_WARNING}"
            return f"{self.name} {_quoted(self.value)} conflicts with pod {self.other.name} that {rest}"
        rest = f"uses the same volume as this pod with a different {self.name}. {_WARNING}"
        # As in Kubernetes, no space separates the property from its value.
        return f"{self.name}{_quoted(self.value)} conflicts with another pod that {rest}"


def _quoted(value: str) -> str:
    return f'"{value}"'


def do_conflict(label: str, other: str) -> bool:
    """Return whether two SELinux labels conflict (`ConflictsParsed`)."""
    pairs = [*zip(_parts(label), _parts(other), strict=True)]
    level, other_level = pairs[_LEVEL]
    return level != other_level or any(mine and theirs and mine != theirs for mine, theirs in pairs[:_LEVEL])


def _parts(label: str) -> list[str]:
    parts = label.split(":", _LEVEL)
    return parts + [""] * (_LEVEL + 1 - len(parts))


class VolumeUses:
    """The uses of volumes by pods."""

    def __init__(self) -> None:
        """Create an instance without uses."""
        self._uses: dict[str, dict[Key, Use]] = {}
        """The uses by volume and pod."""
        self._volumes: dict[Key, dict[str, None]] = {}
        """The volumes of each pod."""
        self._drivers: dict[str, str] = {}
        """The CSI driver of each volume; empty for volumes of other plugins."""

    def add(self, volume: str, driver: str, pod: Key, use: Use) -> list[Conflict]:
        """Set how a pod uses a volume, and return the conflicts; if the use is unchanged, return no conflicts."""
        uses = self._uses.get(volume, {})
        if uses.get(pod) == use:
            return []
        self._drivers.setdefault(volume, driver)
        self._volumes.setdefault(pod, {})[volume] = None
        # The dictionary is replaced, because another thread may be reading it for the metrics.
        self._uses[volume] = {**uses, pod: use}
        others = [(other, each) for other, each in uses.items() if other != pod]
        return [conflict for other, each in others for conflict in _between(pod, use, other, each)]

    def remove(self, pod: Key) -> None:
        """Remove all uses of a pod."""
        for volume in self._volumes.pop(pod, ()):
            if left := {key: use for key, use in self._uses[volume].items() if key != pod}:
                self._uses[volume] = left
            else:
                del self._uses[volume], self._drivers[volume]

    def clear(self) -> None:
        """Remove all recorded uses of volumes."""
        self._uses.clear()
        self._volumes.clear()
        self._drivers.clear()

    def pods_of(self, driver: str) -> Iterator[Key]:
        """Yield the pods that use volumes of a CSI driver."""
        volumes = [volume for volume, each in self._drivers.items() if each == driver]
        yield from dict.fromkeys(pod for volume in volumes for pod in self._uses[volume])

    def conflicts(self) -> Iterator[Conflict]:
        """Yield each conflict twice: once for each of its two pods."""
        for uses in [*self._uses.values()]:
            yield from _among(uses)


def _among(uses: Mapping[Key, Use]) -> Iterable[Conflict]:
    pairs = [*uses.items()]
    for at, (pod, use) in enumerate(pairs):
        for other, each in pairs[:at]:
            yield from _between(pod, use, other, each)


def _between(pod: Key, use: Use, other: Key, theirs: Use) -> Iterator[Conflict]:
    if use.policy != theirs.policy:
        yield from _both(_POLICY, pod, use.policy, other, theirs.policy)
    if do_conflict(use.label, theirs.label):
        yield from _both(_LABEL, pod, use.label, other, theirs.label)


def _both(name: str, pod: Key, value: str, other: Key, other_value: str) -> Iterator[Conflict]:
    yield Conflict(name, pod, value, other, other_value)
    yield Conflict(name, other, other_value, pod, value)
