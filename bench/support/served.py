"""Servers to measure, each in its own process: `ctrlmgr serve`, and the bare server library as its limit."""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import yaml

from bench.support.https_load import NUMBER_WIDTH
from bench.support.processor import spent


class Served(NamedTuple):
    """The address and credentials of a running server."""

    host: str
    port: int
    authority: str
    token: str
    process: int

    def request(self, method: str, path: str, body: str = "", content_type: str = "application/json") -> str:
        """Return a whole HTTP request as bytes."""
        head = [f"{method} {path} HTTP/1.1", f"host: {self.host}", f"authorization: Bearer {self.token}"]
        head.append("accept: application/json")
        if body:
            head += [
                f"content-type: {content_type}",
                f"content-length: {len(body.replace('{n}', 'n' * NUMBER_WIDTH).encode())}",
            ]
        return "\r\n".join([*head, "", body])

    def open(self, method: str, path: str, body: bytes | None = None) -> bytes:
        """Send one request and return the response's body; raises HTTPError if the response is an error."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        url = f"https://{self.host}:{self.port}{path}"
        request = urllib.request.Request(url, body, headers, method=method)
        context = ssl.create_default_context(cafile=self.authority)
        with urllib.request.urlopen(request, context=context, timeout=60) as answer:
            return bytes(answer.read())

    def spent(self) -> float:
        """Return the processor time of the server's process in seconds (Linux)."""
        return spent(self.process)

    def resident(self) -> int:
        """Return the resident bytes of the server's process (Linux)."""
        return int(Path(f"/proc/{self.process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


ROOM = ("--service-cluster-ip-range", "10.0.0.0/12")
"""The option for a large range of ClusterIPs: a fast machine creates more Services than the default range allows."""
SERVER_CORE, CLIENT_CORE = 0, 1
"""The client and the server run on separate cores.

If client and server sometimes shared a core, the ratio of two rates would be random.
"""


@contextmanager
def on_core(core: int) -> Iterator[None]:
    """Run the processes that are started within the block on one core alone, if the machine has several cores."""
    before = os.sched_getaffinity(0)
    cores = sorted(before)
    os.sched_setaffinity(0, {cores[core % len(cores)]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def free_port() -> int:
    """Return a port of 127.0.0.1 on which no process listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@contextmanager
def serving(folder: Path, *options: str, under: Sequence[str] = ()) -> Iterator[Served]:
    """Run `ctrlmgr serve` with its data in `folder` until the block ends; the server is ready when the block begins.

    `under` is a command, such as a profiler, that runs the server.
    """
    port = free_port()
    command = [
        *under,
        sys.executable,
        "-m",
        "ctrlmgr",
        "serve",
        "--data-dir",
        str(folder),
        "--listen",
        f"127.0.0.1:{port}",
    ]
    with running([*command, "--log-level", "warning", *options], folder / "serve.log") as process:
        config = _wait(process, folder / "kubeconfig")
        where = urlsplit(config["clusters"][0]["cluster"]["server"])
        token = config["users"][0]["user"]["token"]
        authority = str(folder / "pki" / "ca.crt")
        served = Served(where.hostname or "", where.port or 0, authority, token, process.pid)
        _wait_until_ready(served, process)
        yield served


@contextmanager
def bare(like: Served, folder: Path, body: bytes) -> Iterator[Served]:
    """Run the bare server library with the certificate of the server `like`; it answers every request with `body`."""
    port = free_port()
    (folder / "body").write_bytes(body)
    command = [sys.executable, "-m", "bench.support.bare_server", str(port), str(folder)]
    with running(command, folder / "bare.log") as process:
        served = like._replace(port=port, process=process.pid)
        _wait_until_ready(served, process)
        yield served


@contextmanager
def running(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command until the block ends; its output is written to `log`."""
    with log.open("wb") as output:
        with on_core(SERVER_CORE):
            process = subprocess.Popen(command, stdout=output, stderr=output)
        with process:
            try:
                yield process
            finally:
                process.terminate()


def _wait(process: subprocess.Popen[bytes], path: Path) -> Any:
    while not path.exists():
        assert process.poll() is None, "the server ended; its log says why"
        time.sleep(0.01)
    return yaml.safe_load(path.read_text())


def _wait_until_ready(served: Served, process: subprocess.Popen[bytes]) -> None:
    while True:
        assert process.poll() is None, "the server ended; its log says why"
        try:
            served.open("GET", "/readyz")
        except OSError:
            time.sleep(0.01)
            continue
        return
