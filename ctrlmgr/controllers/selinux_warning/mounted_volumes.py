"""Determines which volumes the containers of a pod mount, and with which SELinux labels.

Guarantees, which are the same as in Kubernetes' `GetPodVolumeNames` and `GetMountSELinuxLabel` (`pkg/volume/util`):
- The SELinux options of a container override the options of its pod. Empty parts of a label stay empty, because the
  nodes have the defaults.
- Only volumes that can be mounted with a label are read. Volumes of CSI drivers with `spec.seLinuxMount`, and volumes
  of iSCSI and Fibre Channel, can be mounted with a label. The files of other volumes are labelled recursively, so their
  pods cannot conflict.

In-tree volumes that were migrated to CSI drivers are not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.controllers.selinux_warning.label_conflicts import MOUNT_OPTION, RECURSIVE, Use
from ctrlmgr.controllers.workloads.controlled_pods import is_controlled_by
from ctrlmgr.informer import Lister

CLAIMS: Final = Resource("", "persistentvolumeclaims")
VOLUMES: Final = Resource("", "persistentvolumes")
DRIVERS: Final = Resource("storage.k8s.io", "csidrivers")
_ENDED: Final = ("Succeeded", "Failed")
_MENTIONS: Final = (b'"persistentVolumeClaim"', b'"ephemeral"', b'"fc"', b'"iscsi"')
"""The body of every pod with volumes that can be mounted with a label contains one or more of these byte sequences."""


class _Csi(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    driver: str = ""
    volume_handle: str = ""


class _Iscsi(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    target_portal: str = ""
    iqn: str = ""
    lun: int = 0


class _FibreChannel(msgspec.Struct, frozen=True, gc=False):
    target_wwns: list[str] | None = msgspec.field(default=None, name="targetWWNs")
    wwids: list[str] | None = None
    lun: int | None = None


class _Claimed(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    claim_name: str = ""


class _PodVolume(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    name: str = ""
    persistent_volume_claim: _Claimed | None = None
    ephemeral: msgspec.Raw | None = None
    iscsi: _Iscsi | None = None
    fc: _FibreChannel | None = None


class _Mount(msgspec.Struct, frozen=True, gc=False):
    name: str = ""


class _Options(msgspec.Struct, frozen=True, gc=False):
    user: str = ""
    role: str = ""
    type: str = ""
    level: str = ""

    @property
    def label(self) -> str:
        """The label in the format `user:role:type:level`; empty if all parts are empty."""
        label = ":".join((self.user, self.role, self.type, self.level))
        return "" if label == ":::" else label


class _Context(msgspec.Struct, frozen=True, gc=False):
    options: _Options | None = msgspec.field(default=None, name="seLinuxOptions")
    policy: str = msgspec.field(default=MOUNT_OPTION, name="seLinuxChangePolicy")


class _Container(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    volume_mounts: list[_Mount] | None = None
    security_context: _Context | None = None


class _PodSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    volumes: list[_PodVolume] | None = None
    containers: list[_Container] | None = None
    init_containers: list[_Container] | None = None
    ephemeral_containers: list[_Container] | None = None
    security_context: _Context | None = None


class _Phase(msgspec.Struct, frozen=True, gc=False):
    phase: str = ""


class _Pod(msgspec.Struct, frozen=True, gc=False):
    spec: _PodSpec = _PodSpec()
    status: _Phase = _Phase()


class _ClaimSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    volume_name: str = ""


class _Claim(msgspec.Struct, frozen=True, gc=False):
    spec: _ClaimSpec = _ClaimSpec()


class _Reference(msgspec.Struct, frozen=True, gc=False):
    namespace: str = ""
    name: str = ""
    uid: str = ""


class _VolumeSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    csi: _Csi | None = None
    iscsi: _Iscsi | None = None
    fc: _FibreChannel | None = None
    claim_ref: _Reference | None = None


class _Volume(msgspec.Struct, frozen=True, gc=False):
    spec: _VolumeSpec = _VolumeSpec()


class _DriverSpec(msgspec.Struct, frozen=True, gc=False):
    mounts: bool | None = msgspec.field(default=None, name="seLinuxMount")


class _Driver(msgspec.Struct, frozen=True, gc=False):
    spec: _DriverSpec = _DriverSpec()


# The decoded views are not cached, because other controllers decode other fields.
_decode_pod = msgspec.json.Decoder(_Pod).decode
_decode_claim = msgspec.json.Decoder(_Claim).decode
_decode_volume = msgspec.json.Decoder(_Volume).decode
_decode_driver = msgspec.json.Decoder(_Driver).decode


class MountedVolume(NamedTuple):
    """A volume that a pod mounts."""

    name: str
    """The name of the volume within the pod."""
    unique_name: str
    driver: str
    """The CSI driver of the volume; empty if another plugin mounts the volume."""
    use: Use | None
    """The label and the policy; None if containers mount the volume with different labels."""


def has_volumes(pod: Object) -> bool:
    """Return whether a pod may have volumes that are mounted with a label."""
    return any(map(pod.mentions, _MENTIONS))


def has_ended(pod: Object) -> bool:
    """Return whether all containers of a pod have ended, so that its volumes are unmounted."""
    return _decode_pod(pod.body).status.phase in _ENDED


def mounts_with_label(driver: Object | None) -> bool:
    """Return whether a CSI driver mounts volumes with an SELinux label."""
    return driver is not None and bool(_decode_driver(driver.body).spec.mounts)


def volume_of(claim: Object | None) -> str:
    """Return the name of a claim's volume; empty if the claim is not bound."""
    return "" if claim is None else _decode_claim(claim.body).spec.volume_name


