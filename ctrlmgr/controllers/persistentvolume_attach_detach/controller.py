"""The attach-detach controller: creates and deletes VolumeAttachments, and reports the attached volumes of nodes.

Guarantees, as in Kubernetes (`pkg/controller/volume/attachdetach`, `pkg/volume/csi/csi_attacher.go`):
- For each volume that a pod on a node needs, the controller creates a VolumeAttachment. When the volume's driver
  reports that the volume is attached, the controller adds the volume to the node's status. The controller then records
  an Event about each pod that needs the volume.
- Before a VolumeAttachment is deleted, the volume is removed from the node's status.
- If the driver fails, or another node uses a volume that only one node may use, an Event about each pod that needs the
  volume contains the reason. The module `decide` contains the rules for detaching.

The controller derives its state from the objects, except the times since which volumes are unused or are being
attached. In-tree volumes that were migrated to CSI drivers, and volumes of iSCSI and Fibre Channel, are not attached.
The keys of this controller are the names of nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from ctrlmgr.api.core import Node
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import NODES, PODS, Key
from ctrlmgr.client import EngineClient
from ctrlmgr.clock import Clock
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.claims_of_pods import claims_of
from ctrlmgr.controllers.descriptor import ControllerContext
from ctrlmgr.controllers.events.recorder import NORMAL, WARNING, Recorder
from ctrlmgr.controllers.persistentvolume_attach_detach import DESCRIPTOR, Options
from ctrlmgr.controllers.persistentvolume_attach_detach.attachable import (
    ATTACHMENTS,
    CLAIMS,
    MANAGED,
    VOLUMES,
    Attachable,
    claim_of,
    decode_node,
    node_name,
    node_of,
    volume_name_of,
)
from ctrlmgr.controllers.persistentvolume_attach_detach.decide import (
    ATTACH,
    UNMOUNT,
    CsiVolume,
    NeededVolume,
    NodeState,
    detaching,
    multi_attach_problem,
)
from ctrlmgr.controllers.persistentvolume_attach_detach.volume_metrics import (
    FORCED_DETACHES,
    OUT_OF_SERVICE,
    TIMEOUT,
    TOTAL_VOLUMES,
    VOLUMES_IN_USE,
)
from ctrlmgr.errors import AlreadyExists, CtrlmgrError, NotFound
from ctrlmgr.informer import Change
from ctrlmgr.manager import Controller, Result, Watch
from ctrlmgr.workqueue import ExponentialBackoff

_WORKERS: Final = 4
_MENTIONS: Final = (b'"volumesInUse"', b'"volumesAttached"')
"""The body of every node with volumes contains at least one of these byte sequences."""
_FIRST_RETRY, _LAST_RETRY = 0.5, 122.0
"""The number of seconds between attempts to attach a volume (`exponentialbackoff`)."""


@dataclass
class _Memory:
    """The state of a node that the cached objects do not contain. Times are in monotonic seconds, keyed by volume."""

    unused: dict[str, float] = field(default_factory=dict)
    """For each attached volume that no pod needs, the time since which no pod needs it."""
    attaching: dict[str, float] = field(default_factory=dict)
    """For each volume that a driver is attaching, the time when the attachment began."""
    reported: set[str] = field(default_factory=set)
    """The volumes for which an Event has reported that the volume is attached to another node."""
    compared: float | None = None
    """The time when attached volumes were last compared with their VolumeAttachments."""


@dataclass
class _NodeReconcile:
    """One reconcile of a node."""

    node: NodeState
    memory: _Memory
    client: EngineClient
    now: float
    dues: list[float] = field(default_factory=list)
    """The seconds until the next actions for the node are due."""
    problems: list[str] = field(default_factory=list)


class AttachDetach:
    """Reconciles the volumes of a node."""

    def __init__(self, attachable: Attachable, recorder: Recorder, options: Options, *, clock: Clock) -> None:
        """Create a reconciler that reads from the caches of `attachable`."""
        self._attachable, self._recorder, self._options, self._clock = attachable, recorder, options, clock
        # The state of each node, keyed by the node's name. Only one worker handles a node at a time.
        self._memories: dict[str, _Memory] = {}

    def reconcile(self, key: Key, client: EngineClient) -> Result | None:
        """Attach and detach volumes of a node so that exactly the volumes that its pods need are attached.

        Raises the errors of the API if a request fails, and `CtrlmgrError` if a driver reports an error.
        """
        node = self._attachable.state(key.name)
        if not node.needed and not node.present:
            self._memories.pop(node.name, None)
            return None
        memory = self._memories.setdefault(node.name, _Memory())
        work = _NodeReconcile(node, memory, client, self._clock.monotonic())
        leaving = self._leaving(work)
        attached = [name for name in node.reported if name not in leaving and name not in node.needed]
        attached += [name for name, needed in node.needed.items() if self._is_attached(work, name, needed)]
        self._report(work, attached)
        for name in leaving:
            if _detach(node, name, client) and (reason := self._reason_to_force(work, name)):
                FORCED_DETACHES.labels(reason).inc()
        if work.problems:
            raise CtrlmgrError("; ".join(work.problems))
        return Result(requeue_after=min(work.dues, default=None))

    def _leaving(self, work: _NodeReconcile) -> list[str]:
        """Return the volumes that must be detached from the node now."""
        node, memory = work.node, work.memory
        unused = [name for name in node.present if name not in node.needed]
        memory.unused = {name: memory.unused.get(name, work.now) for name in unused}
        seconds = {name: work.now - since for name, since in memory.unused.items()}
        found = detaching(node, seconds, forces=not self._options.disable_force_detach_on_timeout)
        work.dues += [] if found.due is None else [found.due]
        return [*found.volumes]

    def _reason_to_force(self, work: _NodeReconcile, name: str) -> str:
        """Return the reason to detach a volume even if it is in use; empty if the volume must not be in use."""
        if work.now - work.memory.unused[name] > UNMOUNT and not self._options.disable_force_detach_on_timeout:
            return TIMEOUT
        return OUT_OF_SERVICE if work.node.is_out_of_service else ""

    def _is_attached(self, work: _NodeReconcile, name: str, needed: NeededVolume) -> bool:
        """Return whether a needed volume counts as attached.

        If the volume does not count as attached, create its VolumeAttachment if possible.
        """
        found = self._attachable.attachment(needed.volume, work.node.name)
        was = name in work.node.reported
        if found is not None and found.is_attached and not found.object.is_terminating:
            work.memory.attaching.pop(name, None)
            work.memory.reported.discard(name)
            if not was:
                self._tell(needed, NORMAL, "SuccessfulAttachVolume", "AttachVolume.Attach succeeded", "")
            return True
        if was and not self._is_compared(work):
            return True
        if found is None:
            self._create(work, name, needed)
        elif not found.object.is_terminating:
            self._await(work, name, needed, found.error)
        return False

    def _is_compared(self, work: _NodeReconcile) -> bool:
        """Return whether it is time to compare a node's attached volumes with their VolumeAttachments."""
        if self._options.disable_attach_detach_reconcile_sync:
            return False
        memory, period = work.memory, self._options.attach_detach_reconcile_sync_period
        if memory.compared is None:
            memory.compared = work.now
        left = memory.compared + period - work.now
        if left <= 0:
            memory.compared = None
            return True
        work.dues.append(left)
        return False

    def _create(self, work: _NodeReconcile, name: str, needed: NeededVolume) -> None:
        volume, node = needed.volume, work.node.name
        others = [] if volume.is_shared else self._attachable.elsewhere(volume, node)
        if others:
            if any(is_attached for _, is_attached in others) and name not in work.memory.reported:
                work.memory.reported.add(name)
                self._tell_multi_attach(name, needed, [other for other, _ in others])
            return
        # The cache does not contain the newest state yet. The change that the cache lacks will trigger the next
        # reconcile.
        with suppress(AlreadyExists):
            work.client.create(Object.from_dict(_attachment(volume, node)))
        work.memory.attaching[name] = work.now
        work.dues.append(ATTACH)

    def _await(self, work: _NodeReconcile, name: str, needed: NeededVolume, error: str) -> None:
        """Record an Event if a driver has reported an error, or takes too long."""
        left = work.memory.attaching.setdefault(name, work.now) + ATTACH - work.now
        if not error and left > 0:
            work.dues.append(left)
            return
        del work.memory.attaching[name]
        volume = needed.volume
        late = f"timed out waiting for external-attacher of {volume.driver} CSI driver to attach volume {volume.handle}"
        problem = error or late
        self._tell(needed, WARNING, "FailedAttachVolume", "AttachVolume.Attach failed", f": {problem}")
        work.problems.append(f"attaching {name} to {work.node.name} failed: {problem}")

    def _tell_multi_attach(self, name: str, needed: NeededVolume, others: list[str]) -> None:
        nothing = NeededVolume(needed.volume, ())
        users = [pod for other in others for pod in self._attachable.needed(other).get(name, nothing).pods]
        for pod in needed.pods:
            problem = multi_attach_problem(pod, users)
            self._tell(NeededVolume(needed.volume, [pod]), WARNING, "FailedAttachVolume", "Multi-Attach error", problem)

    def _tell(self, needed: NeededVolume, type_: str, reason: str, what: str, why: str) -> None:
        for pod in needed.pods:
            self._recorder.event(pod, type_, reason, f'{what} for volume "{needed.volume.persistent_volume}" {why}')

    def _report(self, work: _NodeReconcile, attached: list[str]) -> None:
        """Write a node's attached volumes to the node's status; volumes that the status already lists are first.

        If the node was deleted, nothing is written, because a deleted node has no status.
        """
        before = [*work.node.reported]
        ordered = [name for name in before if name in attached] + [name for name in attached if name not in before]
        obj = self._attachable.nodes.get(Key("", work.node.name))
        if obj is None or ordered == before:
            return
        volumes = [{"name": each, "devicePath": ""} for each in ordered] or None
        work.client.patch(obj, {"metadata": {"uid": obj.uid}, "status": {"volumesAttached": volumes}}, "status")

    # The following methods map changes to the nodes to reconcile.

    def of_pod(self, change: Change) -> Iterator[Key]:
        """Yield the name of the node to which a changed pod with claims is bound."""
        if any(True for _ in claims_of(change.object)) and (node := node_name(change.object)):
            yield Key("", node)

    def of_node(self, change: Change) -> Iterator[Key]:
        """Yield the name of a node that was created or deleted, or whose volumes, taints or readiness changed."""
        if change.old is None or change.new is None or _volumes_differ(change.old, change.new):
            yield change.object.key

    def of_claim(self, change: Change) -> Iterator[Key]:
        """Yield the names of the nodes whose pods use a changed claim."""
        yield from _keys(self._attachable.nodes_of_claim(change.object.key))

    def of_volume(self, change: Change) -> Iterator[Key]:
        """Yield the names of the nodes whose pods use a changed PersistentVolume."""
        claim = claim_of(change.object)
        if claim is not None:
            yield from _keys(self._attachable.nodes_of_claim(claim))

    def of_attachment(self, change: Change) -> Iterator[Key]:
        """Yield the name of the node of a changed VolumeAttachment.

        If the VolumeAttachment was deleted, yield all nodes that need its volume.
        """
        yield Key("", node_of(change.object))
        if change.new is None:
            yield from _keys(self._attachable.nodes_of_volume(volume_name_of(change.object)))


