"""Reads additional input of scheduling decisions: PodDisruptionBudgets, volumes, and the default selectors of pods.

Guarantees: each call reads the current state of the caches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import SERVICES, Key, Resource
from ctrlmgr.controllers.persistentvolume_binder.binding_annotations import BIND_COMPLETED, SELECTED_NODE, class_of
from ctrlmgr.controllers.persistentvolume_binder.decide import reserved
from ctrlmgr.controllers.persistentvolume_binder.volume_index import possible_volumes
from ctrlmgr.controllers.persistentvolume_binder.volume_matching import candidates, requested_storage
from ctrlmgr.controllers.scheduler.assumed_objects import AssumedObjects
from ctrlmgr.controllers.scheduler.attached_volumes import AttachedVolumes
from ctrlmgr.controllers.scheduler.scheduled_claims import DeviceClaims
from ctrlmgr.informer import Lister
from ctrlmgr.scheduling.cluster_model import PodInfo
from ctrlmgr.scheduling.filters import NO_VOLUMES, Volumes
from ctrlmgr.scheduling.node_selection import NodeSelector
from ctrlmgr.scheduling.preemption import Budget
from ctrlmgr.scheduling.scheduling_view import Selector
from ctrlmgr.scheduling.volume_binding import Candidate, Delayed
from ctrlmgr.scheduling.volume_restrictions import Zones, zones_of

BUDGETS: Final = Resource("policy", "poddisruptionbudgets")
CLAIMS: Final = Resource("", "persistentvolumeclaims")
VOLUMES: Final = Resource("", "persistentvolumes")
CLASSES: Final = Resource("storage.k8s.io", "storageclasses")
_ONCE: Final = "ReadWriteOncePod"
_OWNERS: Final = {
    "ReplicationController": Resource("", "replicationcontrollers"),
    "ReplicaSet": Resource("apps", "replicasets"),
    "StatefulSet": Resource("apps", "statefulsets"),
}


class _ServiceSpec(msgspec.Struct, frozen=True, gc=False):
    selector: dict[str, str] | None = None


class _Service(msgspec.Struct, frozen=True, gc=False):
    spec: _ServiceSpec = _ServiceSpec()


class _OwnerSpec(msgspec.Struct, frozen=True, gc=False):
    selector: Selector | None = None


class _Owner(msgspec.Struct, frozen=True, gc=False):
    spec: _OwnerSpec = _OwnerSpec()


class _BudgetStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    disruptions_allowed: int = 0
    disrupted_pods: dict[str, msgspec.Raw] | None = None


class _Budget(msgspec.Struct, frozen=True, gc=False):
    spec: _OwnerSpec = _OwnerSpec()
    status: _BudgetStatus = _BudgetStatus()


class _ClaimSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    volume_name: str = ""
    access_modes: list[str] | None = None


class _Claim(msgspec.Struct, frozen=True, gc=False):
    spec: _ClaimSpec = _ClaimSpec()


class _Values(msgspec.Struct, frozen=True, gc=False):
    key: str
    values: list[str]


class _Topology(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    match_label_expressions: list[_Values] | None = None


class _Class(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    provisioner: str = ""
    volume_binding_mode: str = "Immediate"
    allowed_topologies: list[_Topology] | None = None


class _VolumeAffinity(msgspec.Struct, frozen=True, gc=False):
    required: NodeSelector | None = None


class _VolumeSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    node_affinity: _VolumeAffinity | None = None


class _Volume(msgspec.Struct, frozen=True, gc=False):
    spec: _VolumeSpec = _VolumeSpec()


class DecisionInputs:
    """Reads the additional input of scheduling decisions."""

    def __init__(self, listing: Callable[[Resource], Lister]) -> None:
        """Create an instance that reads the listers that the function `listing` returns for each resource.

        The lister of PersistentVolumes needs the index of `index_by_possible_claims`.
        """
        self._services = listing(SERVICES)
        self._budgets = listing(BUDGETS)
        self._claims = listing(CLAIMS)
        self._volumes = listing(VOLUMES)
        self._classes = listing(CLASSES)
        self.devices = DeviceClaims(listing)
        self.assumed = AssumedObjects()
        self._attached = AttachedVolumes(listing)
        self._owners = {kind: listing(each) for kind, each in _OWNERS.items()}

    def budgets(self) -> list[Budget]:
        """Return all PodDisruptionBudgets."""
        found = []
        for each in self._budgets.list():
            view = each.view(_Budget)
            disrupted = frozenset(view.status.disrupted_pods or ())
            found.append(Budget(each.namespace, view.spec.selector, view.status.disruptions_allowed, disrupted))
        return found

    def default_selector(self, pod: PodInfo) -> Selector | None:
        """Return the combined selector of a pod's Services and controller; None if the pod has neither."""
        labels: dict[str, str] = {}
        for service in self._services.list(pod.namespace):
            selector = service.view(_Service).spec.selector
            if selector and selector.items() <= pod.labels.items():
                labels |= selector
        own = self._owner_selector(pod)
        labels |= (own.match_labels or {}) if own is not None else {}
        expressions = own.match_expressions if own is not None else None
        return Selector(labels, expressions) if labels or expressions else None

    def _owner_selector(self, pod: PodInfo) -> Selector | None:
        owner = next((each for each in pod.view.metadata.owner_references or () if each.controller), None)
        lister = self._owners.get(owner.kind) if owner is not None else None
        if owner is None or lister is None:
            return None
        found = lister.get(Key(pod.namespace, owner.name))
        if found is None:
            return None
        if owner.kind == "ReplicationController":
            return Selector(found.view(_Service).spec.selector)
        return found.view(_Owner).spec.selector

    def volumes(self, pod: PodInfo) -> Volumes:
        """Return the node requirements of a pod's volume claims, or a description of the problem with these claims."""
        if not pod.view.spec.volumes:
            return NO_VOLUMES
        selectors: list[NodeSelector] = []
        delayed: list[Delayed] = []
        for name in pod.claims:
            problem = self._volume(Key(pod.namespace, name), selectors, delayed)
            if problem:
                return Volumes(problem=problem, is_unknown=not self._knows_volume(Key(pod.namespace, name)))
        claims = [each for name in pod.claims if (each := self._claim(Key(pod.namespace, name))) is not None]
        once = frozenset(each.name for each in claims if _ONCE in (each.view(_Claim).spec.access_modes or ()))
        return Volumes(tuple(selectors), self._zones(claims), once, tuple(delayed), self._attached.limits(pod))

    def _knows_volume(self, key: Key) -> bool:
        """Return whether the cache contains the volume to which a claim is bound; True if the claim is not bound."""
        claim = self._claim(key)
        name = claim.view(_Claim).spec.volume_name if claim is not None else ""
        return not name or self._volumes.get(Key("", name)) is not None

    def _zones(self, claims: Sequence[Object]) -> Zones:
        """Return the zones of the volumes to which a pod's claims are bound."""
        names = (each.view(_Claim).spec.volume_name for each in claims)
        found = (self._volumes.get(Key("", name)) for name in names if name)
        return tuple(zone for each in found if each is not None for zone in zones_of(each.labels))

    def _volume(self, key: Key, selectors: list[NodeSelector], delayed: list[Delayed]) -> str:
        claim = self._claim(key)
        if claim is None:
            return f'persistentvolumeclaim "{key.name}" not found'
        if claim.is_terminating:
            return f'persistentvolumeclaim "{key.name}" is being deleted'
        spec = claim.view(_Claim).spec
        if not spec.volume_name or BIND_COMPLETED not in claim.annotations:
            waiting = None if spec.volume_name else self._delayed(claim)
            if waiting is None:
                return "pod has unbound immediate PersistentVolumeClaims"
            delayed.append(waiting)
            return ""
        volume = self._volumes.get(Key("", spec.volume_name))
        if volume is None:
            return f'persistentvolume "{spec.volume_name}" not found'
        affinity = volume.view(_Volume).spec.node_affinity
        if affinity is not None and affinity.required is not None:
            selectors.append(affinity.required)
        return ""

    def _claim(self, key: Key) -> Object | None:
        return self.assumed.newest(self._claims.get(key))

    def assume(self, desired: Mapping[Key, str], node: str) -> list[Object]:
        """Return the writes that bind claims to volumes or request provisioning for a node.

        The scheduler assumes the effects of these writes from now on.

        If the volume of a claim is "", the volume must be provisioned. The caller must update the PersistentVolumes in
        the result, and annotate the claims in the result with the selected node.
        """
        writes = []
        for key, volume in desired.items():
            claim = self._claim(key)
            found = self.assumed.newest(self._volumes.get(Key("", volume))) if volume else None
            if claim is None:
                continue
            if found is not None:
                fields = found.to_dict()
                changed = reserved(fields, claim.to_dict())
                writes += [Object.from_dict(dict(changed))] if changed != fields else []
            elif not volume and claim.annotations.get(SELECTED_NODE) != node:
                writes.append(claim.with_metadata(annotations={**claim.annotations, SELECTED_NODE: node}))
        for each in writes:
            self.assumed.put(each)
        return writes

    def _delayed(self, claim: Object) -> Delayed | None:
        """Return the possible volumes of a claim that waits for its first pod; None if the claim does not wait."""
        fields = claim.to_dict()
        name = class_of(fields)
        found = self._classes.get(Key("", name)) if name else None
        if found is None or found.view(_Class).volume_binding_mode != "WaitForFirstConsumer":
            return None
        view = found.view(_Class)
        found_volumes = (self.assumed.newest(each) for each in possible_volumes(self._volumes, fields))
        volumes = {each.name: each for each in found_volumes if each is not None}
        matching = candidates(fields, (each.to_dict() for each in volumes.values()))
        return Delayed(
            claim.key,
            requested_storage(fields),
            tuple(_candidate(volumes[each["metadata"]["name"]]) for each in matching),
            claim.annotations.get(SELECTED_NODE, ""),
            view.provisioner not in ("", "kubernetes.io/no-provisioner"),
            tuple(
                {each.key: frozenset(each.values) for each in term.match_label_expressions or ()}
                for term in view.allowed_topologies or ()
            ),
        )


def _candidate(volume: Object) -> Candidate:
    affinity = volume.view(_Volume).spec.node_affinity
    return Candidate(volume.name, None if affinity is None else affinity.required)
