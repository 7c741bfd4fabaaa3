"""Exchanges bytes between a client and another server after an upgrade.

Guarantees: the exchange ends when either side closes. Bytes that the server sent before are passed on. A side that does
not read slows the other down.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from ctrlmgr.http.proxying.side_stream import SideStream
from ctrlmgr.http.proxying.upstream_address import UpstreamFailed
from ctrlmgr.http.proxying.upstream_connection import UpstreamConnection
from ctrlmgr.http.response_stream import Disconnected


async def exchange_bytes(client: SideStream, connection: UpstreamConnection) -> None:
    """Copy bytes in both directions until one side closes."""
    loop = asyncio.get_running_loop()
    copying = {loop.create_task(_upward(client, connection)), loop.create_task(_downward(connection, client))}
    try:
        await asyncio.wait(copying, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in copying:
            task.cancel()


async def _upward(client: SideStream, connection: UpstreamConnection) -> None:
    with suppress(UpstreamFailed):
        while data := await client.read():
            connection.write(data)
            await connection.drain()


async def _downward(connection: UpstreamConnection, client: SideStream) -> None:
    with suppress(UpstreamFailed, Disconnected):
        while data := await connection.piece():
            await client.write(data)
