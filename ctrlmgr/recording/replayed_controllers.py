"""Defines the controllers that a replay can run, and how to create each of them on a stage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from random import Random
from typing import Any, TypeVar

from ctrlmgr.authentication.user_names import ServiceAccountName
from ctrlmgr.client import EngineClient
from ctrlmgr.clock import Clock
from ctrlmgr.controllers import registry
from ctrlmgr.controllers.descriptor import NAMESPACE, ControllerDescriptor
from ctrlmgr.controllers.events.recorder import SILENT, Recorder
from ctrlmgr.eventlog import EventLog
from ctrlmgr.informer import Informers
from ctrlmgr.manager import Controller
from ctrlmgr.scheduling.app_plugins import SchedulerPlugins

T = TypeVar("T")

ControllerBuilder = Callable[[Informers, EngineClient, EventLog, Clock, Random], Controller]
"""A function that creates a controller; it is called before the informers sync."""


class _Context:
    """A `ControllerContext` for controllers on a stage, which records no Events."""

    root_ca = ""
    at_once = 1
    recalls = True
    scheduler_plugins = SchedulerPlugins()

    def __init__(self, informers: Informers, client: EngineClient, log: EventLog, clock: Clock, random: Random) -> None:
        self.informers = informers
        self.event_log = log
        self.clock = clock
        self.random = random
        self.engine = client.engine
        self._client = client

    def client(self, descriptor: ControllerDescriptor[Any], *, canonical: bool = False) -> EngineClient:
        return self._client.of_canonical_objects() if canonical else self._client

    def apiserver_client(self) -> EngineClient:
        return self._client

    def recorder(self, descriptor: ControllerDescriptor[Any]) -> Recorder:
        return SILENT


def _build(
    descriptor: ControllerDescriptor[Any],
    informers: Informers,
    client: EngineClient,
    log: EventLog,
    clock: Clock,
    random: Random,
) -> Controller:
    return descriptor.build(_Context(informers, client, log, clock, random), descriptor.options())


def builder_of(descriptor: ControllerDescriptor[Any]) -> ControllerBuilder:
    """Return a function that builds a controller on a stage, with its default options."""
    return partial(_build, descriptor)


def user_of(controller: str) -> str:
    """Return the user name of a controller's writes; by default, the ServiceAccount with the controller's name."""
    known = registry.by_name().get(controller)
    return known.user if known is not None else ServiceAccountName(NAMESPACE, controller).username


CONTROLLERS: Mapping[str, ControllerBuilder] = {each.name: builder_of(each) for each in registry.ALL if each.replays}
"""The controllers that a replay can run, by name."""
