"""Tests of the UI page of a real server: over TLS, through `kubectl proxy` without a token, and with real writes."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.kubectl import Kubectl
from tests.e2e.serving import DEADLINE, Server, until


@pytest.fixture
def proxy(anywhere: Kubectl, server: Server) -> Iterator[str]:
    """The URL of a `kubectl proxy` that forwards to the server."""
    command = [anywhere.program, "--kubeconfig", str(server.kubeconfig), "proxy", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://{process.stdout.readline().rpartition(' ')[2].strip()}"
        finally:
            process.kill()


def fetched(address: str) -> Any:
    with urllib.request.urlopen(address, timeout=DEADLINE) as answer:
        body = answer.read()
    return json.loads(body) if answer.headers.get_content_type() == "application/json" else body.decode()


def test_the_page_works_through_kubectl_proxy(proxy: str, server: Server, namespace: str) -> None:
    assert 'src="main.js"' in fetched(f"{proxy}/ui")  # this redirects to /ui/
    assert "import" in fetched(f"{proxy}/ui/main.js")
    spec = {"ports": [{"port": 80}], "selector": {"app": "web"}}
    server.create(f"/api/v1/namespaces/{namespace}/services", {"metadata": {"name": "web"}, "spec": spec})

    def written() -> Any:
        asked = f"history?resource=endpoints&namespace={namespace}&name=web"
        return fetched(f"{proxy}/ui/api/{asked}")["changes"]

    until(written)
    graph = fetched(f"{proxy}/ui/api/change?revision={written()[0]['revision']}")["graph"]
    named = {node.get("name") or node.get("controller") for node in graph["nodes"]}
    assert {"web", "endpoints-controller"} <= named
    queues = fetched(f"{proxy}/ui/api/queues")["queues"]
    assert {"endpoints-controller", "namespace-controller"} <= {queue["name"] for queue in queues}
    checks = {each["name"]: each["checks"] for each in fetched(f"{proxy}/ui/api/health")["endpoints"]}
    assert not [check for check in checks["readyz"] if check["problem"]]


def test_the_command_prints_a_link_to_the_page(server: Server) -> None:
    command = [sys.executable, "-m", "ctrlmgr", "ui", "--kubeconfig", str(server.kubeconfig), "--no-open"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=DEADLINE).stdout
    assert printed == f"{server.url}/ui/#token={server.token}\n"
    assert server.request("GET", "/ui/api/status")[1]["history"] is True
