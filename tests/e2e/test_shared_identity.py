"""Tests of three servers on one PostgreSQL database with a shared authority and a shared token: one kubeconfig works
with all three servers.
"""

from __future__ import annotations

import json
import shutil
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from ctrlmgr.testing.served import ServerProcess
from tests.e2e.kubectl import Kubectl, find_kubectl, patch
from tests.e2e.serving import Server, until
from tests.free_ports import free_ports

SHARED = ("ca.crt", "ca.key", "sa.key", "admin.token")


class Balancer:
    """A TCP load balancer, which passes each connection to the first server that accepts it; it is
    a context manager.
    """

    def __init__(self) -> None:
        self.targets = free_ports(3)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"https://127.0.0.1:{self._listener.getsockname()[1]}"
        self._sockets: list[socket.socket] = []

    def __enter__(self) -> Balancer:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._listener.close()
        for each in self._sockets:
            each.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = self._first_that_takes_it()
                self._sockets += client, server
                for source, target in ((client, server), (server, client)):
                    threading.Thread(target=_pass_on, args=(source, target), daemon=True).start()

    def _first_that_takes_it(self) -> socket.socket:
        for port in self.targets:
            with suppress(ConnectionRefusedError):
                return socket.create_connection(("127.0.0.1", port))
        raise OSError("no server is left")


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


@pytest.fixture
def balancer() -> Iterator[Balancer]:
    with Balancer() as running:
        yield running


@pytest.fixture
def servers(balancer: Balancer, postgres_url: str, tmp_path: Path) -> Iterator[list[Server]]:
    """Three server processes that start at the same time with an empty shared directory."""
    found = []
    for name, port in zip(("first", "second", "third"), balancer.targets, strict=True):
        shared = ("--identity-dir", str(tmp_path / "identity"), "--public-url", balancer.url)
        (tmp_path / name).mkdir()
        found.append(Server(tmp_path / name, "--database", postgres_url, "--listen", f"127.0.0.1:{port}", *shared))
    try:
        with ThreadPoolExecutor(len(found)) as threads:
            assert len([*threads.map(Server.start, found)]) == len(found)
        yield found
    finally:
        for each in found:
            each.close()


@pytest.mark.postgres
@pytest.mark.slow
def test_one_kubeconfig_works_with_successive_servers(
    servers: list[Server], balancer: Balancer, tmp_path: Path
) -> None:
    first, second, third = servers
    assert first.kubeconfig.read_text() == second.kubeconfig.read_text() == third.kubeconfig.read_text()
    assert first.url == balancer.url
    kubectl = Kubectl(find_kubectl(), first.kubeconfig, tmp_path)
    for port in balancer.targets:  # each of them accepts it; one process may need a moment until it listens
        until(lambda: kubectl.run(f"get namespaces --server https://127.0.0.1:{port}").code == 0)  # noqa: B023  # used at once
    kubectl("create configmap kept --from-literal a=1")
    token = kubectl("create token default").strip()
    first.kill()
    assert kubectl.get("configmap kept")["data"] == {"a": "1"}
    kubectl(patch("configmap kept", {"data": {"a": "2"}}))
    second.kill()
    assert kubectl.get("configmap kept")["data"] == {"a": "2"}
    kubectl("create configmap written-to-the-last")
    whose = json.loads(kubectl(f"auth whoami -o json --token {token}"))["status"]["userInfo"]
    # the first process signed it, and the third accepts it
    assert whose["username"] == "system:serviceaccount:default:default"
    first.start()
    third.kill()
    assert "configmap/written-to-the-last" in kubectl("get configmaps -o name")


def test_a_copied_directory_works_like_the_original(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    with ServerProcess(tmp_path / "first", "--database", "memory:", "--identity-dir", str(tmp_path / "one")) as first:
        shutil.copytree(tmp_path / "one", tmp_path / "two")
        (tmp_path / "two" / ".lock").unlink()
        with ServerProcess(
            tmp_path / "second", "--database", "memory:", "--identity-dir", str(tmp_path / "two")
        ) as second:
            assert first.token == second.token == (tmp_path / "two" / "admin.token").read_text().strip()
            kubectl = Kubectl(find_kubectl(), first.kubeconfig, tmp_path)
            kubectl(f"get namespaces --server {second.url}")
    for name in SHARED:
        assert (tmp_path / "two" / name).stat().st_mode & 0o077 == 0
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
