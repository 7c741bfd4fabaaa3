"""Tests of kubectl with pods on a node with a kubelet: logs, exec, cp; and of a kubelet that
refuses or is unreachable.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import pty
import re
import signal
import socket
import socketserver
import struct
import subprocess
import termios
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from ctrlmgr import threads
from tests.e2e.kubectl import Kubectl
from tests.e2e.kubelet.conftest import create_node, create_pod
from tests.e2e.kubelet.small_kubelet import SmallKubelet
from tests.e2e.serving import DEADLINE, Server, until

COPIES = int(os.environ.get("CTRLMGR_TEST_COPIES", "1"))
"""How often a file is copied in each direction; a long test run uses 50."""


def test_logs_are_read_from_the_kubelet(kubectl: Kubectl, kubelet: SmallKubelet, namespace: str) -> None:
    kubelet.log = b"one\ntwo\nthree\n"
    assert kubectl("logs real") == "one\ntwo\nthree\n"
    assert kubectl("logs real --tail 1 --timestamps --since 10s --limit-bytes 100 --previous") == "three\n"
    query = "limitBytes=100&previous=true&sinceSeconds=10&tailLines=1&timestamps=true"
    assert kubelet.asked[-1] == f"GET /containerLogs/{namespace}/real/main?{query}"


def test_following_a_log_ends_with_the_kubelets(kubectl: Kubectl, kubelet: SmallKubelet) -> None:
    kubelet.log = b"one\n"
    assert kubectl("logs -f real") == "one\nfollowed 0\nfollowed 1\nfollowed 2\n"


def test_a_large_log_is_complete(kubectl: Kubectl, kubelet: SmallKubelet) -> None:
    kubelet.log = b"".join(b"%08d %b\n" % (number, b"x" * 90) for number in range(100_000))
    assert hashlib.sha256(kubectl("logs real").encode()).digest() == hashlib.sha256(kubelet.log).digest()


def test_an_unknown_container_is_refused(server: Server, kubectl: Kubectl, namespace: str) -> None:
    create_pod(server, namespace, "two", "real", "a", "b")
    path = f"/api/v1/namespaces/{namespace}/pods/two"
    for part in ("log", "exec?command=id"):
        code, answer = server.request("GET", f"{path}/{part}")
        assert (code, answer["message"]) == (
            400,
            "a container name must be specified for pod two, choose one of: [a b]",
        )
    code, answer = server.request("GET", f"{path}/exec?command=id&container=c")
    assert (code, answer["message"]) == (400, "container c is not valid for pod two")
    code, answer = server.request("GET", f"{path}/exec?command=id&container=a")
    assert (code, answer["message"]) == (400, "Upgrade request required")


def test_exec_runs_a_command(kubectl: Kubectl, kubelet: SmallKubelet, namespace: str) -> None:
    assert kubectl("exec real -- echo hello") == "hello\n"
    asked = f"GET /exec/{namespace}/real/main?command=echo&command=hello&error=1&output=1"
    assert kubelet.asked[-1] == asked
    assert b"authorization" not in kubelet.headers[-1]
    assert kubelet.headers[-1][b"x-forwarded-for"] == b"127.0.0.1"


WAYS = pytest.mark.parametrize(
    ("pod", "websockets"),
    [("real", "true"), ("older", "true"), ("older", "false")],
    ids=["WebSocket to the kubelet", "WebSocket translated to SPDY", "SPDY to the kubelet"],
)


@WAYS
def test_exec_works_over_every_protocol(kubectl: Kubectl, kubelet: SmallKubelet, pod: str, websockets: str) -> None:
    way = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": websockets}
    assert kubectl(f"exec -i {pod} -- cat", "some input", **way) == "some input"
    expected = b"websocket" if pod == "real" else b"SPDY/3.1"
    assert kubelet.headers[-1][b"upgrade"] == expected
    done = kubectl.run(f"exec {pod} -- sh -c 'echo out; echo err >&2; exit 7'", **way)
    assert (done.code, done.out) == (7, "out\n")
    assert "err\n" in done.err
    assert "exit code 7" in done.err


@WAYS
def test_a_terminal_has_the_clients_size(kubectl: Kubectl, pod: str, websockets: str) -> None:
    ours, theirs = pty.openpty()
    resize(theirs, 30, 90)
    script = 'echo ready; while read x; do [ "$x" = q ] && exit 3; stty size; done'
    command = kubectl.line(f"exec -it {pod} -- sh -c '{script}'")
    environment = kubectl.environment | {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": websockets}
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    try:
        read_until(ours, b"ready\r\n")
        ask_until(ours, b"30 90")
        resize(theirs, 40, 100)
        process.send_signal(signal.SIGWINCH)
        ask_until(ours, b"40 100")
        os.write(ours, b"q\r")
        assert process.wait(DEADLINE) == 3
    finally:
        process.kill()
        process.wait()
    os.close(theirs)
    os.close(ours)


def resize(terminal: int, rows: int, columns: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def ask_until(terminal: int, wanted: bytes) -> None:
    """Send lines until the response is `wanted`, because kubectl sends terminal sizes and input independently of each
    other.
    """
    for _ in range(1000):
        os.write(terminal, b"\r")
        if wanted in read_until(terminal, b"0\r\n"):
            return
    pytest.fail(f"the size never is {wanted!r}")


def read_until(terminal: int, end: bytes) -> bytes:
    told = b""
    while not told.endswith(end):
        told += os.read(terminal, 4096)
    return told


@WAYS
def test_attach_reaches_the_containers_program(kubectl: Kubectl, pod: str, websockets: str) -> None:
    way = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": websockets}
    with kubectl.started(f"attach -i {pod}", **way) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for word in ("one\n", "two\n"):
            process.stdin.write(f"echo {word}")
            process.stdin.flush()
            assert process.stdout.readline() == word


@WAYS
def test_a_large_file_is_copied_in_both_directions(kubectl: Kubectl, tmp_path: Path, pod: str, websockets: str) -> None:
    way = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": websockets}
    data = os.urandom(50_000_000)
    (tmp_path / "here").write_bytes(data)
    for _ in range(COPIES):
        kubectl(f"cp {tmp_path}/here {pod}:{tmp_path}/there", **way)
        assert (tmp_path / "there").read_bytes() == data
        kubectl(f"cp {pod}:{tmp_path}/there {tmp_path}/back", **way)
        assert (tmp_path / "back").read_bytes() == data
    for name in ("here", "there", "back"):
        (tmp_path / name).unlink()


@pytest.mark.parametrize("websockets", ["true", "false"])
def test_a_port_is_forwarded(kubectl: Kubectl, websockets: str) -> None:
    with (
        echoing() as port,
        kubectl.started(f"port-forward pod/older :{port}", KUBECTL_PORT_FORWARD_WEBSOCKETS=websockets) as process,
        ExitStack() as stack,
    ):
        assert process.stdout is not None
        local = int(process.stdout.readline().split(":")[1].split()[0])
        clients = [stack.enter_context(socket.create_connection(("127.0.0.1", local), 10)) for _ in range(20)]
        for number, client in enumerate(clients):
            client.sendall(b"%d" % number * 50_000)
            client.shutdown(socket.SHUT_WR)
        for number, client in enumerate(clients):
            assert client.makefile("rb").read() == b"%d" % number * 50_000


@contextmanager
def echoing(ends_after: int = -1) -> Iterator[int]:
    """Serve a port whose connections send back the received bytes, until the input ends or a number of bytes is
    reached.
    """

    class Echo(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.wfile.write(self.rfile.read(ends_after))

    class Server(socketserver.ThreadingTCPServer):
        request_queue_size = 64

    with Server(("127.0.0.1", 0), Echo) as server:
        thread = threads.start("echo", server.serve_forever)
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


def test_a_kubelets_refusal_is_passed_on(kubectl: Kubectl, kubelet: SmallKubelet) -> None:
    kubelet.refuses = 500, b"the runtime is gone"
    try:
        assert "Internal error occurred: the runtime is gone" in kubectl.fails("logs real")
        assert "the runtime is gone" in kubectl.fails("exec real -- id")
        kubelet.refuses = 404, b"no such container"
        told = "the server could not find the requested resource ( pods/log real)"
        assert told in kubectl.fails("logs real")
    finally:
        kubelet.refuses = None


def test_a_stopped_kubelet_is_named(server: Server, kubectl: Kubectl, namespace: str) -> None:
    create_node(server, "gone", 1, [])
    create_pod(server, namespace, "gone", "gone")
    url = f"https://127.0.0.1:1/containerLogs/{namespace}/gone/main"
    refused = "dial tcp 127.0.0.1:1: connect: connection refused"
    assert f'Get "{url}": {refused}' in kubectl.fails("logs gone")
    assert f"error dialing backend: {refused}" in kubectl.fails("exec gone -- id")


def open_execs(server: Server) -> float:
    """Return the number of open connections for exec."""
    _, text = server.request("GET", "/metrics")
    found = re.findall(r'(?m)^apiserver_longrunning_requests{.*subresource="exec".*} ([0-9.]+)$', text)
    return sum(map(float, found))


def test_a_disconnected_client_ends_its_command(server: Server, kubectl: Kubectl, kubelet: SmallKubelet) -> None:
    for pod in ("real", "older"):
        with kubectl.started(f"exec -i {pod} -- sh -c 'echo ready; cat'") as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            assert open_execs(server) == 1
        until(lambda: open_execs(server) == 0)
        until(lambda: kubelet.commands == 0)


def test_many_commands_run_concurrently(server: Server, kubectl: Kubectl, kubelet: SmallKubelet) -> None:
    with ExitStack() as stack:
        command = "exec -i real -- sh -c 'echo ready; cat'"
        processes = [stack.enter_context(kubectl.started(command)) for _ in range(20)]
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        assert open_execs(server) == kubelet.commands == 20
        assert server.request("GET", "/api/v1/nodes")[0] == 200
    until(lambda: open_execs(server) == kubelet.commands == 0)


def test_a_kubelet_that_hangs_delays_no_other_request(server: Server, kubectl: Kubectl, namespace: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        create_node(server, "silent", silent.getsockname()[1], [])
        create_pod(server, namespace, "silent", "silent")
        with kubectl.started("exec silent -- id") as process:
            assert kubectl("exec real -- echo hello") == "hello\n"
            assert process.stderr is not None
            assert "i/o timeout" in process.stderr.read()
