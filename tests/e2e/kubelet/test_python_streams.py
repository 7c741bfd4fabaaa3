"""The Python client's `stream` and `portforward`, which speak version 4 of the WebSocket protocol."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from kubernetes import client
from kubernetes.stream import portforward, stream

from tests.e2e.clients.python_client import connected
from tests.e2e.kubelet.test_real_pods import echoing
from tests.e2e.serving import DEADLINE, Server

# The client does not close all of its sockets; they are collected before another test runs.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
PODS = pytest.mark.parametrize("pod", ["real", "older"])


@pytest.fixture
def core(server: Server) -> Iterator[client.CoreV1Api]:
    with connected(server) as api:
        yield client.CoreV1Api(api)
    gc.collect()


@PODS
def test_stream_runs_a_command(core: client.CoreV1Api, namespace: str, pod: str) -> None:
    running = stream(
        core.connect_get_namespaced_pod_exec,
        pod,
        namespace,
        command=["sh", "-c", "read x; echo got $x; echo err >&2; exit 4"],
        stdin=True,
        stdout=True,
        stderr=True,
        _preload_content=False,
    )
    running.write_stdin("abc\n")
    running.run_forever(timeout=DEADLINE)
    assert (running.read_stdout(), running.read_stderr(), running.returncode) == ("got abc\n", "err\n", 4)
    running.close()


@PODS
def test_portforward_reaches_a_port(core: client.CoreV1Api, namespace: str, pod: str) -> None:
    with echoing(ends_after=5) as port:
        forward = portforward(core.connect_get_namespaced_pod_portforward, pod, namespace, ports=str(port))
        connection = forward.socket(port)
        connection.setblocking(True)
        connection.sendall(b"hello")
        assert b"".join(iter(lambda: connection.recv(4096), b"")) == b"hello"
        assert forward.error(port) is None
        connection.close()
