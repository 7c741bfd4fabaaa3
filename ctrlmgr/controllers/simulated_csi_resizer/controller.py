"""The resizer of the simulated CSI driver: expands the volume of a claim, and applies its VolumeAttributesClass.

Guarantees: the steps of an expansion are written in the same order as in `external-resizer`. After an interruption, the
next reconcile continues the expansion. The simulated node that runs a pod with the claim finishes the expansion.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from ctrlmgr.api.object import Object
from ctrlmgr.api.quantity import parse
from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.client import EngineClient
from ctrlmgr.clock import Clock, format_time_seconds
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.descriptor import ControllerContext, NoOptions
from ctrlmgr.controllers.events.recorder import NORMAL, Recorder
from ctrlmgr.controllers.persistentvolume_attach_detach.attachable import CLAIMS, VOLUMES
from ctrlmgr.controllers.simulated_csi_resizer import DESCRIPTOR
from ctrlmgr.controllers.simulated_csi_resizer.decide import (
    CONTROLLER_IN_PROGRESS,
    NODE_PENDING,
    desired_class,
    is_of_driver,
    needs_expansion,
    requested,
    with_applied_class,
    with_expansion,
    with_modification,
)
from ctrlmgr.errors import NotFound
from ctrlmgr.informer import Change, Informers
from ctrlmgr.manager import Controller, Watch
from ctrlmgr.simulation.csi_objects import DRIVER

ATTRIBUTE_CLASSES: Final = Resource("storage.k8s.io", "volumeattributesclasses")


class Resizer:
    """Reconciles the size and the VolumeAttributesClass of a claim."""

    def __init__(self, informers: Informers, recorder: Recorder, *, clock: Clock) -> None:
        """Create a reconciler that reads these caches."""
        self._claims, self._volumes = informers.informer(CLAIMS).lister, informers.informer(VOLUMES).lister
        self._classes = informers.informer(ATTRIBUTE_CLASSES).lister
        self._recorder, self._clock = recorder, clock

    def reconcile(self, key: Key, client: EngineClient) -> None:
        """Expand or modify the volume of a claim; raises the errors of the API if a write fails."""
        claim = self._claims.get(key)
        fields = {} if claim is None else claim.to_dict()
        if claim is None or claim.is_terminating or not fields["spec"].get("volumeName"):
            return
        volume = self._volumes.get(Key("", fields["spec"]["volumeName"]))
        if volume is None or not is_of_driver(fields, volume.to_dict()):
            return
        with suppress(NotFound):
            if needs_expansion(fields):
                self._expand(claim, volume, client)
            elif desired_class(fields):
                self._modify(claim, volume, desired_class(fields), client)

    @property
    def _now(self) -> str:
        return format_time_seconds(self._clock.now())

    def _expand(self, claim: Object, volume: Object, client: EngineClient) -> None:
        message = f"External resizer is resizing volume {volume.name}"
        self._recorder.event(claim, NORMAL, "Resizing", message)
        claim = _write(with_expansion(claim.to_dict(), CONTROLLER_IN_PROGRESS, self._now), client)
        size = requested(claim.to_dict())
        if parse(volume.to_dict()["spec"]["capacity"]["storage"]) < parse(size):
            client.patch(volume, {"metadata": {"uid": volume.uid}, "spec": {"capacity": {"storage": size}}})
        _write(with_expansion(claim.to_dict(), NODE_PENDING, self._now), client)
        what = "Require file system resize of volume on node"
        self._recorder.event(claim, NORMAL, "FileSystemResizeRequired", what)

    def _modify(self, claim: Object, volume: Object, name: str, client: EngineClient) -> None:
        found = self._classes.get(Key("", name))
        if found is None or found.to_dict().get("driverName") != DRIVER:
            desired = with_modification(claim.to_dict(), name, "Pending", self._now)
            if desired != claim.to_dict():
                _write(desired, client)
            return
        what = f"volume {claim.name} with vac {name}"
        self._recorder.event(claim, NORMAL, "VolumeModify", f"external resizer is modifying {what}")
        claim = _write(with_modification(claim.to_dict(), name, "InProgress", self._now), client)
        client.patch(volume, {"metadata": {"uid": volume.uid}, "spec": {"volumeAttributesClassName": name}})
        _write(with_applied_class(claim.to_dict(), name), client)
        message = f"external resizer modified {what} successfully"
        self._recorder.event(claim, NORMAL, "VolumeModifySuccessful", message)

    def of_class(self, change: Change) -> Iterator[Key]:
        """Yield the keys of the claims that wait for a VolumeAttributesClass which was created."""
        if change.old is None and change.new is not None:
            name = change.new.name
            waiting = (each for each in self._claims.list() if each.mentions(name.encode()))
            yield from (each.key for each in waiting)


def _write(claim: dict[str, Any], client: EngineClient) -> Object:
    return client.update(Object.from_dict(claim), "status")


def claim_keys(change: Change) -> Iterator[Key]:
    """Yield the key of a claim that was created or changed."""
    if change.new is not None:
        yield change.new.key


def build(context: ControllerContext, options: NoOptions) -> Controller:
    """Build the controller from its context and options."""
    informers = context.informers
    resizer = Resizer(informers, context.recorder(DESCRIPTOR), clock=context.clock)
    watches = [
        Watch(informers.informer(CLAIMS), claim_keys),
        Watch(informers.informer(ATTRIBUTE_CLASSES), resizer.of_class),
    ]
    return assemble(DESCRIPTOR, context, resizer, watches, reads_own_writes=True)
