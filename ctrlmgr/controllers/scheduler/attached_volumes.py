"""Reads the volumes that are attached to nodes, and the limits of nodes, as input of the plugin NodeVolumeLimits.

Guarantees: each call reads the current state of the caches. As in kube-scheduler, a claim without a volume counts for
the provisioner of its StorageClass, and a claim that does not exist or has no class is not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Final

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.controllers.persistentvolume_binder.binding_annotations import class_of
from ctrlmgr.controllers.scheduler.scheduled_claims import Listed
from ctrlmgr.scheduling.cluster_model import PodInfo
from ctrlmgr.scheduling.volume_limits import (
    MIGRATED,
    NOT_COUNTED,
    Attached,
    DiskSources,
    VolumeLimits,
    VolumeName,
    volume_name,
)

CSI_NODES: Final = Resource("storage.k8s.io", "csinodes")
VOLUME_ATTACHMENTS: Final = Resource("storage.k8s.io", "volumeattachments")
_CLAIMS: Final = Resource("", "persistentvolumeclaims")
_VOLUMES: Final = Resource("", "persistentvolumes")
_CLASSES: Final = Resource("storage.k8s.io", "storageclasses")
_UNBOUND: Final = "unbound"
"""The beginning of the handles of volumes that do not exist yet."""


class _Allocatable(msgspec.Struct, frozen=True, gc=False):
    count: int | None = None


class _Driver(msgspec.Struct, frozen=True, gc=False):
    name: str = ""
    allocatable: _Allocatable | None = None


class _NodeSpec(msgspec.Struct, frozen=True, gc=False):
    drivers: list[_Driver] | None = None


class _CsiNode(msgspec.Struct, frozen=True, gc=False):
    spec: _NodeSpec = _NodeSpec()


class _Source(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    persistent_volume_name: str = ""


class _AttachmentSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    attacher: str = ""
    node_name: str = ""
    source: _Source = _Source()


class _Attachment(msgspec.Struct, frozen=True, gc=False):
    spec: _AttachmentSpec = _AttachmentSpec()


class _Volume(msgspec.Struct, frozen=True, gc=False):
    spec: DiskSources = DiskSources()


class _ClaimSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    volume_name: str = ""


class _Claim(msgspec.Struct, frozen=True, gc=False):
    spec: _ClaimSpec = _ClaimSpec()


class _Class(msgspec.Struct, frozen=True, gc=False):
    provisioner: str = ""


class AttachedVolumes:
    """Finds the volumes of pods that CSI drivers attach, and the limits of nodes for such volumes."""

    def __init__(self, listing: Callable[[Resource], Listed]) -> None:
        """Create an instance that reads the listers that the function `listing` returns for each resource."""
        self._claims, self._volumes, self._classes = listing(_CLAIMS), listing(_VOLUMES), listing(_CLASSES)
        self._nodes, self._attachments = listing(CSI_NODES), listing(VOLUME_ATTACHMENTS)

    def limits(self, pod: PodInfo) -> VolumeLimits | None:
        """Return the limits for a pod's volumes; None if no CSI driver attaches any volume of the pod."""
        volumes = self._of(pod)
        if not volumes:
            return None
        # If a decision checks no node with limits, the VolumeAttachments are not read.
        by_node = cache(self._by_node)
        return VolumeLimits(volumes, self._limits, cache(self._of), lambda node: by_node().get(node) or {})

    def _limits(self, node: str) -> Mapping[str, int]:
        found = self._nodes.get(Key("", node))
        drivers = (found.view(_CsiNode).spec.drivers or ()) if found is not None else ()
        counts = {each.name: each.allocatable.count for each in drivers if each.allocatable is not None}
        return {name: count for name, count in counts.items() if count is not None}

    def _by_node(self) -> dict[str, dict[str, str]]:
        """Return the volumes of the VolumeAttachments of each node."""
        found: dict[str, dict[str, str]] = {}
        for each in self._attachments.list():
            spec = each.view(_Attachment).spec
            volume = self._volumes.get(Key("", spec.source.persistent_volume_name))
            csi = volume.view(_Volume).spec.csi if volume is not None else None
            if csi is not None and spec.attacher:
                name = VolumeName(spec.attacher, csi.volume_handle)
                found.setdefault(spec.node_name, {})[name.unique] = spec.attacher
        return found

    def _of(self, pod: PodInfo) -> Attached:
        return {each.unique: each.driver for each in self._names(pod) if each.driver and each.handle}

    def _names(self, pod: PodInfo) -> Iterator[VolumeName]:
        for volume in pod.view.spec.volumes or ():
            inline = volume_name(volume)
            if inline is not None:
                yield inline
        for name in pod.claims:
            claim = self._claims.get(Key(pod.namespace, name))
            found = self._of_claim(claim) if claim is not None else None
            if found is not None:
                yield found

    def _of_claim(self, claim: Object) -> VolumeName | None:
        name = claim.view(_Claim).spec.volume_name
        volume = self._volumes.get(Key("", name)) if name else None
        if volume is not None:
            return volume_name(volume.view(_Volume).spec, volume.labels)
        class_ = self._classes.get(Key("", class_of(claim.to_dict())))
        provisioner = class_.view(_Class).provisioner if class_ is not None else ""
        if provisioner in NOT_COUNTED:
            return None
        return VolumeName(MIGRATED.get(provisioner, provisioner), f"{_UNBOUND}-{claim.namespace}/{claim.name}")
