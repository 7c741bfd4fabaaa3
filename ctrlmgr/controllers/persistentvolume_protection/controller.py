"""The PersistentVolume protection controller: delays the deletion of a volume while a claim is bound to it.

Guarantee, as in Kubernetes (`pkg/controller/volume/pvprotection/pv_protection_controller.go`): a volume is in use while
its phase is Bound.
"""

from __future__ import annotations

from typing import Final

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.descriptor import ControllerContext, NoOptions
from ctrlmgr.controllers.persistentvolume_protection import DESCRIPTOR
from ctrlmgr.controllers.protection import Protector
from ctrlmgr.manager import Controller, Watch

VOLUMES: Final = Resource("", "persistentvolumes")
FINALIZER: Final = "kubernetes.io/pv-protection"


class _Status(msgspec.Struct, frozen=True, gc=False):
    phase: str = ""


class _Volume(msgspec.Struct, frozen=True, gc=False):
    status: _Status = _Status()


def is_bound(volume: Object) -> bool:
    """Return whether a claim is bound to a volume."""
    return volume.view(_Volume).status.phase == "Bound"


def build(context: ControllerContext, options: NoOptions) -> Controller:
    """Build the controller from its context and options."""
    volumes = context.informers.informer(VOLUMES)
    protector = Protector(volumes.lister, FINALIZER, is_bound)
    return assemble(DESCRIPTOR, context, protector, [Watch(volumes, protector.concerned)])
