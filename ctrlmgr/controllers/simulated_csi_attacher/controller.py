"""The attacher of the simulated CSI driver: reconciles VolumeAttachments in the same way as `external-attacher`.

Guarantees: before a volume is attached, its VolumeAttachment and its PersistentVolume get the attacher's finalizer. If
a VolumeAttachment is being deleted, its volume is detached at once. An annotation of a simulated node can delay the
attaching of volumes, or make it fail. The delay begins with the creation of the VolumeAttachment. A change of the
annotation triggers the reconcile of the node's VolumeAttachments.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import NODES, Key
from ctrlmgr.client import EngineClient
from ctrlmgr.clock import Clock, format_time_seconds, parse_time
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.descriptor import ControllerContext, NoOptions
from ctrlmgr.controllers.persistentvolume_attach_detach.attachable import (
    ATTACHMENTS,
    VOLUMES,
    node_of,
    volume_name_of,
)
from ctrlmgr.controllers.simulated_csi_attacher import DESCRIPTOR
from ctrlmgr.controllers.simulated_csi_provisioner.decide import ATTACHED
from ctrlmgr.errors import NotFound
from ctrlmgr.informer import Change, Informers
from ctrlmgr.manager import Controller, Result, Watch, own_key
from ctrlmgr.simulation.csi_objects import DRIVER
from ctrlmgr.simulation.nodes import attach_delay, attaching_fails

_BY_NODE: Final = "node of an attachment"
_WORKERS: Final = 4
_SECOND: Final = 1_000_000
_RETRY: Final = 10.0
"""The number of seconds between two attempts to attach a volume."""
_REFUSED: Final = "rpc error: code = Internal desc = the node's annotation says attach error"


class Attacher:
    """Reconciles the VolumeAttachments of the simulated CSI driver."""

    def __init__(self, informers: Informers, *, clock: Clock) -> None:
        """Create a reconciler that reads these caches; the caller must do this before the caches sync."""
        attachments = informers.informer(ATTACHMENTS)
        attachments.add_index(_BY_NODE, lambda each: [node_of(each)])
        self._attachments = attachments.lister
        self._volumes, self._nodes = informers.informer(VOLUMES).lister, informers.informer(NODES).lister
        self._clock = clock

    def reconcile(self, key: Key, client: EngineClient) -> Result | None:
        """Attach or detach the volume of a VolumeAttachment; raises the errors of the API if a write fails."""
        attachment = self._attachments.get(key)
        if attachment is None or attachment.to_dict()["spec"]["attacher"] != DRIVER:
            return None
        try:
            if not attachment.is_terminating:
                return self._attach(attachment, client)
            self._detach(attachment, client)
        except NotFound:
            pass  # The VolumeAttachment or the volume was deleted.
        return None

    def _detach(self, attachment: Object, client: EngineClient) -> None:
        held = attachment.metadata.finalizers or []
        if ATTACHED in held:
            client.update(attachment.with_metadata(finalizers=[each for each in held if each != ATTACHED]))

    def _attach(self, attachment: Object, client: EngineClient) -> Result | None:
        status = attachment.to_dict().get("status") or {}
        if status.get("attached"):
            return None
        problem, wait = self._problem(attachment), self._wait(attachment)
        self._hold(attachment, client)
        if problem:
            if (status.get("attachError") or {}).get("message") != problem:
                error = {"message": problem, "time": format_time_seconds(self._clock.now())}
                self._report(attachment, {"attached": False, "attachError": error}, client)
            return Result(requeue_after=_RETRY)
        if wait > 0:
            return Result(requeue_after=wait)
        self._report(attachment, {"attached": True, "attachError": None}, client)
        return None

    def _report(self, attachment: Object, status: dict[str, Any], client: EngineClient) -> None:
        client.patch(attachment, {"metadata": {"uid": attachment.uid}, "status": status}, "status")

    def _hold(self, attachment: Object, client: EngineClient) -> None:
        """Add the attacher's finalizer to a VolumeAttachment and its volume."""
        volume = self._volumes.get(Key("", volume_name_of(attachment)))
        for each in (attachment, volume):
            if each is not None and ATTACHED not in (each.metadata.finalizers or ()):
                client.patch(each, {"metadata": {"uid": each.uid, "finalizers": [ATTACHED]}})

    def _problem(self, attachment: Object) -> str:
        """Return the reason why a volume cannot be attached; empty if the volume can be attached."""
        name, node = volume_name_of(attachment), self._nodes.get(Key("", node_of(attachment)))
        if self._volumes.get(Key("", name)) is None:
            return f'could not get PersistentVolume: persistentvolume "{name}" not found'
        if node is None:
            return f'could not get node ID of node {node_of(attachment)}: node "{node_of(attachment)}" not found'
        return _REFUSED if attaching_fails(node.annotations) else ""

    def _wait(self, attachment: Object) -> float:
        """Return the seconds until a volume may be attached."""
        node = self._nodes.get(Key("", node_of(attachment)))
        created = parse_time(attachment.metadata.creation_timestamp or "")
        delay = attach_delay(node.annotations) if node is not None else 0.0
        return delay - (self._clock.now() - created) / _SECOND

    def of_node(self, change: Change) -> Iterator[Key]:
        """Yield the keys of the VolumeAttachments of a node that was created or whose annotations changed."""
        new, old = change.new, change.old
        if new is not None and (old is None or old.annotations != new.annotations):
            yield from (each.key for each in self._attachments.by_index(_BY_NODE, new.name))


def build(context: ControllerContext, options: NoOptions) -> Controller:
    """Build the controller from its context and options."""
    informers = context.informers
    attacher = Attacher(informers, clock=context.clock)
    watches = [
        Watch(informers.informer(ATTACHMENTS), own_key),
        Watch(informers.informer(NODES), attacher.of_node),
    ]
    return assemble(DESCRIPTOR, context, attacher, watches, workers=_WORKERS)
