"""Creates the two system priority classes when a process starts to serve, if they are missing.

Guarantees: the runnable retries until both priority classes exist; before that, the process is not ready.

Source: Kubernetes' `pkg/registry/scheduling/rest/storage_scheduling.go` (post-start hook).
"""

from __future__ import annotations

import threading
from typing import Final

import structlog

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource
from ctrlmgr.client import EngineClient
from ctrlmgr.errors import AlreadyExists, CtrlmgrError
from ctrlmgr.kinds.scheduling.priority_class import SYSTEM_PRIORITIES

log = structlog.get_logger(__name__)

PRIORITY_CLASSES: Final = Resource("scheduling.k8s.io", "priorityclasses")
_AGAIN: Final = 0.2
"""The number of seconds between two retries."""
_WORDS: Final = {
    "system-node-critical": "Used for system critical pods that must not be moved from their current node.",
    "system-cluster-critical": (
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary."
    ),
}


class SystemPriorityClasses:
    """A Runnable that creates the system priority classes and ends after that."""

    name = "scheduling/bootstrap-system-priority-classes"

    def __init__(self, client: EngineClient) -> None:
        """Create a runnable that writes through `client`."""
        self._client = client
        self._is_done = False

    def has_synced(self) -> bool:
        """Return whether both priority classes exist."""
        return self._is_done

    def run(self, stop: threading.Event) -> None:
        """Create the missing priority classes, with retries until `stop` is set."""
        while not stop.is_set():
            try:
                self.make()
            except CtrlmgrError as error:
                log.debug("creating priority classes failed, retrying", error=str(error))
                stop.wait(_AGAIN)
            else:
                self._is_done = True
                return

    def make(self) -> None:
        """Create the missing priority classes; raises an error if a read or write fails."""
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
            except AlreadyExists:  # Another process has created the priority class first.
                continue
