"""Tests of a kopf operator for Services: it creates, updates, runs timers, holds a deletion by its finalizer, and posts
Events.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kubernetes import client

from tests.e2e import services_operator
from tests.e2e.clients import python_client as make
from tests.e2e.services_operator import CREATED, FAREWELL, TICKS, UPDATED
from tests.e2e.serving import DEADLINE, Server, until

FINALIZER = "example.com/operator"


@contextmanager
def operator(server: Server, namespace: str, log: Path) -> Iterator[None]:
    """Run the operator in a namespace; check that the operator shuts down gracefully."""
    command = [
        sys.executable,
        "-m",
        "kopf",
        "run",
        "--standalone",
        "--namespace",
        namespace,
        services_operator.__file__,
    ]
    with log.open("w") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, env={**os.environ, "KUBECONFIG": str(server.kubeconfig)}
        )
    try:
        yield
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE) == 0, log.read_text()
    finally:
        process.kill()
        process.wait(DEADLINE)


class WebService:
    """A Service `web` that the operator handles."""

    def __init__(self, core: make.Api, namespace: str) -> None:
        self._core, self._namespace = core, namespace
        core.create_namespaced_service(namespace, make.service("web"))

    def mark(self, name: str) -> str | None:
        metadata = self._core.read_namespaced_service("web", self._namespace).metadata
        mark: str | None = (metadata.annotations or {}).get(name)
        return mark

    @property
    def finalizers(self) -> list[str]:
        return self._core.read_namespaced_service("web", self._namespace).metadata.finalizers or []

    @property
    def is_gone(self) -> bool:
        return make.is_absent(self._core.read_namespaced_service, "web", self._namespace)

    def patch(self, patch: dict[str, Any]) -> None:
        self._core.patch_namespaced_service("web", self._namespace, patch, _content_type="application/merge-patch+json")

    def delete(self) -> None:
        self._core.delete_namespaced_service("web", self._namespace)

    @property
    def reasons(self) -> set[str]:
        events = self._core.list_namespaced_event(self._namespace, field_selector="involvedObject.name=web").items
        return {event.reason for event in events}


def test_kopf_runs_an_operator_on_services(server: Server, namespace: str, tmp_path: Path) -> None:
    with make.connected(server) as api, operator(server, namespace, tmp_path / "operator.log"):
        service = WebService(client.CoreV1Api(api), namespace)
        until(lambda: service.mark(CREATED) == "80")
        assert service.finalizers == [FINALIZER]
        service.patch({"spec": {"ports": [{"name": "http", "port": 8080}]}})
        until(lambda: service.mark(UPDATED) == "80 to 8080")
        until(lambda: int(service.mark(TICKS) or "0") >= 2)
        service.delete()
        assert not service.is_gone
        assert service.finalizers == [FINALIZER]
        service.patch({"metadata": {"annotations": {FAREWELL: "yes"}}})
        until(lambda: service.is_gone)
        until(lambda: {"Greeted", "Released", "Logging"} <= service.reasons)
