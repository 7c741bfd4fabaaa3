"""The volume protection controller: a volume that is being deleted goes when no claim is bound to it.

Guarantee, Kubernetes' (`pkg/controller/volume/pvprotection/pv_protection_controller.go`): a volume is in use while its
phase is Bound.
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
    """Say whether a volume has a claim."""
    return volume.view(_Volume).status.phase == "Bound"


def build(context: ControllerContext, options: NoOptions) -> Controller:
    """Build it from what its descriptor declares."""
    volumes = context.informers.informer(VOLUMES)
    protector = Protector(volumes.lister, FINALIZER, is_bound)
    return assemble(DESCRIPTOR, context, protector, [Watch(volumes, protector.concerned)])
