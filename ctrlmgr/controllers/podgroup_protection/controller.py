"""The PodGroup protection controller: delays the deletion of a PodGroup while pods belong to it.

Guarantees, as in Kubernetes (`pkg/controller/scheduling/podgroupprotection`): the finalizer of a terminating PodGroup
is removed when no pod belongs to the group. Pods that have succeeded or failed do not count. The controller never adds
the finalizer; the admission plugin PodGroupProtection adds it to new PodGroups.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from ctrlmgr.admission.plugins.pod_group_protection import FINALIZER, POD_GROUPS
from ctrlmgr.api.core import Pod
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import PODS, Key
from ctrlmgr.client import EngineClient
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.descriptor import ControllerContext, NoOptions
from ctrlmgr.controllers.podgroup_protection import DESCRIPTOR
from ctrlmgr.controllers.protection import Protector, is_concerned
from ctrlmgr.informer import Change
from ctrlmgr.manager import Controller, Watch

_INDEX: Final = "podGroupName"


class _Group(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    pod_group_name: str | None = None


class _Spec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    scheduling_group: _Group | None = None


class _Member(msgspec.Struct, frozen=True, gc=False):
    spec: _Spec = _Spec()


def group_of(pod: Object) -> str | None:
    """Return the name of the PodGroup to which a pod belongs; None if the pod belongs to no group."""
    if not pod.mentions(b"podGroupName"):
        return None
    group = pod.view(_Member).spec.scheduling_group
    return group.pod_group_name if group is not None else None


def released_by(change: Change) -> Iterator[Key]:
    """Yield the PodGroups to which a pod no longer belongs because it was deleted or has ended."""
    pods = []
    if change.new is not None and change.new.view(Pod).is_terminal:
        pods.append(change.new)
    if change.old is not None and (change.new is None or change.new.uid != change.old.uid):
        pods.append(change.old)
    for pod in pods:
        if name := group_of(pod):
            yield Key(pod.namespace, name)


def _terminating(change: Change) -> Iterable[Key]:
    group = change.new
    is_held = group is not None and group.is_terminating and is_concerned(group, FINALIZER)
    return (change.object.key,) if is_held else ()


def _active_group(pod: Object) -> list[str]:
    name = group_of(pod)
    return [f"{pod.namespace}/{name}"] if name and not pod.view(Pod).is_terminal else []


class _Remover(Protector):
    """A protector that only removes finalizers of PodGroups that are being deleted, and never adds a finalizer."""

    def reconcile(self, key: Key, client: EngineClient) -> None:
        """Remove the finalizer of an unused PodGroup; raises the errors of the API if the write fails."""
        group = self._objects.get(key)
        if group is not None and group.is_terminating:
            super().reconcile(key, client)


def build(context: ControllerContext, options: NoOptions) -> Controller:
    """Build the controller from its context and options."""
    groups, pods = context.informers.informer(POD_GROUPS), context.informers.informer(PODS)
    pods.add_index(_INDEX, _active_group)

    def is_used(group: Object) -> bool:
        return bool(pods.lister.by_index(_INDEX, f"{group.namespace}/{group.name}"))

    protector = _Remover(groups.lister, FINALIZER, is_used)
    return assemble(DESCRIPTOR, context, protector, [Watch(groups, _terminating), Watch(pods, released_by)])
