"""Kubelets of a benchmark, in their own process: new pods are bound and reported at once, terminating ones deleted.

Run `python -m bench.support.kubelets HOST PORT AUTHORITY TOKEN PHASE`: they watch all pods, report them in PHASE
(`Running`, ready, or `Succeeded`), and print `ready` once they watch. Threads share the requests; each has a
connection.
"""

from __future__ import annotations

import http.client
import json
import queue
import ssl
import sys
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

THREADS = 6
_NOW = "2026-01-01T00:00:00Z"


class Server(NamedTuple):
    """The server for requests."""

    host: str
    port: int
    context: ssl.SSLContext
    token: str

    def connect(self) -> http.client.HTTPSConnection:
        """Return a connection."""
        return http.client.HTTPSConnection(self.host, self.port, context=self.context)

    def send(
        self, connection: http.client.HTTPSConnection, method: str, path: str, body: object = None
    ) -> http.client.HTTPResponse:
        """Send a request; the caller reads the response."""
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": kind}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        return connection.getresponse()


def watched(server: Server) -> Iterator[dict[str, Any]]:
    """Yield every existing pod, and every change."""
    connection = server.connect()
    there = json.loads(server.send(connection, "GET", "/api/v1/pods").read())
    version = there["metadata"]["resourceVersion"]
    answer = server.send(connection, "GET", f"/api/v1/pods?watch=true&resourceVersion={version}")
    print("ready", flush=True)
    yield from there["items"]
    while line := answer.readline():
        event = json.loads(line)
        if event["type"] != "DELETED":
            yield event["object"]


def requests_for(pod: dict[str, Any], phase: str) -> Iterator[tuple[str, str, object]]:
    """Yield the requests of a kubelet and a scheduler for a pod now."""
    path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
    if "deletionTimestamp" in pod["metadata"]:
        yield "DELETE", path, {"gracePeriodSeconds": 0}
    elif "nodeName" not in pod["spec"]:
        yield "POST", f"{path}/binding", {"target": {"kind": "Node", "name": "node"}}
        condition = {"type": "Ready", "status": str(phase == "Running"), "lastTransitionTime": _NOW}
        yield "PATCH", f"{path}/status", {"status": {"phase": phase, "conditions": [condition]}}


def main(arguments: list[str]) -> None:
    """Run until the process is terminated."""
    host, port, authority, token, phase = arguments
    server = Server(host, int(port), ssl.create_default_context(cafile=authority), token)
    waiting: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()

    def play() -> None:
        connection = server.connect()
        while True:
            for method, path, body in requests_for(waiting.get(), phase):
                server.send(connection, method, path, body).read()

    for _ in range(THREADS):
        threading.Thread(target=play, daemon=True).start()
    for pod in watched(server):
        waiting.put(pod)


if __name__ == "__main__":
    main(sys.argv[1:])
