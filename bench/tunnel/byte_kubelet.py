"""A kubelet that sends bytes as fast as they are read: `python -m bench.tunnel.byte_kubelet PORT PKI SIZE`.

The kubelet responds to a request for a log with a body of SIZE bytes, and to any other request with 101 and the same
number of bytes. If the path contains `idle`, the kubelet sends no bytes after the 101.
"""

from __future__ import annotations

import socket
import ssl
import sys
from contextlib import suppress
from functools import partial

from ctrlmgr import threads

PIECE = bytes(range(256)) * 256


def answer(raw: socket.socket, context: ssl.SSLContext, size: int) -> None:
    """Answer the requests of one connection."""
    with suppress(OSError), context.wrap_socket(raw, server_side=True) as connection:
        head = connection.recv(8192)
        if b"/containerLogs/" in head:
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n" % size)
        else:
            connection.sendall(
                b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                b"Sec-WebSocket-Protocol: v4.channel.k8s.io\r\n\r\n"
            )
        if b"idle" in head.split(b"\r\n")[0]:
            connection.recv(1)
            return
        for at in range(0, size, len(PIECE)):
            connection.sendall(PIECE[: size - at])


def main() -> None:
    """Serve until the process ends."""
    port, pki, size = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{pki}/server.crt", f"{pki}/server.key")
    with socket.create_server(("127.0.0.1", port), backlog=256) as listening:
        while True:
            raw, _ = listening.accept()
            threads.start("kubelet", partial(answer, raw, context, size))


if __name__ == "__main__":
    main()
