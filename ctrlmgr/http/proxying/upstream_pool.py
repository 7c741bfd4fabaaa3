"""Keeps connections to other servers for later requests, as Go's `http.Transport` does.

Guarantees:
- A connection is used by one request at a time, and reused only for an equal `Upstream`: the same address, authorities,
  client certificate and server name.
- At most `_IDLE_EACH` connections to one server are idle, each for at most `_IDLE` seconds.
- Connecting ends within `_CONNECT` seconds.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Final

from ctrlmgr.http.proxying.upstream_address import Upstream, UpstreamUnreachable
from ctrlmgr.http.proxying.upstream_connection import UpstreamConnection

_CONNECT: Final = 30.0
"""Seconds to connect (client-go `transport.tlsTransportCache`)."""
_HANDSHAKE: Final = 10.0
"""Seconds for a TLS handshake (`tlsHandshakeTimeout`)."""
_IDLE: Final = 90.0
"""Seconds for which a connection may be idle (`idleConnTimeout`)."""
_IDLE_EACH: Final = 25
"""Idle connections to one server (`idleConnsPerHost`)."""


class _Idle:
    """An idle connection and the timer that closes it."""

    __slots__ = ("connection", "timer")

    def __init__(self, connection: UpstreamConnection, timer: asyncio.TimerHandle) -> None:
        self.connection = connection
        self.timer = timer


class UpstreamPool:
    """Connections to other servers. Used on the event loop that created it."""

    def __init__(self) -> None:
        """Start without connections."""
        self._loop = asyncio.get_running_loop()
        self._idle: dict[Upstream, list[_Idle]] = {}

    def reused(self, upstream: Upstream) -> UpstreamConnection | None:
        """Return an idle connection, None if there is none."""
        idle = self._idle.get(upstream, [])
        found = None
        while idle and found is None:
            last = idle.pop()
            last.timer.cancel()
            if last.connection.is_idle:
                found = last.connection
        if not idle:
            self._idle.pop(upstream, None)
        return found

    async def connected(self, upstream: Upstream) -> UpstreamConnection:
        """Return a new connection; raises `UpstreamUnreachable`."""
        tls = upstream.tls
        connecting = self._loop.create_connection(
            lambda: UpstreamConnection(self._loop),
            upstream.host,
            upstream.port,
            ssl=tls,
            server_hostname=(upstream.server_name or upstream.host) if tls is not None else None,
            ssl_handshake_timeout=_HANDSHAKE if tls is not None else None,
        )
        try:
            async with asyncio.timeout(_CONNECT):
                _, connection = await connecting
        except (TimeoutError, OSError, ssl.CertificateError) as error:
            raise UpstreamUnreachable from error
        return connection

    def give_back(self, upstream: Upstream, connection: UpstreamConnection) -> None:
        """Keep a connection whose answer has been read; close it if it cannot be reused."""
        idle = self._idle.setdefault(upstream, [])
        if not connection.is_idle or len(idle) >= _IDLE_EACH:
            connection.close()
            if not idle:
                del self._idle[upstream]
            return
        idle.append(_Idle(connection, self._loop.call_later(_IDLE, self._expire, upstream, connection)))

    def close(self) -> None:
        """Close all idle connections."""
        for idle in self._idle.values():
            for each in idle:
                each.timer.cancel()
                each.connection.close()
        self._idle.clear()

    def _expire(self, upstream: Upstream, connection: UpstreamConnection) -> None:
        connection.close()
        left = [each for each in self._idle.get(upstream, ()) if each.connection is not connection]
        if left:
            self._idle[upstream] = left
        else:
            self._idle.pop(upstream, None)
