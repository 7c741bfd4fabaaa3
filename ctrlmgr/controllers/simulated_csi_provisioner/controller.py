"""The provisioner of the simulated CSI driver: performs the writes that `decide` returns for claims and volumes.

Guarantees: at its start, the controller creates the storage class and the CSIDriver of the simulation if they do not
exist. The controller does not revert later changes and deletions of these two objects. Each claim gets at most one
volume, because the claim's uid determines the volume's name. An annotation of a simulated node can make the creation of
its volumes fail. If a claim cannot be provisioned now, the reconcile of the claim is retried with increasing delays.

A key with a namespace and a name stands for a claim, and a key with only a name stands for a volume. The key `*` stands
for the storage class and the CSIDriver.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import NODES, Key, Resource
from ctrlmgr.client import EngineClient
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.descriptor import ControllerContext, NoOptions
from ctrlmgr.controllers.events.recorder import NORMAL, WARNING, Recorder
from ctrlmgr.controllers.persistentvolume_attach_detach.attachable import (
    ATTACHMENTS,
    CLAIMS,
    DRIVERS,
    VOLUMES,
    volume_name_of,
)
from ctrlmgr.controllers.persistentvolume_binder.binding_annotations import (
    PROVISIONED_BY,
    PROVISIONERS,
    SELECTED_NODE,
    annotation,
    class_of,
)
from ctrlmgr.controllers.simulated_csi_provisioner import DESCRIPTOR
from ctrlmgr.controllers.simulated_csi_provisioner.data_sources import is_populated, source_problem
from ctrlmgr.controllers.simulated_csi_provisioner.decide import (
    location,
    needs_volume,
    new_volume,
    reclaim,
    volume_name,
)
from ctrlmgr.errors import AlreadyExists, CtrlmgrError, NotFound
from ctrlmgr.informer import Change, Informers
from ctrlmgr.manager import Controller, Watch
from ctrlmgr.simulation.csi_objects import DRIVER, SNAPSHOT_CONTENTS, SNAPSHOTS, ZONE, csi_driver, storage_class
from ctrlmgr.simulation.nodes import MARK, provisioning_fails

CLASSES: Final = Resource("storage.k8s.io", "storageclasses")
_OBJECTS: Final = Key("", "*")
_BY_VOLUME: Final = "volume of an attachment"
_WORKERS: Final = 4
_REFUSED: Final = "rpc error: code = Internal desc = the node's annotation says provisioning error"


class Provisioner:
    """Reconciles claims and volumes of the simulated CSI driver."""

    def __init__(self, informers: Informers, recorder: Recorder) -> None:
        """Create a reconciler that reads these caches; the caller must do this before the caches sync."""
        attachments = informers.informer(ATTACHMENTS)
        attachments.add_index(_BY_VOLUME, lambda each: [volume_name_of(each)])
        self._attachments = attachments.lister
        self._claims, self._volumes = informers.informer(CLAIMS).lister, informers.informer(VOLUMES).lister
        self._classes, self._drivers = informers.informer(CLASSES).lister, informers.informer(DRIVERS).lister
        self._nodes = informers.informer(NODES).lister
        self._listers = {
            each: informers.informer(each).lister for each in (CLAIMS, VOLUMES, SNAPSHOTS, SNAPSHOT_CONTENTS)
        }
        self._recorder = recorder

    def on_start(self) -> Iterator[Key]:
        """Yield the key of the driver's objects, and the keys of all claims and volumes."""
        yield _OBJECTS
        yield from (each.key for lister in (self._claims, self._volumes) for each in lister.list())

    def reconcile(self, key: Key, client: EngineClient) -> None:
        """Reconcile a claim, a volume, or the driver's objects; raises `CtrlmgrError` if a volume cannot be created."""
        if key == _OBJECTS:
            self._create_objects(client)
        elif key.namespace:
            self._provision(key, client)
        else:
            self._reclaim(key, client)

    def _create_objects(self, client: EngineClient) -> None:
        for lister, fields in ((self._classes, storage_class()), (self._drivers, csi_driver())):
            desired = Object.from_dict(fields)
            if lister.get(desired.key) is None:
                with suppress(AlreadyExists):
                    client.create(desired)

    # The following methods handle claims.

    def _provision(self, key: Key, client: EngineClient) -> None:
        claim = self._claims.get(key)
        if claim is None or DRIVER not in (claim.annotations.get(each) for each in PROVISIONERS):
            return
        fields = claim.to_dict()
        found = self._classes.get(Key("", class_of(fields)))
        desired_class = None if found is None else found.to_dict()
        if desired_class is None or not needs_volume(fields, desired_class) or self._has_volume(fields):
            return
        if is_populated(fields):
            message = "Assuming an external populator will provision the volume"
            self._recorder.event(claim, NORMAL, "Provisioning", message)
            return
        node = self._nodes.get(Key("", annotation(fields, SELECTED_NODE) or ""))
        if node is None and annotation(fields, SELECTED_NODE) is not None:
            self._reschedule(claim, client)
            return
        self._recorder.event(
            claim, NORMAL, "Provisioning", f'External provisioner is provisioning volume for claim "{key}"'
        )
        if node is not None and provisioning_fails(node.annotations):
            self._fail(claim, class_of(fields), _REFUSED)
        if (problem := source_problem(fields, class_of(fields), self._find)) is not None:
            self._fail(claim, class_of(fields), problem)
        self._create(claim, desired_class, None if node is None else node.labels, client)

    def _has_volume(self, claim: Mapping[str, Any]) -> bool:
        return self._volumes.get(Key("", volume_name(claim))) is not None

    def _create(
        self, claim: Object, desired_class: Mapping[str, Any], node: Mapping[str, str] | None, client: EngineClient
    ) -> None:
        fields = claim.to_dict()
        zones = [each.labels[ZONE] for each in self._nodes.list() if MARK in each.labels and ZONE in each.labels]
        volume = new_volume(fields, desired_class, location(fields, desired_class, node, zones))
        # If the volume already exists, the cache is outdated.
        with suppress(AlreadyExists):
            client.create(Object.from_dict(volume))
            name = volume["metadata"]["name"]
            self._recorder.event(claim, NORMAL, "ProvisioningSucceeded", f"Successfully provisioned volume {name}")

    def _reschedule(self, claim: Object, client: EngineClient) -> None:
        """Remove a selected node that no longer exists, so that the scheduler selects another node."""
        client.patch(claim, {"metadata": {"uid": claim.uid, "annotations": {SELECTED_NODE: None}}})

    def _find(self, resource: Resource, key: Key) -> Mapping[str, Any] | None:
        found = self._listers[resource].get(key)
        return None if found is None else found.to_dict()

    def _fail(self, claim: Object, name: str, problem: str) -> None:
        message = f'failed to provision volume with StorageClass "{name}": {problem}'
        self._recorder.event(claim, WARNING, "ProvisioningFailed", message)
        raise CtrlmgrError(message)

    # The following methods handle volumes.

    def _reclaim(self, key: Key, client: EngineClient) -> None:
        volume = self._volumes.get(key)
        if volume is None or volume.annotations.get(PROVISIONED_BY) != DRIVER:
            return
        found = reclaim(volume.to_dict(), is_attached=bool(self._attachments.by_index(_BY_VOLUME, key.name)))
        with suppress(NotFound):
            if found.deletes:
                client.delete(volume)
            elif found.finalizers is not None:
                client.update(volume.with_metadata(finalizers=[*found.finalizers]))


def own_keys(change: Change) -> Iterator[Key]:
    """Yield the key of a claim or volume that was created or changed."""
    if change.new is not None:
        yield change.new.key


def attachment_keys(change: Change) -> Iterator[Key]:
    """Yield the key of the volume of a deleted VolumeAttachment."""
    if change.new is None:
        yield Key("", volume_name_of(change.object))


def build(context: ControllerContext, options: NoOptions) -> Controller:
    """Build the controller from its context and options."""
    informers = context.informers
    watches = [
        Watch(informers.informer(CLAIMS), own_keys),
        Watch(informers.informer(VOLUMES), own_keys),
        Watch(informers.informer(ATTACHMENTS), attachment_keys),
    ]
    return assemble(
        DESCRIPTOR, context, Provisioner(informers, context.recorder(DESCRIPTOR)), watches, workers=_WORKERS
    )
