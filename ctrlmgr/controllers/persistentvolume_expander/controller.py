"""The reconciler of the PersistentVolume expander.

Guarantee: a claim is reconciled when it is created, when its request grows, and when its capacity grows.
"""

from __future__ import annotations

from collections.abc import Iterator

from ctrlmgr.api.resource import Key
from ctrlmgr.client import EngineClient
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.descriptor import ControllerContext, NoOptions
from ctrlmgr.controllers.events.recorder import NORMAL, Recorder
from ctrlmgr.controllers.persistentvolume_binder.controller import CLAIMS, VOLUMES
from ctrlmgr.controllers.persistentvolume_expander import DESCRIPTOR
from ctrlmgr.controllers.persistentvolume_expander.decide import RESIZER, expansion, held, requested_storage
from ctrlmgr.informer import Change, Lister
from ctrlmgr.manager import Controller, Watch


class VolumeExpander:
    """Reconciles one PersistentVolumeClaim."""

    def __init__(self, claims: Lister, volumes: Lister, recorder: Recorder) -> None:
        """Create a reconciler that reads objects from these caches."""
        self._claims, self._volumes, self._recorder = claims, volumes, recorder

    def reconcile(self, key: Key, client: EngineClient) -> None:
        """Record an Event about the component that must expand the volume, and annotate the claim with it."""
        claim = self._claims.get(key)
        if claim is None:
            return
        fields = claim.to_dict()
        volume = self._volumes.get(Key("", fields["spec"].get("volumeName") or ""))
        found = expansion(fields, None if volume is None else volume.to_dict())
        if found is None:
            return
        self._recorder.event(claim, NORMAL, "ExternalExpanding", found.message)
        if found.resizer and claim.annotations.get(RESIZER) != found.resizer:
            noted = {"metadata": {"uid": claim.uid, "annotations": {RESIZER: found.resizer}}}
            client.patch(claim, noted, "status")


def claim_keys(change: Change) -> Iterator[Key]:
    """Yield the key of a claim that was created, or whose request or capacity has grown."""
    new, old = change.new, change.old
    if new is None:
        return
    if old is None:
        yield new.key
        return
    now, before = new.to_dict(), old.to_dict()
    if requested_storage(now) > requested_storage(before) or held(now) > held(before):
        yield new.key


def build(context: ControllerContext, options: NoOptions) -> Controller:
    """Build the controller from its context and options."""
    claims, volumes = context.informers.informer(CLAIMS), context.informers.informer(VOLUMES)
    expander = VolumeExpander(claims.lister, volumes.lister, context.recorder(DESCRIPTOR))
    return assemble(DESCRIPTOR, context, expander, [Watch(claims, claim_keys)])
