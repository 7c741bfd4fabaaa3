"""A kubelet on plain sockets with programmable faults; the container name in a request's path selects the kubelet's
behaviour.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509

from ctrlmgr import threads
from tests.authentication.authorities import SERVER, CertificateAndKey, make, subject

SWITCHING = (
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Protocol: v5.channel.k8s.io\r\n\r\n"
)
LOG = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
SUCCESS = b'{"metadata":{},"status":"Success"}'
WRONG: Mapping[str, bytes] = {
    "garbage": b"\x00\x01 this is no HTTP\r\n\r\n",
    "no-code": b"HTTP/1.1 OK\r\n\r\n",
    "nothing": b"",
    "half-a-head": b"HTTP/1.1 200 OK\r\nContent-Le",
    "endless-head": b"HTTP/1.1 200 OK\r\n" + b"X-Same: %b\r\n" % (b"x" * 1000) * 2000,
    "too-short": LOG + b"Content-Length: 1000\r\n\r\nshort",
    "wrong-chunk": LOG + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nno size\r\n",
    "cut-chunk": LOG + b"Transfer-Encoding: chunked\r\n\r\nff\r\ncut",
    "two-lengths": LOG + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    "no-frames": SWITCHING + b"\xff\xff\xff\xff these are no frames",
    "cut-frame": SWITCHING + b"\x82\x7e\xff\xffcut",
    "no-status": SWITCHING + b"\x82\x03\x01hi",
}
"""The bytes that the kubelet sends before it closes the connection."""


class RawKubelet:
    """A kubelet that serves TLS on a port, with one thread per connection.

    The kubelet never responds to requests for the container `hangs`.
    """

    def __init__(self, folder: Path, authority: CertificateAndKey, name: str = "127.0.0.1") -> None:
        """Serve with a certificate that `authority` signs for the address `name`."""
        self.open = 0
        """The number of open connections."""
        self._changed = threading.Condition()
        self._context = _context(folder, authority, name)
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port: int = self._listening.getsockname()[1]

    @contextmanager
    def serving(self) -> Iterator[RawKubelet]:
        """Serve within the block."""
        thread = threads.start("raw kubelet", self._accept)
        try:
            yield self
        finally:
            self._listening.shutdown(socket.SHUT_RDWR)
            self._listening.close()
            thread.join()

    def wait_for_open(self, count: int) -> None:
        """Wait until exactly `count` connections are open; fail if this takes too long."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.open == count, 20), f"{self.open} are open"

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                raw, _ = self._listening.accept()
                threads.start("raw connection", partial(self._serve, raw))

    def _serve(self, raw: socket.socket) -> None:
        self._count(1)
        try:
            with suppress(OSError), self._context.wrap_socket(raw, server_side=True) as connection:
                while self._answer(connection):
                    pass
        finally:
            raw.close()
            self._count(-1)

    def _answer(self, connection: ssl.SSLSocket) -> bool:
        """Respond to a request; return whether another request may follow on the connection."""
        head = b""
        while b"\r\n\r\n" not in head:
            piece = connection.recv(8192)
            if not piece:
                return False
            head += piece
        name = head.split(b" ")[1].split(b"?")[0].rpartition(b"/")[2].decode()
        if name == "hangs":
            connection.recv(1)
            return False
        if name in WRONG:
            connection.sendall(WRONG[name])
            return False
        if b"/containerLogs/" in head:
            connection.sendall(LOG + b"Content-Length: 6\r\n\r\nhello\n")
            return True
        _run(connection, name)
        return False

    def _count(self, change: int) -> None:
        with self._changed:
            self.open += change
            self._changed.notify_all()


def _run(connection: ssl.SSLSocket, name: str) -> None:
    """Respond to an exec request: `endless` writes until the client disconnects, `waits` waits for the end of the
    input, and other commands end at once.
    """
    connection.sendall(SWITCHING + b"\x82\x03\x01hi")
    if name == "endless":
        piece = b"\x82\x7f" + (65536).to_bytes(8, "big") + b"\x01" + bytes(65535)
        while True:
            connection.sendall(piece)
    elif name == "waits":
        while connection.recv(8192):
            pass
    else:
        connection.sendall(b"\x82%c\x03" % (len(SUCCESS) + 1) + SUCCESS + b"\x88\x02\x03\xe8")


def _context(folder: Path, authority: CertificateAndKey, name: str) -> ssl.SSLContext:
    now = datetime.now(UTC)
    names = x509.SubjectAlternativeName([x509.IPAddress(ip_address(name))])
    made = make(
        subject("kubelet"),
        authority,
        usages=(SERVER,),
        begins=now - timedelta(hours=1),
        ends=now + timedelta(days=1),
        more=[(names, False)],
    )
    file = folder / f"kubelet-{name}-{id(authority)}.pem"
    file.write_bytes(made.pem + made.key_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context
