"""The volume protection controller: a volume that is being deleted goes when no claim is bound to it.

Guarantee, Kubernetes' (`pkg/controller/volume/pvprotection/pv_protection_controller.go`): a volume is in use while its
phase is Bound.
"""

from __future__ import annotations

from random import Random
from typing import Final

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource
from ctrlmgr.client import EngineClient
from ctrlmgr.clock import Clock
from ctrlmgr.controllers.descriptor import ControllerContext, NoOptions
from ctrlmgr.controllers.protection import Protector
from ctrlmgr.controllers.volume_protection import DESCRIPTOR
from ctrlmgr.eventlog import EventLog
from ctrlmgr.informer import Informers
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


def new_volume_protection_controller(
    informers: Informers, client: EngineClient, event_log: EventLog, *, clock: Clock, random: Random
) -> Controller:
    """Put the controller together; ask before `informers` sync."""
    volumes = informers.informer(VOLUMES)
    protector = Protector(volumes.lister, FINALIZER, is_bound)
    return Controller(
        DESCRIPTOR.name,
        protector,
        watches=[Watch(volumes, protector.concerned)],
        client=client,
        log=event_log,
        clock=clock,
        random=random,
    )


def build(context: ControllerContext, options: NoOptions) -> Controller:
    """Build it from what its descriptor declares."""
    return new_volume_protection_controller(
        context.informers,
        context.client(DESCRIPTOR),
        context.event_log,
        clock=context.clock,
        random=context.random,
    )
