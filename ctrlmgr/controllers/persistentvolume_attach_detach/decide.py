"""Decides which volumes to attach to a node, and which volumes to detach from it, with pure functions.

Guarantees, which are the same as in Kubernetes' `pkg/controller/volume/attachdetach/reconciler/reconciler.go`:
- A volume that no pod of the node needs is detached when the node no longer uses it. If the node is out of service, or
  has not been ready for `UNMOUNT` seconds, the volume is detached even while the node uses it.
- A volume that only one node may use is attached only if it is not attached to another node.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ctrlmgr.api.object import Object

UNMOUNT: Final = 360.0
"""The number of seconds after which a volume is detached from a node that is not ready, even if the node uses the
volume (`ReconcilerMaxWaitForUnmountDuration`).
"""
ATTACH: Final = 120.0
"""The number of seconds that a driver may take to attach a volume before a delay is reported (`csiTimeout`)."""
_PREFIX: Final = "kubernetes.io/csi/"


class CsiVolume(NamedTuple):
    """A volume that a CSI driver attaches to nodes."""

    driver: str
    handle: str
    persistent_volume: str = ""
    """The name of the volume's PersistentVolume; empty if the name is unknown."""
    is_shared: bool = False
    """Whether the volume may be attached to several nodes."""

    @property
    def unique_name(self) -> str:
        """The unique name of the volume in the statuses of nodes."""
        return f"{_PREFIX}{self.driver}^{self.handle}"

    def attachment(self, node: str) -> str:
        """Return the name of the volume's VolumeAttachment for a node (`getAttachmentName`)."""
        return f"csi-{hashlib.sha256(f'{self.handle}{self.driver}{node}'.encode()).hexdigest()}"


def volume_of(unique_name: str) -> CsiVolume | None:
    """Return the volume that has this unique name in a node's status.

    The result is None if the name belongs to another volume plugin.
    """
    driver, mark, handle = unique_name.removeprefix(_PREFIX).partition("^")
    return CsiVolume(driver, handle) if mark and unique_name.startswith(_PREFIX) else None


class Attachment(NamedTuple):
    """A VolumeAttachment."""

    object: Object
    is_attached: bool
    error: str = ""
    """The error message of a driver that could not attach the volume; otherwise an empty string."""


class NeededVolume(NamedTuple):
    """A volume that pods of a node need, together with these pods."""

    volume: CsiVolume
    pods: Sequence[Object]


@dataclass
class NodeState:
    """The volumes of a node, keyed by their unique names."""

    name: str
    needed: Mapping[str, NeededVolume] = field(default_factory=dict)
    present: Mapping[str, tuple[CsiVolume, Attachment | None]] = field(default_factory=dict)
    """The volumes that are or may be attached, keyed by their unique names. Each value contains the VolumeAttachment,
    or None if the VolumeAttachment does not exist.
    """
    reported: Sequence[str] = ()
    """The volumes that the node's status lists as attached."""
    in_use: Collection[str] = ()
    is_ready: bool = False
    is_out_of_service: bool = False


class Detaching(NamedTuple):
    """The volumes to detach now, and the seconds until the next volume may be due.

    If no volume becomes due without a change, the seconds are None.
    """

    volumes: Mapping[str, Attachment | None]
    due: float | None = None


def detaching(node: NodeState, unused: Mapping[str, float], *, forces: bool) -> Detaching:
    """Return the volumes to detach; `unused` contains the seconds for which each volume has not been needed.

    If `forces` is set, volumes that an unready node uses are detached after `UNMOUNT` seconds.
    """
    found: dict[str, Attachment | None] = {}
    left: list[float] = []
    for name, seconds in unused.items():
        is_forced = forces and not node.is_ready and seconds >= UNMOUNT
        if name in node.in_use and not is_forced and not node.is_out_of_service:
            left += [UNMOUNT - seconds] if forces and seconds < UNMOUNT else []
        else:
            found[name] = node.present[name][1]
    return Detaching(found, min(left, default=None))


def multi_attach_problem(pod: Object, others: Sequence[Object]) -> str:
    """Return the message about a pod whose volume is attached to another node.

    The argument `others` contains the pods on the other node that need the volume. The message does not contain names
    of pods in other namespaces.
    """
    if not others:
        return "Volume is already exclusively attached to one node and can't be attached to another"
    local = [each.name for each in others if each.namespace == pod.namespace]
    elsewhere = len(others) - len(local)
    if not local:
        return f"Volume is already used by {elsewhere} pod(s) in different namespaces"
    text = f"Volume is already used by pod(s) {', '.join(local)}"
    return f"{text} and {elsewhere} pod(s) in different namespaces" if elsewhere else text
