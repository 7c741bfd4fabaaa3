"""Determines from the caches which volumes the pods of a node need, and which volumes are attached.

Guarantees, as in Kubernetes (`pkg/controller/volume/attachdetach/util`, `pkg/volume/csi`): only volumes of CSI drivers
are attached, and only through bound claims. A volume is not attached if its CSIDriver object does not require
attaching. A volume is also not attached if the node lacks the annotation with which its kubelet delegates attaching to
this controller. A pod needs its volumes until the pod has ended. A pod that is being deleted needs its volumes until
none of its containers runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from ctrlmgr.api.core import Node
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import NODES, PODS, Key, Resource
from ctrlmgr.controllers.claims_of_pods import claims_of, index_by_claim, pods_of_claim
from ctrlmgr.controllers.persistentvolume_attach_detach.decide import (
    Attachment,
    CsiVolume,
    NeededVolume,
    NodeState,
    volume_of,
)
from ctrlmgr.controllers.persistentvolume_attach_detach.volume_metrics import ACTUAL, DESIRED, plugin_name
from ctrlmgr.controllers.pods_of_nodes import index_by_node, pods_of_node
from ctrlmgr.controllers.workloads.controlled_pods import is_controlled_by
from ctrlmgr.informer import Informers

CLAIMS: Final = Resource("", "persistentvolumeclaims")
VOLUMES: Final = Resource("", "persistentvolumes")
DRIVERS: Final = Resource("storage.k8s.io", "csidrivers")
ATTACHMENTS: Final = Resource("storage.k8s.io", "volumeattachments")
MANAGED: Final = "volumes.kubernetes.io/controller-managed-attach-detach"
"""The annotation that marks nodes whose kubelet delegates attaching to this controller."""
_OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"
_ENDED: Final = ("Succeeded", "Failed")
_INLINE: Final = b'"csi"'
"""The body of every pod with inline volumes of CSI drivers contains this byte sequence."""
_BY_NODE: Final = "node"
_BY_VOLUME: Final = "volume"


class _Source(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    driver: str = ""
    volume_handle: str = ""


class _Reference(msgspec.Struct, frozen=True, gc=False):
    namespace: str = ""
    name: str = ""
    uid: str = ""


class _VolumeSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    csi: _Source | None = None
    access_modes: list[str] = []
    claim_ref: _Reference | None = None


class _Volume(msgspec.Struct, frozen=True, gc=False):
    spec: _VolumeSpec = _VolumeSpec()


class _ClaimSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    volume_name: str = ""


class _Phase(msgspec.Struct, frozen=True, gc=False):
    phase: str = ""


class _Claim(msgspec.Struct, frozen=True, gc=False):
    spec: _ClaimSpec = _ClaimSpec()
    status: _Phase = _Phase()


class _DriverSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    attach_required: bool = True


class _Driver(msgspec.Struct, frozen=True, gc=False):
    spec: _DriverSpec = _DriverSpec()


class _AttachmentSource(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    persistent_volume_name: str = ""


class _AttachmentSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    node_name: str = ""
    source: _AttachmentSource = _AttachmentSource()


class _Problem(msgspec.Struct, frozen=True, gc=False):
    message: str = ""


class _AttachmentStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    attached: bool = False
    attach_error: _Problem | None = None


class _Attachment(msgspec.Struct, frozen=True, gc=False):
    spec: _AttachmentSpec = _AttachmentSpec()
    status: _AttachmentStatus = _AttachmentStatus()


class _Attached(msgspec.Struct, frozen=True, gc=False):
    name: str = ""


class _Taint(msgspec.Struct, frozen=True, gc=False):
    key: str = ""


class _NodeSpec(msgspec.Struct, frozen=True, gc=False):
    taints: list[_Taint] | None = None


class _NodeStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    volumes_attached: list[_Attached] | None = None
    volumes_in_use: list[str] | None = None


class NodeVolumes(msgspec.Struct, frozen=True, gc=False):
    """The fields of a node that describe volumes."""

    spec: _NodeSpec = _NodeSpec()
    status: _NodeStatus = _NodeStatus()

    @property
    def reported(self) -> list[str]:
        """The volumes that are attached according to the node's status."""
        return [each.name for each in self.status.volumes_attached or ()]

    @property
    def in_use(self) -> frozenset[str]:
        """The volumes that the node uses or is about to use."""
        return frozenset(self.status.volumes_in_use or ())

    @property
    def is_out_of_service(self) -> bool:
        """Whether the node has the taint for nodes that are shut down."""
        return any(each.key == _OUT_OF_SERVICE for each in self.spec.taints or ())


class _State(msgspec.Struct, frozen=True, gc=False):
    terminated: dict[str, Any] | None = None
    waiting: dict[str, Any] | None = None


