"""Simulates kubelets in a separate process: they bind new pods, patch their status, and delete terminating pods.

Run `python -m bench.support.kubelets HOST PORT AUTHORITY TOKEN PHASE`: the process watches all pods, patches their
status to PHASE (`Running`, and ready, or `Succeeded`), and prints `ready` when the watch has begun. Several threads
send the requests; each thread has its own connection.
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
    """The server to which requests are sent."""

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
        """Send a request; the caller must read the response."""
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": kind}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        return connection.getresponse()


def watched(server: Server) -> Iterator[dict[str, Any]]:
    """Yield every existing pod, and then every changed pod."""
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
    """Yield the requests that a scheduler and a kubelet send for a pod in its current state."""
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
