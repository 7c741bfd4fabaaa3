"""The limit for the delay of watches: a bare TLS server that periodically writes one frame to each of its connections.

`python -m bench.support.bare_fan_out PORT FOLDER COUNT` waits for COUNT requests, then writes every quarter of a
second.
"""

from __future__ import annotations

import asyncio
import ssl
import sys
import time
from pathlib import Path
from typing import cast

import uvloop

_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
_FRAME = '{{"type":"MODIFIED","object":{{"kind":"ConfigMap","data":{{"sent":"{}"}},"rest":"{}"}}}}\n'
_REST = "x" * 400
"""This content makes a frame about as long as a frame of our server."""

_PERIOD = 0.25


class _Connection(asyncio.Protocol):
    def __init__(self, connections: list[asyncio.Transport]) -> None:
        self._connections = connections

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._transport.write(_HEAD)
        self._connections.append(self._transport)


async def _serve(port: int, folder: Path, count: int) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "pki" / "server.crt", folder / "pki" / "server.key")
    connections: list[asyncio.Transport] = []
    loop = asyncio.get_running_loop()
    await loop.create_server(lambda: _Connection(connections), "127.0.0.1", port, ssl=context, backlog=2048)
    while True:
        await asyncio.sleep(_PERIOD)
        if len(connections) < count:
            continue
        frame = _FRAME.format(time.monotonic_ns(), _REST).encode()
        chunk = b"%x\r\n%s\r\n" % (len(frame), frame)
        for transport in connections:
            transport.write(chunk)


def main() -> None:
    """Serve until terminated."""
    port, folder, count = int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(port, folder, count))


if __name__ == "__main__":
    main()