class _ContainerStatus(msgspec.Struct, frozen=True, gc=False):
    state: _State = _State()


class _Inline(msgspec.Struct, frozen=True, gc=False):
    csi: _Source | None = None


class _InlineSpec(msgspec.Struct, frozen=True, gc=False):
    volumes: list[_Inline] | None = None


class _InlinePod(msgspec.Struct, frozen=True, gc=False):
    spec: _InlineSpec = _InlineSpec()


class _PodStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    phase: str = ""
    container_statuses: list[_ContainerStatus] | None = None


class _Pod(msgspec.Struct, frozen=True, gc=False):
    status: _PodStatus = _PodStatus()


# The decoded view is not cached, because other controllers decode other fields.
_decode_pod = msgspec.json.Decoder(_Pod).decode
_decode_inline = msgspec.json.Decoder(_InlinePod).decode
decode_node = msgspec.json.Decoder(NodeVolumes).decode


def has_ended(pod: Object) -> bool:
    """Return whether a pod has terminated and no longer needs its volumes (`IsPodTerminated`)."""
    status = _decode_pod(pod.body).status
    if status.phase in _ENDED:
        return True
    states = (each.state for each in status.container_statuses or ())
    return pod.is_terminating and all(each.terminated is not None or each.waiting is not None for each in states)


def claim_of(volume: Object) -> Key | None:
    """Return the claim that is bound to a PersistentVolume; None if no claim is bound."""
    reference = volume.view(_Volume).spec.claim_ref
    return None if reference is None else Key(reference.namespace, reference.name)


def node_of(attachment: Object) -> str:
    """Return the name of the node to which a VolumeAttachment attaches its volume."""
    return attachment.view(_Attachment).spec.node_name


def volume_name_of(attachment: Object) -> str:
    """Return the name of the PersistentVolume of a VolumeAttachment; empty if the volume is an inline volume."""
    return attachment.view(_Attachment).spec.source.persistent_volume_name


def _csi(volume: Object) -> CsiVolume | None:
    spec = volume.view(_Volume).spec
    if spec.csi is None:
        return None
    modes = spec.access_modes
    is_shared = not modes or any(each in ("ReadOnlyMany", "ReadWriteMany") for each in modes)
    return CsiVolume(spec.csi.driver, spec.csi.volume_handle, volume.name, is_shared)


