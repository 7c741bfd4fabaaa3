"""The controllers that can be replayed, and how each is put together on a stage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import TypeVar

from ctrlmgr import __version__
from ctrlmgr.client import CONTROLLER_MANAGER, EngineClient, LogClient
from ctrlmgr.clock import Clock
from ctrlmgr.controllers.endpoint_slices.controller import CONTROLLER_NAME as ENDPOINT_SLICE_CONTROLLER
from ctrlmgr.controllers.endpoint_slices.controller import new_endpoint_slice_controller
from ctrlmgr.controllers.endpoints.controller import CONTROLLER_NAME as ENDPOINT_CONTROLLER
from ctrlmgr.controllers.endpoints.controller import new_endpoints_controller
from ctrlmgr.controllers.mirroring.controller import CONTROLLER_NAME as MIRRORING_CONTROLLER
from ctrlmgr.controllers.mirroring.controller import new_mirroring_controller
from ctrlmgr.controllers.namespace.controller import CONTROLLER_NAME as NAMESPACE_CONTROLLER
from ctrlmgr.controllers.namespace.controller import new_namespace_controller
from ctrlmgr.engine.cacher import Cacher
from ctrlmgr.engine.drive import Driver
from ctrlmgr.engine.engine import Engine
from ctrlmgr.engine.kinds import Kinds
from ctrlmgr.engine.operations import Operation
from ctrlmgr.engine.options import Requester
from ctrlmgr.eventlog import Cause, EventLog, Fence
from ctrlmgr.informer import Informers, WatchCache
from ctrlmgr.manager import Controller
from ctrlmgr.recording.clock import LogClock

T = TypeVar("T")

ControllerBuilder = Callable[[Informers, LogClient, EventLog, Clock, Random], Controller]
"""Puts a controller together, before the informers sync."""

DELETION_GRACE = 5.0
"""Seconds for which the recorded controller leaves a namespace alone after it was deleted."""

_WINDOW = 2_000
"""Events that the engine's cache keeps."""


def _endpoints(informers: Informers, client: LogClient, log: EventLog, clock: Clock, random: Random) -> Controller:
    return new_endpoints_controller(informers, client, log, clock=clock, random=random, workers=1)


def _slices(informers: Informers, client: LogClient, log: EventLog, clock: Clock, random: Random) -> Controller:
    return new_endpoint_slice_controller(informers, client, log, clock=clock, random=random, workers=1)


def _mirroring(informers: Informers, client: LogClient, log: EventLog, clock: Clock, random: Random) -> Controller:
    return new_mirroring_controller(informers, client, log, clock=clock, random=random, workers=1)


def _namespaces(informers: Informers, client: LogClient, log: EventLog, clock: Clock, random: Random) -> Controller:
    kinds = Kinds.builtin()
    run = _Engine(kinds, log, clock, random)
    content = {
        kind.storage: kind.gvk.api_version
        for kind in kinds
        if kind.namespaced and kind.storage == kind.resource and "delete" in kind.verbs
    }
    requester = Requester(f"system:controller:{NAMESPACE_CONTROLLER}", ("system:masters",), f"ctrlmgr/{__version__}")
    return new_namespace_controller(
        informers,
        content.items(),
        EngineClient(run.engine, run, requester, manager=CONTROLLER_MANAGER),
        log,
        clock=clock,
        random=random,
        grace=DELETION_GRACE,
        workers=1,
    )


CONTROLLERS: Mapping[str, ControllerBuilder] = {
    ENDPOINT_CONTROLLER: _endpoints,
    ENDPOINT_SLICE_CONTROLLER: _slices,
    MIRRORING_CONTROLLER: _mirroring,
    NAMESPACE_CONTROLLER: _namespaces,
}
"""The controllers that can be replayed, by name."""


class _Engine:
    """What the API does with the writes of controllers that go through it; a `Runner` on the stage's one thread."""

    def __init__(self, kinds: Kinds, log: EventLog, clock: Clock, random: Random) -> None:
        self._log = log
        self._feed = WatchCache(log, capacity=_WINDOW, clock=LogClock(clock))
        self._cacher = Cacher(log, self._feed, window=_WINDOW)
        self.engine = Engine(kinds, self._cacher, log, clock=clock, random=random)

    def __call__(self, operation: Operation[T], cause: Cause | None = None, fence: Fence | None = None) -> T:
        return Driver(self._log, self._feed, self._cacher, patience=0, fence=fence, cause=cause).run(operation)