def bound_claim(volume: Object | None) -> tuple[Key, str] | None:
    """Return the key and the uid of a PersistentVolume's claim; None if the binding is incomplete."""
    reference = None if volume is None else _decode_volume(volume.body).spec.claim_ref
    if reference is None or not reference.uid:
        return None
    return Key(reference.namespace, reference.name), reference.uid


class MountedVolumes:
    """Reads the volumes of pods from the caches."""

    def __init__(self, claims: Lister, volumes: Lister, drivers: Lister) -> None:
        """Create an instance that reads these caches."""
        self._claims, self._volumes, self._drivers = claims, volumes, drivers

    def of(self, pod: Object) -> Iterator[MountedVolume]:
        """Yield the volumes that a pod mounts and that exist, sorted by name."""
        spec = _decode_pod(pod.body).spec
        labels = _labels_of_mounts(spec)
        context = spec.security_context or _Context()
        for each in sorted(spec.volumes or (), key=lambda each: each.name):
            source = self._source(each, pod) if each.name in labels else None
            if source is None:
                continue
            driver = source.driver if isinstance(source, _Csi) else ""
            can_mount = not driver or mounts_with_label(self._drivers.get(Key("", driver)))
            yield MountedVolume(each.name, _unique_name(source), driver, _use(labels[each.name], context, can_mount))

    def _source(self, volume: _PodVolume, pod: Object) -> _Csi | _Iscsi | _FibreChannel | None:
        if volume.persistent_volume_claim is None and volume.ephemeral is None:
            return volume.iscsi or volume.fc
        claimed = volume.persistent_volume_claim
        name = f"{pod.name}-{volume.name}" if claimed is None else claimed.claim_name
        claim = self._claims.get(Key(pod.namespace, name))
        if claim is None or (claimed is None and not is_controlled_by(claim, pod)):
            return None
        found = self._volumes.get(Key("", volume_of(claim)))
        if found is None or bound_claim(found) != (claim.key, claim.uid):
            return None
        spec = _decode_volume(found.body).spec
        return spec.csi or spec.iscsi or spec.fc


def _unique_name(source: _Csi | _Iscsi | _FibreChannel) -> str:
    if isinstance(source, _Csi):
        return f"kubernetes.io/csi/{source.driver}^{source.volume_handle}"
    if isinstance(source, _Iscsi):
        return f"kubernetes.io/iscsi/{source.target_portal}:{source.iqn}:{source.lun}"
    names = f"{source.target_wwns}:{source.lun}" if source.target_wwns else f"{source.wwids}"
    return f"kubernetes.io/fc/{names}"


def _labels_of_mounts(spec: _PodSpec) -> dict[str, set[str]]:
    """Return the labels with which containers mount each volume, by the volume's name."""
    found: dict[str, set[str]] = {}
    of_pod = spec.security_context.options if spec.security_context is not None else None
    for each in (*(spec.init_containers or ()), *(spec.containers or ()), *(spec.ephemeral_containers or ())):
        own = each.security_context.options if each.security_context is not None else None
        options = own or of_pod
        for mount in each.volume_mounts or ():
            found.setdefault(mount.name, set()).update([] if options is None else [options.label])
    return found


def _use(labels: set[str], context: _Context, can_mount: bool) -> Use | None:
    """Return the label and the policy of a mount.

    If the files of the volume are labelled recursively, the label is empty.
    """
    if len(labels) > 1:
        return None
    label = next(iter(labels), "")
    if not can_mount or not label or context.policy == RECURSIVE:
        return Use("", RECURSIVE)
    return Use(label, context.policy)
