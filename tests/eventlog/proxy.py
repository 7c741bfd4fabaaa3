"""A TCP proxy in front of PostgreSQL that injects faults when a test requests them."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType

Filter = Callable[[bytes], bytes]


class Proxy:
    """A proxy that forwards connections to a port on loopback; each direction has its own thread."""

    def __init__(self, target: int, *, server_messages: Callable[[], Filter] | None = None) -> None:
        self._target = target
        self._server_messages = server_messages
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        # A fault that a test sets, and that applies to the first connection with a matching call.
        self._lose_reply_to: bytes | None = None
        self._hold: bytes | None = None
        self.lost = threading.Event()
        self._held: tuple[socket.socket, bytes] | None = None
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for sock in (self._listener, *self._sockets):
            close(sock)

    def lose_reply_to(self, call: bytes) -> None:
        """Forward the next request that contains `call`, and close the connection instead of
        forwarding the response.
        """
        self._lose_reply_to = call

    def hold(self, call: bytes) -> None:
        """Close the client's connection at the next request that contains `call`, and hold the request."""
        self._hold = call

    def release(self) -> None:
        """Forward the held request, and wait until the server has processed it."""
        assert self._held
        server, request = self._held
        server.sendall(request)
        server.shutdown(socket.SHUT_WR)
        while server.recv(65536):
            pass

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
                self._sockets += client, server
                silenced = threading.Event()
                threading.Thread(target=self._upstream, args=(client, server, silenced), daemon=True).start()
                threading.Thread(target=self._downstream, args=(client, server, silenced), daemon=True).start()

    def _upstream(self, client: socket.socket, server: socket.socket, silenced: threading.Event) -> None:
        with suppress(OSError):
            while data := client.recv(1 << 20):
                if self._hold and self._hold in data:
                    self._hold, self._held = None, (server, data)
                    silenced.set()
                    close(client)
                    self.lost.set()
                    return
                if self._lose_reply_to and self._lose_reply_to in data:
                    self._lose_reply_to = None
                    silenced.set()
                server.sendall(data)
        close(server)

    def _downstream(self, client: socket.socket, server: socket.socket, silenced: threading.Event) -> None:
        change = self._server_messages() if self._server_messages else bytes
        with suppress(OSError):
            while data := server.recv(1 << 20):
                if silenced.is_set():
                    close(client)
                    self.lost.set()
                    return
                client.sendall(change(data))
        if not silenced.is_set():
            close(client)


def close(sock: socket.socket) -> None:
    with suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
    sock.close()


def like_a_transaction_pooler() -> Filter:
    """A filter for the server's messages on one connection: it drops notifications, and changes the backend's process
    ID.
    """
    pending = b""

    def change(data: bytes) -> bytes:
        nonlocal pending
        pending += data
        passed = b""
        while len(pending) >= 5 and len(pending) >= (size := 1 + int.from_bytes(pending[1:5], "big")):
            message, pending = pending[:size], pending[size:]
            if message[:1] == b"K":
                message = message[:5] + b"\x00\x00\x00\x01" + message[9:]
            if message[:1] != b"A":
                passed += message
        return passed

    return change
