"""The volume manager of simulated kubelets: finds the volumes that a pod waits for, and that a node uses.

Guarantees, as in Kubernetes (`pkg/kubelet/volumemanager`): the containers of a pod start only after the pod's claims
are bound and their volumes are attached to the node. The node's status lists the volumes that its pods need, so that
the attach-detach controller does not detach them. If a claim waits for the expansion of its file system, the volume is
expanded as soon as a pod that uses the claim runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import PODS, Key
from ctrlmgr.client import EngineClient
from ctrlmgr.clock import Clock
from ctrlmgr.controllers.claims_of_pods import claims_of, pods_of_claim
from ctrlmgr.controllers.events.recorder import NORMAL, WARNING, Recorder
from ctrlmgr.controllers.persistentvolume_attach_detach.attachable import (
    CLAIMS,
    MANAGED,
    VOLUMES,
    Attachable,
    decode_node,
    has_ended,
    node_name,
)
from ctrlmgr.controllers.pods_of_nodes import pods_of_node
from ctrlmgr.controllers.simulated_csi_resizer.decide import is_node_pending, with_expanded_file_system
from ctrlmgr.errors import NotFound
from ctrlmgr.informer import Change, Informers

MOUNT_TIME: Final = 123.0
"""The number of seconds after which an Event reports missing volumes of a pod (`podAttachAndMountTimeout`)."""
_MENTION: Final = b'"volumesAttached"'


class PodVolumes:
    """Reads and reports the volumes of the pods on simulated nodes."""

    def __init__(self, informers: Informers, recorder: Recorder, *, clock: Clock) -> None:
        """Create an instance that reads these caches; the caller must do this before the caches sync."""
        self._attachable = Attachable(informers)
        self._pods, self._claims = informers.informer(PODS).lister, informers.informer(CLAIMS).lister
        self._volumes = informers.informer(VOLUMES).lister
        self._recorder, self._clock = recorder, clock
        # The time in monotonic seconds since which each pod waits for volumes.
        self._waiting: dict[Key, float] = {}

    def wait(self, pod: Object, node: Object) -> float | None:
        """Return the seconds until a pod's missing volumes are reported again; None if the pod has all its volumes."""
        missing = self._missing(pod, node)
        if not missing:
            self._waiting.pop(pod.key, None)
            return None
        now = self._clock.monotonic()
        left = self._waiting.setdefault(pod.key, now) + MOUNT_TIME - now
        if left > 0:
            return left
        self._waiting[pod.key] = now
        names = " ".join(missing)
        message = (
            f"Unable to attach or mount volumes: unmounted volumes=[{names}], unattached volumes=[{names}], "
            "failed to process volumes=[]: timed out waiting for the condition"
        )
        self._recorder.event(pod, WARNING, "FailedMount", message)
        return MOUNT_TIME

    def forget(self, pod: Key) -> None:
        """Remove the state of a deleted pod."""
        self._waiting.pop(pod, None)

    def _missing(self, pod: Object, node: Object) -> list[str]:
        """Return the names of a pod's volumes that are not bound, or not attached to the node."""
        if not any(True for _ in claims_of(pod)):
            return []
        attached = decode_node(node.body).reported
        return [
            name
            for name, claim in _claims_by_volume(pod)
            if not self._attachable.is_available(Key(pod.namespace, claim), attached)
        ]

    # The following methods handle nodes.

    def report(self, node: Object, client: EngineClient) -> None:
        """Write the volumes that a node uses to its status, and expand file systems; raises the errors of the API."""
        if MANAGED not in node.annotations:
            client.patch(node, {"metadata": {"uid": node.uid, "annotations": {MANAGED: "true"}}})
            return
        desired = sorted(self._attachable.needed(node.name))
        if desired != sorted(decode_node(node.body).in_use):
            client.patch(node, {"metadata": {"uid": node.uid}, "status": {"volumesInUse": desired or None}}, "status")
        for pod in pods_of_node(self._pods, node.name):
            for each in claims_of(pod):
                self._expand(pod, Key(pod.namespace, each.name), client)

    def _expand(self, pod: Object, key: Key, client: EngineClient) -> None:
        claim = self._claims.get(key)
        if claim is None or not is_node_pending(claim.to_dict()) or _phase(pod) != "Running":
            return
        volume = self._volumes.get(Key("", claim.to_dict()["spec"].get("volumeName") or ""))
        if volume is None:
            return
        with suppress(NotFound):
            client.update(Object.from_dict(with_expanded_file_system(claim.to_dict(), volume.to_dict())), "status")
            what = f'MountVolume.NodeExpandVolume succeeded for volume "{volume.name}" {node_name(pod)}'
            self._recorder.event(pod, NORMAL, "FileSystemResizeSuccessful", what)

    # The following methods map changes to the keys of reconciles.

    def keys_of_claim(self, change: Change) -> Iterator[Key]:
        """Yield the keys of pods that wait for a changed claim, and of nodes that must expand its file system."""
        for pod in pods_of_claim(self._pods, change.object.key):
            node = node_name(pod)
            if node and (pod.key in self._waiting or is_node_pending(change.object.to_dict())):
                yield from (pod.key, Key("", node))

    def keys_of_node(self, change: Change) -> Iterator[Key]:
        """Yield the keys of the waiting pods of a node whose attached volumes changed."""
        new, old = change.new, change.old
        if new is None or not any(each is not None and each.mentions(_MENTION) for each in (new, old)):
            return
        if old is None or decode_node(old.body).reported != decode_node(new.body).reported:
            yield from (key for key in [*self._waiting] if self._is_on(key, new.name))

    def keys_of_pod(self, change: Change) -> Iterator[Key]:
        """Yield the key of the node of a pod with claims that was bound, began to run, has ended or was deleted."""
        new, old = change.new, change.old
        if not any(True for _ in claims_of(change.object)) or not node_name(change.object):
            return
        if new is None or old is None or _state(new) != _state(old):
            yield Key("", node_name(change.object))

    def _is_on(self, key: Key, node: str) -> bool:
        pod = self._pods.get(key)
        return pod is not None and node_name(pod) == node


def _claims_by_volume(pod: Object) -> Iterator[tuple[str, str]]:
    """Yield the name of each volume of a pod that is backed by a claim, with the name of the claim."""
    for each in pod.to_dict()["spec"].get("volumes") or ():
        if "persistentVolumeClaim" in each:
            yield each["name"], each["persistentVolumeClaim"]["claimName"]
        elif "ephemeral" in each:
            yield each["name"], f"{pod.name}-{each['name']}"


def _phase(pod: Object) -> str:
    status: dict[str, Any] = pod.to_dict().get("status") or {}
    return str(status.get("phase", ""))


def _state(pod: Object) -> tuple[str, bool, str]:
    return node_name(pod), has_ended(pod), _phase(pod)
