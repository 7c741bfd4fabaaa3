"""Relays bytes between two TLS connections: `python -m bench.tunnel.bare_relay PORT TO PKI`.

The relay is the limit with which tunnels are compared.
"""

from __future__ import annotations

import asyncio
import ssl
import sys
from typing import cast

import uvloop


class End(asyncio.Protocol):
    """One connection of the relay; `other` is the connection to which this connection's bytes are passed on."""

    def __init__(self) -> None:
        """Start alone."""
        self.other: End
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Attach the transport to the connection."""
        # uvloop's transports have no base class in common with asyncio's
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Pass received bytes on to the other connection."""
        self.other.transport.write(data)

    def pause_writing(self) -> None:
        """Stop reading from the other connection."""
        self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        """Continue reading from the other connection."""
        self.other.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """Close the other connection."""
        self.other.transport.close()


async def main() -> None:
    """Relay bytes until the process ends."""
    port, to, pki = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    loop = asyncio.get_running_loop()
    ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ours.load_cert_chain(f"{pki}/server.crt", f"{pki}/server.key")
    theirs = ssl.create_default_context(cafile=f"{pki}/ca.crt")
    tasks = set()

    class Accepted(End):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            self.transport.pause_reading()
            task = loop.create_task(self.connect())
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        async def connect(self) -> None:
            _, self.other = await loop.create_connection(End, "127.0.0.1", to, ssl=theirs)
            self.other.other = self
            self.transport.resume_reading()

    server = await loop.create_server(Accepted, "127.0.0.1", port, ssl=ours)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main())
