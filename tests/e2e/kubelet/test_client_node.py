"""`exec` of @kubernetes/client-node, the JavaScript client; it offers versions 1 to 5 of the WebSocket protocol.

The client is not installed by `scripts/test`: it and a Node.js that it supports are a download of 70 MB.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.e2e.serving import DEADLINE, Server

SCRIPT = Path(__file__).with_name("client_node_exec.mjs")
SENT = b"line\n" * 100_000
HOW = (
    "run `npm install @kubernetes/client-node@2.0.1` in an empty folder with Node.js 22.19 or newer, and set "
    "CTRLMGR_TEST_NODE_MODULES to the path of the new node_modules"
)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """Return the script's path in a folder from which Node.js finds the client."""
    modules = os.environ.get("CTRLMGR_TEST_NODE_MODULES")
    if not modules:
        pytest.skip(HOW)
    (tmp_path / "node_modules").symlink_to(Path(modules).absolute())
    (tmp_path / SCRIPT.name).write_bytes(SCRIPT.read_bytes())
    return tmp_path / SCRIPT.name


@pytest.mark.parametrize("pod", ["real", "older"])
def test_exec_carries_the_streams_and_the_exit_code(server: Server, namespace: str, script: Path, pod: str) -> None:
    command = ["node", str(script), str(server.kubeconfig), namespace, pod, "sh", "-c", "cat; echo err >&2; exit 4"]
    done = subprocess.run(command, input=SENT, capture_output=True, check=False, timeout=DEADLINE)
    assert (done.stderr, done.returncode) == (b"err\n", 4)
    assert done.stdout == SENT
