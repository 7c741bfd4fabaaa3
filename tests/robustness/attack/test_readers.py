"""Tests of clients that do not read large responses: the bytes that the server holds for them are limited, and other
clients get responses.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.serving import DEADLINE, until
from tests.robustness.attack.test_rights import MAPS, RBAC, READ
from tests.robustness.serving import ConfiguredServer

READERS = ("ann", "eve")
EACH = 201
"""Number of connections of one user: one more than the number of seats that a user may have."""

LIST = 12_000_000
"""Bytes, about."""

OBJECT = 1_000_000

HELD = 800_000
"""Maximum number of bytes that the server may hold for a connection whose client does not read."""

KEPT = 200_000
"""Maximum number of bytes that the server may hold for a connection whose client has read everything."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConfiguredServer]:
    """Return a server with a long list that two users may read."""
    folder: Path = tmp_path_factory.mktemp("readers")
    tokens = folder / "users.csv"
    tokens.write_text("".join(f"{name}-token,{name},{name}-uid\n" for name in READERS))
    tokens.chmod(0o600)
    server = ConfiguredServer(folder, "--token-auth-file", str(tokens))
    with server.running():
        about = {"apiGroup": "rbac.authorization.k8s.io"}
        metadata = {"name": "readers"}
        server.create(f"{RBAC}/clusterroles", {"metadata": metadata, "rules": [READ]})
        users = [{**about, "kind": "User", "name": name} for name in READERS]
        role = {**about, "kind": "ClusterRole", "name": "readers"}
        server.create(f"{RBAC}/clusterrolebindings", {"metadata": metadata, "roleRef": role, "subjects": users})
        for number in range(LIST // OBJECT):
            server.create(MAPS, {"metadata": {"name": f"large-{number}"}, "data": {"a": "x" * OBJECT}})
        yield server


def reader(server: ConfiguredServer, user: str, path: str) -> ssl.SSLSocket:
    """Connect as a user and send a request for a path, without reading the response."""
    site = server.site
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    plain.settimeout(DEADLINE)
    plain.connect((site.host, site.port))
    connection = site.trust.wrap_socket(plain, server_hostname=site.host)
    connection.sendall(f"GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {user}-token\r\n\r\n".encode())
    return connection


def read(connection: ssl.SSLSocket, count: int) -> None:
    while count > 0:
        piece = connection.recv(1 << 16)
        assert piece, f"{count} bytes have not come"
        count -= len(piece)


def status(server: ConfiguredServer, user: str) -> int:
    """Return the status code of the response to a user's request for a short list."""
    with reader(server, user, f"{MAPS}?limit=1") as connection:
        return int(connection.recv(100).split()[1])


def test_a_slow_reader_holds_little_memory_and_others_are_served(server: ConfiguredServer) -> None:
    with reader(server, "ann", MAPS) as connection:
        read(connection, LIST)
    before = server.resident()
    with ExitStack() as connections:
        for number in range(len(READERS) * EACH):
            connections.enter_context(reader(server, READERS[number % len(READERS)], MAPS))
            if number % 50 == 0:
                assert server.request("GET", "/api/v1/namespaces/default")[0] == 200
        assert status(server, READERS[0]) == 429, "a request that finds no seat within the wait limit of its queue"
        assert server.request("GET", MAPS)[0] == 200, "an administrator is answered"
        grown = server.resident() - before
        assert grown < len(READERS) * EACH * HELD, f"{grown:,} bytes"
    until(lambda: status(server, "ann") == 200)


def test_a_connection_releases_the_memory_of_its_largest_response(server: ConfiguredServer) -> None:
    before, count = server.resident(), 50
    with ExitStack() as connections:
        for _ in range(count):
            read(connections.enter_context(reader(server, "ann", f"{MAPS}/large-0")), OBJECT)
        grown = server.resident() - before
        assert grown < count * KEPT, f"{grown:,} bytes"
