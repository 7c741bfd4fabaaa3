"""What a controller is built from, on a worked stage."""

from __future__ import annotations

from random import Random
from typing import Any

from ctrlmgr.client import EngineClient
from ctrlmgr.clock import Clock
from ctrlmgr.controllers.descriptor import ControllerDescriptor
from ctrlmgr.controllers.events.recorder import Recorder
from ctrlmgr.engine.writing import WriteEngine
from ctrlmgr.eventlog import EventLog
from ctrlmgr.informer import Informers
from tests.controllers.told import Told
from tests.controllers.worked_stage import WorkedStage


class StageContext:
    """A `ControllerContext`; what controllers tell is kept in `told`."""

    root_ca = ""

    def __init__(self, stage: WorkedStage) -> None:
        self.stage = stage
        self.told = Told()

    @property
    def informers(self) -> Informers:
        return self.stage.informers

    @property
    def event_log(self) -> EventLog:
        return self.stage.log

    @property
    def clock(self) -> Clock:
        return self.stage.clock

    @property
    def random(self) -> Random:
        return self.stage.random

    @property
    def engine(self) -> WriteEngine:
        return self.stage.engine

    def client(self, descriptor: ControllerDescriptor[Any], *, canonical: bool = False) -> EngineClient:
        return self.stage.engine_client

    def apiserver_client(self) -> EngineClient:
        return self.stage.apiserver_client

    def recorder(self, descriptor: ControllerDescriptor[Any]) -> Recorder:
        return self.told
