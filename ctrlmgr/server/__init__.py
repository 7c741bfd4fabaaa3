"""HTTP: health, metrics and version, on the one event loop of the process. asyncio lives here and nowhere else."""

from ctrlmgr.server.app import App
from ctrlmgr.server.health import Check, Health, LogProbe
from ctrlmgr.server.http import HttpServer

__all__ = ["App", "Check", "Health", "HttpServer", "LogProbe"]
