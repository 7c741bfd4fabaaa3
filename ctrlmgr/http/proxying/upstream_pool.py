"""Keeps connections to other servers for later requests, as Go's `http.Transport` does.

Guarantees:
- A connection serves one request at a time. The pool reuses a connection only for an equal `Upstream`: the same
  address, authorities, client certificate and server name.
- The pool keeps at most `_IDLE_EACH` idle connections to one server, each for at most `_IDLE` seconds.
- Connecting to a server ends within the pool's timeout.
- If the server has closed a reused connection, a request without a body is sent again on a new connection.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Final
from weakref import WeakSet

from ctrlmgr.http.proxying.upstream_address import Upstream, UpstreamFailed, UpstreamUnreachable
from ctrlmgr.http.proxying.upstream_connection import ReadBuffer, ResponseHead, UpstreamConnection

CONNECT: Final = 30.0
"""Maximum seconds to connect to a server (client-go `transport.tlsTransportCache`)."""
_HANDSHAKE: Final = 10.0
"""Maximum seconds for a TLS handshake (`tlsHandshakeTimeout`)."""
_SHUTDOWN: Final = 30.0
"""Maximum seconds that the server may take to end its TLS session."""
_IDLE: Final = 90.0
"""Maximum seconds for which a connection may be idle (`idleConnTimeout`)."""
_IDLE_EACH: Final = 25
"""Maximum number of idle connections to one server (`idleConnsPerHost`)."""


class _Idle:
    """An idle connection and the timer that closes it."""

    __slots__ = ("connection", "timer")

    def __init__(self, connection: UpstreamConnection, timer: asyncio.TimerHandle) -> None:
        self.connection = connection
        self.timer = timer


class UpstreamPool:
    """A pool of connections to other servers. Used on the thread of the event loop that created the pool."""

    def __init__(self, timeout: float = CONNECT) -> None:
        """Start without connections; connect in at most `timeout` seconds."""
        self._loop = asyncio.get_running_loop()
        self._timeout = timeout
        self._idle: dict[Upstream, list[_Idle]] = {}
        self._buffer = ReadBuffer()
        self._all: WeakSet[UpstreamConnection] = WeakSet()

    async def ask(self, upstream: Upstream, method: str, head: bytes) -> tuple[ResponseHead, UpstreamConnection]:
        """Send a request without a body.

        Return the head of the response, and the connection, which the caller must give back. Raises `UpstreamFailed`.
        """
        reused = self.reused(upstream)
        if reused is not None:
            try:
                return await _request(reused, method, head), reused
            except UpstreamFailed:
                if reused.has_answered:
                    raise
        connection = await self.connected(upstream)
        return await _request(connection, method, head), connection

    def reused(self, upstream: Upstream) -> UpstreamConnection | None:
        """Return an idle connection, None if no connection is idle."""
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
        """Return a new connection; raises `UpstreamUnreachable` if the server cannot be reached."""
        tls = upstream.tls
        connecting = self._loop.create_connection(
            lambda: UpstreamConnection(self._loop, self._buffer),
            upstream.host,
            upstream.port,
            ssl=tls,
            server_hostname=(upstream.server_name or upstream.host) if tls is not None else None,
            ssl_handshake_timeout=_HANDSHAKE if tls is not None else None,
            ssl_shutdown_timeout=_SHUTDOWN if tls is not None else None,
        )
        try:
            async with asyncio.timeout(self._timeout):
                _, connection = await connecting
        except (TimeoutError, OSError, ssl.CertificateError) as error:
            raise UpstreamUnreachable from error
        self._all.add(connection)
        return connection

    def put(self, upstream: Upstream, connection: UpstreamConnection) -> None:
        """Keep a connection whose response has been read; close the connection if it cannot be reused."""
        idle = self._idle.setdefault(upstream, [])
        if not connection.is_idle or len(idle) >= _IDLE_EACH:
            connection.close()
            if not idle:
                del self._idle[upstream]
            return
        idle.append(_Idle(connection, self._loop.call_later(_IDLE, self._expire, upstream, connection)))

    def close(self) -> None:
        """Close all connections, which aborts the requests that use them."""
        for idle in self._idle.values():
            for each in idle:
                each.timer.cancel()
        self._idle.clear()
        for connection in list(self._all):
            connection.close()

    def _expire(self, upstream: Upstream, connection: UpstreamConnection) -> None:
        connection.close()
        left = [each for each in self._idle.get(upstream, ()) if each.connection is not connection]
        if left:
            self._idle[upstream] = left
        else:
            self._idle.pop(upstream, None)


async def _request(connection: UpstreamConnection, method: str, head: bytes) -> ResponseHead:
    """Send a request without a body, and return the head of the response; close the connection if that fails."""
    try:
        connection.begin(method, head)
        return await connection.head()
    except BaseException:
        connection.close()
        raise
