"""The controllers that can be replayed, and how each is put together on a stage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from random import Random
from typing import Any, TypeVar

from ctrlmgr import __version__
from ctrlmgr.admission.registry import default_chain
from ctrlmgr.client import CONTROLLER_MANAGER, EngineClient, LogClient
from ctrlmgr.clock import Clock
from ctrlmgr.controllers import registry
from ctrlmgr.controllers.descriptor import ControllerDescriptor
from ctrlmgr.controllers.events.recorder import SILENT, Recorder
from ctrlmgr.engine.cacher import Cacher
from ctrlmgr.engine.drive import Driver
from ctrlmgr.engine.engine import Engine
from ctrlmgr.engine.kinds import Kinds
from ctrlmgr.engine.operations import Operation
from ctrlmgr.engine.options import Requester
from ctrlmgr.eventlog import Cause, EventLog, Fence
from ctrlmgr.informer import Informers, WatchCache
from ctrlmgr.kinds.builtin import builtin_kinds
from ctrlmgr.manager import Controller
from ctrlmgr.recording.clock import LogClock

T = TypeVar("T")

ControllerBuilder = Callable[[Informers, LogClient, EventLog, Clock, Random], Controller]
"""Puts a controller together, before the informers sync."""

_WINDOW = 2_000
"""Events that the engine's cache keeps."""


class _Context:
    """What a controller is built from on a stage: a `ControllerContext`.

    `client` leads through an engine of the stage's own; Events are recorded nowhere.
    """

    root_ca = ""

    def __init__(self, informers: Informers, client: LogClient, log: EventLog, clock: Clock, random: Random) -> None:
        self.informers = informers
        self.event_log = log
        self.clock = clock
        self.random = random
        self._log_client = client

    @cached_property
    def _runner(self) -> _Engine:
        return _Engine(builtin_kinds(), self.event_log, self.clock, self.random)

    @property
    def engine(self) -> Engine:
        return self._runner.engine

    def client(self, descriptor: ControllerDescriptor[Any]) -> EngineClient:
        requester = Requester(descriptor.user, ("system:masters",), f"ctrlmgr/{__version__}")
        return EngineClient(self.engine, self._runner, requester, manager=CONTROLLER_MANAGER)

    def log_client(self, descriptor: ControllerDescriptor[Any]) -> LogClient:
        return self._log_client

    def recorder(self, descriptor: ControllerDescriptor[Any]) -> Recorder:
        return SILENT


def _build(
    descriptor: ControllerDescriptor[Any],
    informers: Informers,
    client: LogClient,
    log: EventLog,
    clock: Clock,
    random: Random,
) -> Controller:
    return descriptor.build(_Context(informers, client, log, clock, random), descriptor.options())


def builder_of(descriptor: ControllerDescriptor[Any]) -> ControllerBuilder:
    """Return what builds a controller on a stage, with its default options."""
    return partial(_build, descriptor)


def user_of(controller: str) -> str:
    """Return the user as which a controller writes; one that is not ours has its name in it."""
    known = registry.by_name().get(controller)
    return known.user if known is not None else f"system:controller:{controller}"


CONTROLLERS: Mapping[str, ControllerBuilder] = {each.name: builder_of(each) for each in registry.ALL if each.replays}
"""The controllers that can be replayed, by name."""


class _Engine:
    """What the API does with the writes of controllers that go through it; a `Runner` on the stage's one thread."""

    def __init__(self, kinds: Kinds, log: EventLog, clock: Clock, random: Random) -> None:
        self._log = log
        self._feed = WatchCache(log, capacity=_WINDOW, clock=LogClock(clock))
        self._cacher = Cacher(log, self._feed, window=_WINDOW)
        self.engine = Engine(kinds, self._cacher, log, clock=clock, random=random, admission=default_chain(clock))

    def __call__(self, operation: Operation[T], cause: Cause | None = None, fence: Fence | None = None) -> T:
        return Driver(self._log, self._feed, self._cacher, patience=0, fence=fence, cause=cause).run(operation)