class Attachable:
    """Reads nodes, pods and the volumes of pods."""

    def __init__(self, informers: Informers) -> None:
        """Create an instance that reads these caches, and add the indexes that the instance needs.

        The caller must do this before the caches sync.
        """
        pods, attachments = informers.informer(PODS), informers.informer(ATTACHMENTS)
        index_by_claim(pods)
        index_by_node(pods)
        attachments.add_index(_BY_NODE, lambda each: [node_of(each)])
        attachments.add_index(_BY_VOLUME, lambda each: [volume_name_of(each)])
        self._pods, self._attachments = pods.lister, attachments.lister
        self.nodes = informers.informer(NODES).lister
        self._claims = informers.informer(CLAIMS).lister
        self._volumes = informers.informer(VOLUMES).lister
        self._drivers = informers.informer(DRIVERS).lister

    def state(self, name: str) -> NodeState:
        """Return the state of a node; the node may have been deleted."""
        node = self.nodes.get(Key("", name))
        view = NodeVolumes() if node is None else decode_node(node.body)
        return NodeState(
            name,
            self.needed(name),
            self._present(name, view.reported),
            view.reported,
            view.in_use,
            node is not None and node.view(Node).is_ready,
            view.is_out_of_service,
        )

    def needed(self, name: str) -> Mapping[str, NeededVolume]:
        """Return the volumes that the pods of a node need."""
        node = self.nodes.get(Key("", name))
        if node is None or MANAGED not in node.annotations:
            return {}
        found: dict[str, NeededVolume] = {}
        for pod in pods_of_node(self._pods, name):
            for volume in self._volumes_of(pod):
                users = found[volume.unique_name].pods if volume.unique_name in found else []
                found[volume.unique_name] = NeededVolume(volume, [*users, pod])
        return found

    def is_available(self, claim: Key, attached: Collection[str]) -> bool:
        """Return whether a claim is bound and its volume is available.

        A volume that must be attached is available if it is in `attached`.
        """
        found = self._claims.get(claim)
        if found is None or found.view(_Claim).status.phase != "Bound":
            return False
        volume = self._volume_of(found)
        return volume is None or not self._needs_attaching(volume) or volume.unique_name in attached

    def elsewhere(self, volume: CsiVolume, node: str) -> list[tuple[str, bool]]:
        """Return the other nodes to which a volume is attached or is being attached.

        The value for each node is True if the volume is attached already.
        """
        found = []
        for each in self._attachments.by_index(_BY_VOLUME, volume.persistent_volume):
            other = node_of(each)
            if other != node and each.name == volume.attachment(other):
                found.append((other, each.view(_Attachment).status.attached))
        return found

    def attachment(self, volume: CsiVolume, node: str) -> Attachment | None:
        """Return the VolumeAttachment of a volume for a node; None if it does not exist."""
        found = self._attachments.get(Key("", volume.attachment(node)))
        if found is None:
            return None
        status = found.view(_Attachment).status
        return Attachment(found, status.attached, status.attach_error.message if status.attach_error else "")

    def nodes_of_claim(self, claim: Key) -> Iterator[str]:
        """Yield the names of the nodes whose pods use a claim."""
        yield from (node for pod in pods_of_claim(self._pods, claim) if (node := node_name(pod)))

    def nodes_of_volume(self, name: str) -> Iterator[str]:
        """Yield the names of the nodes whose pods use a PersistentVolume."""
        volume = self._volumes.get(Key("", name))
        claim = None if volume is None else claim_of(volume)
        if claim is not None:
            yield from self.nodes_of_claim(claim)

    def volumes_in_use(self) -> Mapping[tuple[str, ...], int]:
        """Return the number of volumes in the specs of each node's pods, by node and CSI driver."""
        found: Counter[tuple[str, ...]] = Counter()
        for pod in self._pods.list():
            if (drivers := [*self._drivers_of(pod)]) and (node := node_name(pod)):
                found.update((node, plugin_name(each)) for each in drivers)
        return found

    def total_volumes(self) -> Mapping[tuple[str, ...], int]:
        """Return for each CSI driver how many volumes must be attached, and how many volumes are attached."""
        found: Counter[tuple[str, ...]] = Counter()
        for node in self.nodes.list():
            found.update((plugin_name(each.volume.driver), DESIRED) for each in self.needed(node.name).values())
            reported = decode_node(node.body).reported
            present = self._present(node.name, reported).values()
            found.update((plugin_name(volume.driver), ACTUAL) for volume, _ in present)
        return found

    def _drivers_of(self, pod: Object) -> Iterator[str]:
        """Yield the CSI driver of each volume of a pod; volumes without a CSI driver are skipped."""
        yield from (volume.driver for volume in self._bound_volumes(pod))
        if pod.mentions(_INLINE):
            yield from (each.csi.driver for each in _decode_inline(pod.body).spec.volumes or () if each.csi is not None)

    def _present(self, node: str, reported: Sequence[str]) -> dict[str, tuple[CsiVolume, Attachment | None]]:
        volumes = [volume for name in reported if (volume := volume_of(name)) is not None]
        for each in self._attachments.by_index(_BY_NODE, node):
            found = self._volumes.get(Key("", volume_name_of(each)))
            csi = None if found is None else _csi(found)
            if csi is not None and csi.attachment(node) == each.name:
                volumes.append(csi)
        return {each.unique_name: (each, self.attachment(each, node)) for each in volumes}

    def _volumes_of(self, pod: Object) -> Iterator[CsiVolume]:
        """Yield the volumes that must be attached for a pod."""
        volumes = [*self._bound_volumes(pod)]
        if volumes and not has_ended(pod):
            yield from filter(self._needs_attaching, volumes)

    def _bound_volumes(self, pod: Object) -> Iterator[CsiVolume]:
        """Yield the CSI volumes that are bound to a pod's claims."""
        for name in claims_of(pod):
            claim = self._claims.get(Key(pod.namespace, name.name))
            if claim is None or (name.is_ephemeral and not is_controlled_by(claim, pod)):
                continue
            if (volume := self._volume_of(claim)) is not None:
                yield volume

    def _volume_of(self, claim: Object) -> CsiVolume | None:
        view = claim.view(_Claim)
        if view.status.phase != "Bound" or not view.spec.volume_name:
            return None
        volume = self._volumes.get(Key("", view.spec.volume_name))
        reference = None if volume is None else volume.view(_Volume).spec.claim_ref
        if volume is None or reference is None or reference.uid != claim.uid:
            return None
        return _csi(volume)

    def _needs_attaching(self, volume: CsiVolume) -> bool:
        driver = self._drivers.get(Key("", volume.driver))
        return driver is None or driver.view(_Driver).spec.attach_required


class _PodSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    node_name: str = ""


class _Placed(msgspec.Struct, frozen=True, gc=False):
    spec: _PodSpec = _PodSpec()


_decode_placed = msgspec.json.Decoder(_Placed).decode


def node_name(pod: Object) -> str:
    """Return the name of the node to which a pod is bound; empty if the pod is not bound."""
    return _decode_placed(pod.body).spec.node_name
