"""Measures connections to kubelets: 100 MB of exec and of a log, compared with the same bytes through a bare TLS relay.

The limit is a relay that accepts TLS, connects to the same kubelet over TLS, and passes bytes on. The relay parses
nothing. The simulated kubelet sends bytes as fast as they are read. The server and the relay are measured in
alternating turns, in the same run, with the same client. The benchmark also measures the server's memory per idle exec.
"""

from __future__ import annotations

import json
import ssl
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from socket import create_connection
from typing import Final

from bench.report import Claim, report, run
from bench.support.served import Served, free_port, running, serving

SIZE: Final = 100_000_000
ROUNDS: Final = 3
IDLE: Final = 100
MEGABYTE: Final = 1_000_000
KILOBYTE: Final = 1024
POD: Final = "/api/v1/namespaces/default/pods/p"
_UPGRADE: Final = (
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: v4.channel.k8s.io\r\n"
)


def connected(served: Served, port: int, path: str, headers: str) -> ssl.SSLSocket:
    """Send a request, and return the connection on which the response arrives."""
    trusted = ssl.create_default_context(cafile=served.authority)
    connection = trusted.wrap_socket(create_connection(("127.0.0.1", port)), server_hostname="127.0.0.1")
    head = f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {served.token}\r\n{headers}\r\n"
    connection.sendall(head.encode())
    return connection


def rate(served: Served, port: int, path: str, headers: str) -> float:
    """Return the bytes per second of one response."""
    began, received = time.perf_counter(), 0
    with connected(served, port, path, headers) as connection:
        buffer = bytearray(1 << 20)
        while received < SIZE and (count := connection.recv_into(buffer)):
            received += count
    # the relay sometimes loses the end of a response
    assert received >= SIZE or port != served.port, "the answer ended early"
    return received / (time.perf_counter() - began)


@contextmanager
def with_pod(folder: Path) -> Iterator[tuple[Served, int]]:
    """Run a server and a relay; the server's pod is on the node of the kubelet.

    Yield the server and the relay's port.
    """
    kubelet, relay = free_port(), free_port()
    support = [sys.executable, "-m"]
    (folder / "server").mkdir()
    with ExitStack() as stack:
        served = stack.enter_context(serving(folder / "server", "--database", "memory:"))
        pki = str(folder / "server" / "pki")
        command = [*support, "bench.tunnel.byte_kubelet", str(kubelet), pki, str(SIZE)]
        stack.enter_context(running(command, folder / "kubelet.log"))
        command = [*support, "bench.tunnel.bare_relay", str(relay), str(kubelet), pki]
        stack.enter_context(running(command, folder / "relay.log"))
        endpoint = {"kubeletEndpoint": {"Port": kubelet}}
        status = {"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}], "daemonEndpoints": endpoint}
        create(served, "/api/v1/nodes", {"metadata": {"name": "n"}, "status": status})
        containers = [{"name": name, "image": "i"} for name in ("c", "idle")]
        spec = {"nodeName": "n", "containers": containers}
        create(served, "/api/v1/namespaces/default/pods", {"metadata": {"name": "p"}, "spec": spec})
        for port in (kubelet, relay):
            wait_for(port)
        yield served, relay


def wait_for(port: int) -> None:
    """Wait until a process listens on a port."""
    while True:
        try:
            create_connection(("127.0.0.1", port)).close()
        except ConnectionError:
            time.sleep(0.1)
            continue
        return


def create(served: Served, path: str, fields: object) -> None:
    """Create an object, and retry until its namespace accepts it."""
    for _ in range(100):
        try:
            served.open("POST", path, json.dumps(fields).encode())
        except OSError:
            time.sleep(0.1)
            continue
        return
    raise AssertionError(f"{path} refuses {fields}")


def best(served: Served, relay: int, path: str, there: str, headers: str) -> tuple[float, float]:
    """Return the best rates of the server and of the relay, measured in alternating turns."""
    rounds = [(rate(served, served.port, path, headers), rate(served, relay, there, headers)) for _ in range(ROUNDS)]
    ours, limit = zip(*rounds, strict=True)
    return max(ours), max(limit)


def memory_of_idle(served: Served) -> float:
    """Return the resident bytes of the server for each idle exec."""
    path = f"{POD}/exec?container=idle&command=c&stdout=true"
    with ExitStack() as stack:
        for _ in range(IDLE):  # the first connections also allocate buffers that all connections share
            stack.enter_context(connected(served, served.port, path, _UPGRADE)).recv(1)
        before = served.resident()
        for _ in range(IDLE):
            stack.enter_context(connected(served, served.port, path, _UPGRADE)).recv(1)
        return (served.resident() - before) / IDLE


def main(arguments: Sequence[str]) -> int:
    """Measure the rates and the memory, and report the results."""
    with tempfile.TemporaryDirectory() as folder, with_pod(Path(folder)) as (served, relay):
        path = f"{POD}/exec?container=c&command=c&stdout=true"
        ours, limit = best(served, relay, path, "/exec/default/p/c", _UPGRADE)
        claims = [Claim("throughput of an exec that sends 100 MB", ours / MEGABYTE, limit / MEGABYTE, 0.5, "MB/s")]
        ours, limit = best(served, relay, f"{POD}/log?container=c", "/containerLogs/default/p/c", "")
        claims.append(Claim("throughput of a container log of 100 MB", ours / MEGABYTE, limit / MEGABYTE, 0.5, "MB/s"))
        idle = memory_of_idle(served) / KILOBYTE
        claims.append(Claim("memory of an idle exec", idle, 50, 1.0, "KB", at_most=True))
    return report(claims, arguments)


if __name__ == "__main__":
    run(main, __doc__)
