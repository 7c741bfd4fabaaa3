"""The two priority classes that every cluster has: made when they are missing as a process begins to serve.

Guarantees: it does not give up; until they are there the process is not ready.

Kubernetes: `pkg/registry/scheduling/rest/storage_scheduling.go` (post-start hook).
"""

from __future__ import annotations

import threading
from typing import Final

import structlog

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource
from ctrlmgr.client import EngineClient
from ctrlmgr.errors import AlreadyExists, CtrlmgrError
from ctrlmgr.kinds.classes import SYSTEM_PRIORITIES

log = structlog.get_logger(__name__)

PRIORITY_CLASSES: Final = Resource("scheduling.k8s.io", "priorityclasses")
_AGAIN: Final = 0.2
"""Seconds until what failed is tried again."""
_WORDS: Final = {
    "system-node-critical": "Used for system critical pods that must not be moved from their current node.",
    "system-cluster-critical": (
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary."
    ),
}


class SystemPriorityClasses:
    """A Runnable that makes them and ends; see the module's docstring."""

    name = "scheduling/bootstrap-system-priority-classes"

    def __init__(self, client: EngineClient) -> None:
        """Write through `client`."""
        self._client = client
        self._is_done = False

    def has_synced(self) -> bool:
        """Whether they are there."""
        return self._is_done

    def problem(self) -> str | None:
        """Return what is wrong, None when they are there."""
        return None if self._is_done else "the priority classes that every cluster has have not been made yet"

    def run(self, stop: threading.Event) -> None:
        """Make what is missing, as often as it takes, unless stopped."""
        while not stop.is_set():
            try:
                self.make()
            except CtrlmgrError as error:
                log.debug("priority classes not made, trying again", error=str(error))
                stop.wait(_AGAIN)
            else:
                self._is_done = True
                return

    def make(self) -> None:
        """Make what is missing; raises what a read or a write raises."""
        there = {obj.name for obj in self._client.list_all(PRIORITY_CLASSES)}
        for name, description in _WORDS.items():
            if name in there:
                continue
            fields = {
                "kind": "PriorityClass",
                "apiVersion": "scheduling.k8s.io/v1",
                "metadata": {"name": name},
                "value": SYSTEM_PRIORITIES[name],
                "description": description,
            }
            try:
                self._client.create(Object.from_dict(fields))
            except AlreadyExists:  # another process was quicker
                continue
