"""The reconciler of the PersistentVolume binder: performs the writes that `decide` returns for claims and volumes.

Guarantees: the controller reconciles one key at a time. A reconcile sees all earlier writes of the controller, even if
the caches do not contain them yet. After a conflict the reconcile of the key is retried. A claim or volume that has not
reached a final phase is checked again after a period.

A key with a namespace and a name stands for a claim, and a key with only a name stands for a volume.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import structlog

from ctrlmgr.admission.default_class import default_class
from ctrlmgr.api.core import Pod
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import NODES, PODS, Key, Resource
from ctrlmgr.client import EngineClient
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.claims_of_pods import index_by_claim, pods_of_claim
from ctrlmgr.controllers.descriptor import ControllerContext
from ctrlmgr.controllers.events.recorder import Recorder
from ctrlmgr.controllers.persistentvolume_binder import DESCRIPTOR, Options
from ctrlmgr.controllers.persistentvolume_binder.binder_plans import NORMAL, BinderEvent, Fields, Plan, fail, unbound
from ctrlmgr.controllers.persistentvolume_binder.binding_annotations import AVAILABLE, BOUND, DEFAULT_CLASS
from ctrlmgr.controllers.persistentvolume_binder.decide import for_claim, for_volume
from ctrlmgr.controllers.persistentvolume_binder.in_tree_volumes import without_deletion_finalizer
from ctrlmgr.controllers.persistentvolume_binder.recycler import Recycler
from ctrlmgr.controllers.persistentvolume_binder.recycler_pods import recycler_pods
from ctrlmgr.controllers.persistentvolume_binder.volume_index import (
    claim_reference,
    index_by_possible_claims,
    possible_volumes,
    volumes_of_claim,
)
from ctrlmgr.errors import AlreadyExists, NotFound
from ctrlmgr.informer import Change, Informers, Lister
from ctrlmgr.manager import Controller, Result, Watch

log = structlog.get_logger(__name__)

CLAIMS: Final = Resource("", "persistentvolumeclaims")
VOLUMES: Final = Resource("", "persistentvolumes")
CLASSES: Final = Resource("storage.k8s.io", "storageclasses")
_BY_VOLUME: Final = "volume of a claim"
_RECYCLING_FAILED: Final = "VolumeFailedRecycle"


class _CurrentObjects:
    """The objects of one resource in their newest states: in the cache, or written by this controller."""

    def __init__(self, lister: Lister) -> None:
        self._lister = lister
        self._written: dict[Key, Object] = {}

    def get(self, key: Key) -> Object | None:
        return self._newest(key, self._lister.get(key))

    def newest(self, cached: Iterable[Object]) -> list[Object]:
        """Return these objects, and all objects that this controller has written, in their newest states by name."""
        found: dict[Key, Object | None] = {each.key: each for each in cached}
        found |= {key: self._lister.get(key) for key in self._written}
        states = (self._newest(key, each) for key, each in sorted(found.items()))
        return [each for each in states if each is not None]

    def note(self, obj: Object) -> None:
        self._written[obj.key] = obj

    def _newest(self, key: Key, cached: Object | None) -> Object | None:
        written = self._written.get(key)
        if written is None:
            return cached
        if cached is not None and cached.revision < written.revision:
            return written
        del self._written[key]  # The cache contains the written state or a later one, or the object was deleted.
        return cached


class VolumeBinder:
    """Reconciles claims and volumes, and provides the lookups that the decisions need."""

    def __init__(self, informers: Informers, recorder: Recorder, options: Options) -> None:
        """Create a reconciler that reads these caches; the caller must do this before the caches sync.

        Claims are indexed by volume, volumes by possible claims, and pods by claim.
        """
        claims, volumes, pods = (informers.informer(each) for each in (CLAIMS, VOLUMES, PODS))
        claims.add_index(_BY_VOLUME, volume_name)
        index_by_possible_claims(volumes)
        index_by_claim(pods)
        self._claims, self._volumes = _CurrentObjects(claims.lister), _CurrentObjects(volumes.lister)
        self._claim_cache, self._volume_cache, self._pods = claims.lister, volumes.lister, pods.lister
        self._classes, self._nodes = informers.informer(CLASSES).lister, informers.informer(NODES).lister
        self._recorder = recorder
        self._period = options.pvclaimbinder_sync_period
        self._recycler = Recycler(self._pods, recycler_pods(options))
        self.recycled_volumes = self._recycler.volume_keys
        self.provisions = options.enable_dynamic_provisioning
        self.provisions_host_path = options.enable_hostpath_provisioner
        self.wake: Callable[[Key], None] = lambda key: None
        """The type of a function that enqueues a key."""

    def reconcile(self, key: Key, client: EngineClient) -> Result | None:
        """Reconcile the claim or the volume that the key names."""
        seen = self._claims if key.namespace else self._volumes
        obj = seen.get(key)
        if obj is None:
            return None
        fields = obj.to_dict()
        plan = for_claim(fields, self) if key.namespace else for_volume(fields, self)
        volume = self._write(VOLUMES, self._volumes, plan.volume, client)
        claim = self._write(CLAIMS, self._claims, plan.claim, client)
        subject = (claim if key.namespace else volume) or obj
        self._tell(plan, fields, subject)
        if plan.creates is not None:
            self._create(plan, fields, subject, client)
        if plan.deletes and volume is not None:
            self._delete(volume, client)
            return None
        if plan.recycles and volume is not None:
            self._recycle(volume, client)
        if plan.wakes_claim:
            reference = fields["spec"]["claimRef"]
            self.wake(Key(reference["namespace"], reference["name"]))
        return self._again(seen.get(key))

    def _again(self, obj: Object | None) -> Result | None:
        if obj is None:
            return None
        phase = (obj.to_dict().get("status") or {}).get("phase")
        is_final = phase == BOUND or (not obj.namespace and phase == AVAILABLE)
        return None if is_final else Result(requeue_after=self._period)

    def _write(
        self, resource: Resource, seen: _CurrentObjects, desired: Fields | None, client: EngineClient
    ) -> Object | None:
        """Write an object's fields and then its status; skip a write that changes nothing.

        The method returns the current state of the object.
        """
        if desired is None:
            return None
        meta = desired["metadata"]
        current = seen.get(Key(meta.get("namespace", ""), meta["name"]))
        if current is None:
            return None
        before = current.to_dict()
        if {**desired, "status": None} != {**before, "status": None}:
            current = client.update(Object.from_dict({**desired, "status": before.get("status")}))
            seen.note(current)
        if desired.get("status") != before.get("status"):
            body = {**current.to_dict(), "status": desired["status"]}
            current = client.update(Object.from_dict(body), "status")
            seen.note(current)
        return current

    def _tell(self, plan: Plan, fields: Fields, subject: Object | None) -> None:
        for each in plan.events:
            about = subject
            if not fields["metadata"].get("namespace") and not each.about_volume:
                reference = fields["spec"]["claimRef"]
                about = self._claims.get(Key(reference["namespace"], reference["name"]))
            if about is None:
                about = Object.from_dict(dict(fields))
            self._recorder.event(about, each.type, each.reason, each.message)

    def _create(self, plan: Plan, fields: Fields, claim: Object, client: EngineClient) -> None:
        try:
            self._volumes.note(client.create(Object.from_dict(dict(plan.creates or {}))))
        except AlreadyExists:
            log.debug("volume already created", claim=str(claim.key))
            return
        self._tell(Plan(events=plan.created_events), fields, claim)

    def _delete(self, volume: Object, client: EngineClient) -> None:
        try:
            self._write(VOLUMES, self._volumes, without_deletion_finalizer(volume.to_dict()), client)
            client.delete(volume)
        except NotFound:
            log.debug("volume already deleted", volume=volume.name)

    def _recycle(self, volume: Object, client: EngineClient) -> None:
        """Start or continue the recycling of a released volume, and make the volume available when it has ended."""
        fields = volume.to_dict()
        if not self._recycler.is_running(fields) and (users := self._users(fields)):
            message = f"Volume is used by pods: {','.join(users)}"
            self._recorder.event(volume, NORMAL, _RECYCLING_FAILED, message)
            return
        source = self._recycler.source(fields)
        if source is None:
            self._perform(fail(fields, _RECYCLING_FAILED, "No recycler plugin found for the volume!"), volume, client)
            return
        found = self._recycler.run(fields, source, client)
        if found.problem:
            self._perform(fail(fields, _RECYCLING_FAILED, f"Recycle failed: {found.problem}"), volume, client)
        elif found.is_over:
            event = BinderEvent(NORMAL, "VolumeRecycled", "Volume recycled", about_volume=True)
            self._perform(Plan(unbound(fields), events=(event,)), volume, client)

    def _perform(self, plan: Plan, volume: Object, client: EngineClient) -> None:
        self._write(VOLUMES, self._volumes, plan.volume, client)
        self._tell(plan, volume.to_dict(), volume)

    def _users(self, volume: Fields) -> list[str]:
        """Return the pods that still use a volume's claim; if a new claim has its name, no pod uses the volume."""
        key = Key(volume["spec"]["claimRef"]["namespace"], volume["spec"]["claimRef"]["name"])
        if self._claims.get(key) is not None:
            return []
        return sorted(str(each.key) for each in pods_of_claim(self._pods, key) if not each.view(Pod).is_terminal)

    # The following methods read the objects that decisions need.

    def volume(self, name: str) -> Fields | None:
        """Return the volume with this name; None if the volume does not exist."""
        found = self._volumes.get(Key("", name))
        return None if found is None else found.to_dict()

    def possible_volumes(self, claim: Fields) -> list[Fields]:
        """Return the volumes that are possible for a claim, keyed by the volume's name.

        The candidates are the volumes that refer to the claim, and the volumes of the claim's class that refer to no
        claim.
        """
        return [each.to_dict() for each in self._volumes.newest(possible_volumes(self._volume_cache, claim))]

    def claim(self, namespace: str, name: str) -> Fields | None:
        """Return the claim with this key; None if the claim does not exist."""
        found = self._claims.get(Key(namespace, name))
        return None if found is None else found.to_dict()

    def storage_class(self, name: str) -> Fields | None:
        """Return the storage class with this name; None if it does not exist."""
        found = self._classes.get(Key("", name))
        return None if found is None else found.to_dict()

    def node_exists(self, name: str) -> bool:
        """Return whether a node exists."""
        return self._nodes.get(Key("", name)) is not None

    def default_class(self) -> str | None:
        """Return the name of the default storage class; None if there is no default class."""
        return default_class(_View(self._classes), CLASSES, *DEFAULT_CLASS)

    def waiting_pods(self, claim: Fields) -> list[str]:
        """Return the names of the pods that use a claim and are not scheduled yet."""
        meta = claim["metadata"]
        pods = pods_of_claim(self._pods, Key(meta["namespace"], meta["name"]))
        return [each.name for each in pods if not each.view(Pod).is_terminal and not each.view(Pod).spec.node_name]

    # The following methods map changes to the keys of reconciles.

    def claim_keys(self, change: Change) -> Iterator[Key]:
        """Yield the keys of a created or changed claim and of the volumes that the change affects.

        Keys of volumes are yielded if the claim was deleted, or if its volume changed.
        """
        if change.new is not None:
            yield change.new.key
        names = {name for each in (change.old, change.new) if each is not None for name in volume_name(each)}
        if change.new is None or change.old is None or volume_name(change.old) != volume_name(change.new):
            yield from (Key("", name) for name in names)
            yield from (each.key for each in volumes_of_claim(self._volume_cache, change.object.key))

    def volume_keys(self, change: Change) -> Iterator[Key]:
        """Yield the keys of a created or changed volume, and of related claims.

        The affected claims are the claim to which the volume refers, and the claims that refer to the volume.
        """
        if change.new is not None:
            yield change.new.key
        for each in (change.old, change.new):
            claim = claim_reference(each) if each is not None else None
            if claim is not None:
                yield claim
        yield from (each.key for each in self._claim_cache.by_index(_BY_VOLUME, change.object.name))


class _View:
    """The storage classes, with the interface that admission plugins expect."""

    def __init__(self, classes: Lister) -> None:
        self._classes = classes

    def get(self, resource: Resource, key: Key) -> Object | None:
        return self._classes.get(key)

    def list(self, resource: Resource, namespace: str | None = None) -> Any:
        return self._classes.list(namespace)


def volume_name(claim: Object) -> list[str]:
    """Return a list with the name of a claim's volume; the list is empty if the claim has no volume."""
    name = claim.to_dict()["spec"].get("volumeName")
    return [name] if name else []


def build(context: ControllerContext, options: Options) -> Controller:
    """Build the controller from its context and options; raises `SettingsError` if a template cannot be used."""
    informers = context.informers
    binder = VolumeBinder(informers, context.recorder(DESCRIPTOR), options)
    watches = [
        Watch(informers.informer(CLAIMS), binder.claim_keys),
        Watch(informers.informer(VOLUMES), binder.volume_keys),
        Watch(informers.informer(PODS), binder.recycled_volumes),
    ]
    controller = assemble(DESCRIPTOR, context, binder, watches)
    binder.wake = controller.queue.add
    return controller
