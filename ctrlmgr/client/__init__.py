"""The clients with which controllers write: `LogClient` appends to the log, `EngineClient` calls the API's engine."""

from ctrlmgr.client.controller_driver import ControllerRunner
from ctrlmgr.client.engine_client import EngineClient, Runner
from ctrlmgr.client.fencing import Fencing
from ctrlmgr.client.informer_state import InformerState, LogState
from ctrlmgr.client.log_client import LogClient
from ctrlmgr.client.protocols import Client, PatchClient, ReconcileClient
from ctrlmgr.engine.managedfields.controller_entries import CONTROLLER_MANAGER, FieldMarks

__all__ = [
    "CONTROLLER_MANAGER",
    "Client",
    "ControllerRunner",
    "EngineClient",
    "Fencing",
    "FieldMarks",
    "InformerState",
    "LogClient",
    "LogState",
    "PatchClient",
    "ReconcileClient",
    "Runner",
]
