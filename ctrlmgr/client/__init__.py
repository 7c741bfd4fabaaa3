"""Clients: how controllers write. `LogClient` goes straight to the log, `EngineClient` through what the API does."""

from ctrlmgr.client.client import Client, ReconcileClient
from ctrlmgr.client.engine_client import EngineClient, Runner
from ctrlmgr.client.fencing import Fencing
from ctrlmgr.client.field_marks import CONTROLLER_MANAGER, FieldMarks
from ctrlmgr.client.log_client import LogClient

__all__ = [
    "CONTROLLER_MANAGER",
    "Client",
    "EngineClient",
    "Fencing",
    "FieldMarks",
    "LogClient",
    "ReconcileClient",
    "Runner",
]
