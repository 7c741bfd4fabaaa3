"""A scheduler and kubelets for a server without simulated nodes: all pods start and terminate at once."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPException
from typing import Any

from ctrlmgr.clock import SystemClock, format_time_seconds
from tests.background import DEADLINE, background
from tests.e2e.serving import Server

PERIOD = 0.05
_BROKEN = "broken"
"""The name of an image whose pods run and never become ready."""


class Kubelets:
    """A scheduler and kubelets, which process all pods repeatedly."""

    def __init__(self, server: Server) -> None:
        """Process the pods of the server `server`."""
        self._server = server
        self._turns = itertools.count()

    def see_to_all(self) -> None:
        """Perform the next step of each pod: bind it, start it, or remove it."""
        nodes = self._server.request("GET", "/api/v1/nodes")[1]["items"]
        usable = [each["metadata"]["name"] for each in nodes if not each["spec"].get("unschedulable")]
        for pod in self._server.request("GET", "/api/v1/pods")[1]["items"]:
            self._see_to(pod, usable)

    def _see_to(self, pod: dict[str, Any], nodes: list[str]) -> None:
        path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
        if "deletionTimestamp" in pod["metadata"]:
            self._server.request("DELETE", path, {"gracePeriodSeconds": 0})
        elif "nodeName" not in pod["spec"]:
            name = _asked_for(pod) or (nodes[next(self._turns) % len(nodes)] if nodes else "")
            if name:
                self._server.request("POST", f"{path}/binding", {"target": {"kind": "Node", "name": name}})
        elif pod["status"]["phase"] == "Pending":
            ends = pod["spec"]["restartPolicy"] == "Never"
            is_ready = not ends and _BROKEN not in pod["spec"]["containers"][0]["image"]
            now = format_time_seconds(SystemClock().now())
            condition = {"type": "Ready", "status": str(is_ready), "lastTransitionTime": now}
            phase = "Succeeded" if ends else "Running"
            self._server.request("PATCH", f"{path}/status", {"status": {"phase": phase, "conditions": [condition]}})


def _asked_for(pod: dict[str, Any]) -> str:
    affinity = ((pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    return str(affinity["nodeSelectorTerms"][0]["matchFields"][0]["values"][0]) if affinity else ""


@contextmanager
def kubelets(server: Server) -> Iterator[None]:
    """Run the scheduler and the kubelets on a separate thread."""
    stop, played = threading.Event(), Kubelets(server)

    def play() -> None:
        while not stop.wait(PERIOD):
            with suppress(OSError, HTTPException):  # the server is not available for a moment
                played.see_to_all()

    future = background(play)
    try:
        yield
    finally:
        stop.set()
        future.result(DEADLINE)
