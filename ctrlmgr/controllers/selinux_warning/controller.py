"""The SELinux warning controller: records Events about pods that use one volume with conflicting labels or policies.

Guarantees, which are the same as in Kubernetes' `pkg/controller/volume/selinuxwarning`:
- All pods that have not ended count, even if they never run on the same node.
- When a conflict begins, an Event about each of the two pods is recorded. The metric contains each conflict while the
  conflict exists.
- If containers of one pod mount a volume with different labels, an Event about the pod reports the volume.

If the labels within a pod differ or a claim of the pod is not bound, Kubernetes retries the reconcile of the pod.
ctrlmgr's controller waits for a change instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ctrlmgr.api.resource import PODS, Key
from ctrlmgr.client import EngineClient
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.claims_of_pods import index_by_claim, pods_of_claim
from ctrlmgr.controllers.collected_gauges import CollectedGauge
from ctrlmgr.controllers.descriptor import ControllerContext, NoOptions
from ctrlmgr.controllers.events.recorder import NORMAL, WARNING, Recorder
from ctrlmgr.controllers.selinux_warning import DESCRIPTOR
from ctrlmgr.controllers.selinux_warning.label_conflicts import Conflict, VolumeUses
from ctrlmgr.controllers.selinux_warning.mounted_volumes import (
    CLAIMS,
    DRIVERS,
    VOLUMES,
    MountedVolumes,
    bound_claim,
    has_ended,
    has_volumes,
    mounts_with_label,
    volume_of,
)
from ctrlmgr.informer import Change, Lister
from ctrlmgr.manager import Controller, Watch

_POD_LABELS: Final = ("namespace", "name", "value")
CONFLICTS: Final = CollectedGauge(
    "selinux_warning_controller_selinux_volume_conflict",
    "Conflict between two Pods using the same volume",
    ("property", *(f"{pod}_{each}" for pod in ("pod1", "pod2") for each in _POD_LABELS)),
)


class SELinuxWarning:
    """Reconciles the volumes of a pod."""

    def __init__(self, pods: Lister, mounted: MountedVolumes, recorder: Recorder) -> None:
        """Create a reconciler that reads objects from these caches."""
        self._pods, self._mounted, self._recorder = pods, mounted, recorder
        self._uses = VolumeUses()

    def on_start(self) -> Iterator[Key]:
        """Remove all stored uses of volumes, and yield the key of every pod with volumes."""
        self._uses.clear()
        yield from (pod.key for pod in self._pods.list() if has_volumes(pod))

    def reconcile(self, key: Key, client: EngineClient) -> None:
        """Store how a pod uses its volumes, and record an Event for each new conflict."""
        pod = self._pods.get(key)
        if pod is None or has_ended(pod):
            self._uses.remove(key)
            return
        for volume in self._mounted.of(pod):
            if volume.use is None:
                twice = f'Volume "{volume.name}" is mounted twice with different SELinux labels inside this pod'
                self._recorder.event(pod, WARNING, "MultipleSELinuxLabels", twice)
                continue
            for conflict in self._uses.add(volume.unique_name, volume.driver, key, volume.use):
                self._tell(conflict)

    def _tell(self, conflict: Conflict) -> None:
        pod = self._pods.get(conflict.pod)
        if pod is not None:
            self._recorder.event(pod, NORMAL, conflict.reason, conflict.message)

    def conflicts(self) -> Mapping[tuple[str, ...], int]:
        """Return the value 1 for each conflict, keyed by the labels of the metric."""
        return {(each.name, *each.pod, each.value, *each.other, each.other_value): 1 for each in self._uses.conflicts()}

    # The following methods map changes to the pods to reconcile.

    def of_pod(self, change: Change) -> Iterator[Key]:
        """Yield the key of a pod with volumes that was created or deleted, or has ended."""
        if has_volumes(change.object) and (change.old is None or change.new is None or has_ended(change.new)):
            yield change.object.key

    def of_claim(self, change: Change) -> Iterator[Key]:
        """Yield the keys of the pods that use a claim that was bound."""
        if change.new is not None and (name := volume_of(change.new)) and name != volume_of(change.old):
            yield from self._keys(change.new.key)

    def of_volume(self, change: Change) -> Iterator[Key]:
        """Yield the keys of the pods that use a PersistentVolume that was bound."""
        bound = bound_claim(change.new)
        if bound is not None and bound != bound_claim(change.old):
            yield from self._keys(bound[0])

    def of_driver(self, change: Change) -> Iterator[Key]:
        """Yield the keys of the pods with volumes of a driver that began or stopped to mount volumes with labels."""
        if mounts_with_label(change.old) != mounts_with_label(change.new):
            yield from self._uses.pods_of(change.object.name)

    def _keys(self, claim: Key) -> Iterator[Key]:
        yield from (pod.key for pod in pods_of_claim(self._pods, claim))


def build(context: ControllerContext, options: NoOptions) -> Controller:
    """Build the controller from its context and options."""
    pods, claims, volumes, drivers = (context.informers.informer(each) for each in (PODS, CLAIMS, VOLUMES, DRIVERS))
    index_by_claim(pods)
    mounted = MountedVolumes(claims.lister, volumes.lister, drivers.lister)
    reconciler = SELinuxWarning(pods.lister, mounted, context.recorder(DESCRIPTOR))
    CONFLICTS.add(reconciler.conflicts)
    watches = [
        Watch(pods, reconciler.of_pod),
        Watch(claims, reconciler.of_claim),
        Watch(volumes, reconciler.of_volume),
        Watch(drivers, reconciler.of_driver),
    ]
    return assemble(DESCRIPTOR, context, reconciler, watches)