def _detach(node: NodeState, name: str, client: EngineClient) -> bool:
    """Delete a volume's VolumeAttachment; return False if it is being deleted already, or does not exist."""
    attachment = node.present[name][1]
    if attachment is None or attachment.object.is_terminating:
        return False
    try:
        client.delete(attachment.object)
    except NotFound:
        return False
    return True


def _keys(nodes: Iterator[str]) -> Iterator[Key]:
    return (Key("", each) for each in dict.fromkeys(nodes))


def _volumes_differ(old: Object, new: Object) -> bool:
    if (MANAGED in old.annotations) != (MANAGED in new.annotations):
        return True
    if not any(each.mentions(word) for each in (old, new) for word in _MENTIONS):
        return False
    return decode_node(old.body) != decode_node(new.body) or old.view(Node).is_ready != new.view(Node).is_ready


def _attachment(volume: CsiVolume, node: str) -> dict[str, object]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "VolumeAttachment",
        "metadata": {"name": volume.attachment(node)},
        "spec": {
            "attacher": volume.driver,
            "nodeName": node,
            "source": {"persistentVolumeName": volume.persistent_volume},
        },
    }


def build(context: ControllerContext, options: Options) -> Controller:
    """Build the controller from its context and options."""
    informers = context.informers
    attachable = Attachable(informers)
    VOLUMES_IN_USE.add(attachable.volumes_in_use)
    TOTAL_VOLUMES.add(attachable.total_volumes)
    reconciler = AttachDetach(attachable, context.recorder(DESCRIPTOR), options, clock=context.clock)
    watches = [
        Watch(informers.informer(PODS), reconciler.of_pod),
        Watch(informers.informer(NODES), reconciler.of_node),
        Watch(informers.informer(CLAIMS), reconciler.of_claim),
        Watch(informers.informer(VOLUMES), reconciler.of_volume),
        Watch(informers.informer(ATTACHMENTS), reconciler.of_attachment),
    ]
    limiter = ExponentialBackoff[Key](_FIRST_RETRY, _LAST_RETRY)
    return assemble(DESCRIPTOR, context, reconciler, watches, workers=_WORKERS, limiter=limiter, reads_own_writes=True)
