"""A controller context for tests that run controllers step by step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from ctrlmgr.clock import Clock
from ctrlmgr.controllers.descriptor import ControllerDescriptor
from ctrlmgr.controllers.issuer_dependencies import Identity
from ctrlmgr.eventlog import EventLog
from ctrlmgr.informer import Informers
from ctrlmgr.scheduling.app_plugins import SchedulerPlugins
from tests.controllers.events.recorded_events import RecordedEvents
from tests.controllers.worked_stage import WorkedStage


@dataclass(kw_only=True)
class HandContext:
    """A `ControllerContext`; `writer` returns the client of a controller, and `recorded` records the
    Events of controllers.
    """

    informers: Informers
    event_log: EventLog
    clock: Clock
    random: Random
    writer: Callable[[ControllerDescriptor[Any]], Any]
    recorded: Any = field(default_factory=RecordedEvents)
    engine: Any = None
    apiserver: Any = None
    root_ca: str = ""
    at_once: int = 1
    recalls: bool = False
    scheduler_plugins: SchedulerPlugins = field(default_factory=SchedulerPlugins)

    def client(self, descriptor: ControllerDescriptor[Any], *, canonical: bool = False) -> Any:
        return self.writer(descriptor)

    def apiserver_client(self) -> Any:
        return self.apiserver

    def recorder(self, descriptor: ControllerDescriptor[Any]) -> Any:
        return self.recorded


class StageContext(HandContext):
    """The controller context of a worked stage."""

    def __init__(self, stage: WorkedStage, **more: Any) -> None:
        super().__init__(
            informers=stage.informers,
            event_log=stage.log,
            engine=stage.engine,
            clock=stage.clock,
            random=stage.random,
            writer=lambda descriptor: stage.engine_client,
            apiserver=stage.apiserver_client,
            **more,
        )


class StageIdentityContext(StageContext):
    """The controller context of a worked stage, for a controller that needs an identity."""

    def __init__(self, stage: WorkedStage, identity: Identity, **more: Any) -> None:
        super().__init__(stage, **more)
        self.identity = identity
