"""Tests of a kopf operator for a custom kind: its results are written to the status, and its finalizer holds a
deletion.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.e2e import widgets_operator
from tests.e2e.serving import DEADLINE, Server, until
from tests.e2e.widgets import defined, definition

_COMMAND = [sys.executable, "-m", "kopf", "run", "--standalone", "--namespace"]


def test_kopf_runs_an_operator_on_custom_objects(server: Server, namespace: str, tmp_path: Path) -> None:
    group, log = f"{namespace}.example.com", tmp_path / "operator.log"
    widgets = f"/apis/{group}/v1/namespaces/{namespace}/widgets"
    environment = {**os.environ, "KUBECONFIG": str(server.kubeconfig), "WIDGETS_GROUP": group}

    def read() -> dict[str, Any]:
        fields: dict[str, Any] = server.request("GET", f"{widgets}/a")[1]
        return fields

    with defined(server, definition(group)), log.open("w") as output:
        command = [*_COMMAND, namespace, widgets_operator.__file__]
        operator = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment)
        try:
            head = {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": "a"}}
            server.create(widgets, {**head, "spec": {"color": "red"}})
            until(lambda: read().get("status", {}).get("create") == {"size": 1})
            assert read()["metadata"]["finalizers"] == ["example.com/operator"]
            server.request("PATCH", f"{widgets}/a", {"spec": {"size": 2}})
            until(lambda: read()["status"].get("changed") == "1 to 2")
            server.request("DELETE", f"{widgets}/a")
            assert "deletionTimestamp" in read()["metadata"]
            server.request("PATCH", f"{widgets}/a/status", {"status": {"mayGo": True}})
            until(lambda: server.request("GET", f"{widgets}/a")[0] == 404)
            operator.send_signal(signal.SIGTERM)
            assert operator.wait(DEADLINE) == 0, log.read_text()
        finally:
            operator.kill()
            operator.wait(DEADLINE)
