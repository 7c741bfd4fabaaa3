"""The common part of all connections: a transport, with timeouts for slow, idle and expired clients.

Guarantees:
- A client that reads none of its pending output for `Bounds.write_timeout` seconds is disconnected.
- When a client's certificate expires, its connection is closed. The HTTP server checks nothing else about client
  certificates.
- A closing connection is dropped `Bounds.linger` seconds after the client has stopped reading. If the client has
  already been idle for longer than that, the connection is dropped at once.
"""

from __future__ import annotations

import asyncio
import ssl
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import structlog

from ctrlmgr.http.budget import Budget
from ctrlmgr.http.client_certificates import presented_certificates
from ctrlmgr.http.eager_coroutines import start
from ctrlmgr.http.exchange import Exchange
from ctrlmgr.http.framing import Header
from ctrlmgr.http.lazy_timer import LazyTimer
from ctrlmgr.http.server_context import ServerContext
from ctrlmgr.http.size_limits import Bounds

log = structlog.get_logger(__name__)

_FLUSH = 0.05
"""Seconds until a closing connection is dropped, if the client has read its last response and was idle since then."""
_LONGEST = 86_400.0
"""Maximum duration of one timer in seconds; a longer wait uses several timers."""


class _LostTransport(asyncio.Transport):
    """Replaces the transport of a lost connection; accepts all calls and does nothing."""

    def is_closing(self) -> bool:
        return True

    def write(self, data: object) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""

    def abort(self) -> None:
        """Do nothing."""

    def pause_reading(self) -> None:
        """Do nothing."""

    def resume_reading(self) -> None:
        """Do nothing."""

    def get_write_buffer_size(self) -> int:
        return 0


_GONE = _LostTransport()


class BaseConnection(asyncio.BufferedProtocol):
    """The base class of HTTP/1.1 and HTTP/2 connections. Used on the event loop's thread only."""

    __slots__ = (
        "_certificate",
        "_context",
        "_expiry",
        "_head_timer",
        "_heads",
        "_idleness",
        "_is_leaving",
        "_is_reading_paused",
        "_transport",
        "_write_timer",
        "certificates",
        "is_paused",
        "peer",
    )

    def __init__(self, context: ServerContext) -> None:
        """Create a connection of the server with this `context`."""
        self.is_paused = False
        """Whether the client does not read its pending output."""
        self.peer = ""
        """The client's address; empty if it has none."""
        self.certificates: Sequence[bytes] = ()
        """The client's certificate, followed by the rest of its chain (DER); the chain is not verified yet.
        """
        self._context = context
        self._transport: asyncio.Transport
        self._certificate: Mapping[str, Any] | None = None
        self._heads = Budget(context.bounds.connection_heads_bytes)
        self._is_leaving = False  # whether the connection closes after the running requests
        self._is_reading_paused = False
        self._head_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        self._expiry: asyncio.TimerHandle | None = None
        self._idleness = LazyTimer(context.loop, context.bounds.keep_alive, self._end_idleness)

    # The protocols implement the following methods.

    @abstractmethod
    def receive(self, data: bytes) -> None:
        """Process bytes that the peer has sent."""

    @property
    def idle_for(self) -> float:
        """The seconds since the last request has ended; 0 while a request is running."""
        return self._idleness.waited

    @abstractmethod
    def announce_close(self) -> None:
        """Tell the client to send no further requests on this connection, because the server is stopping."""

    @abstractmethod
    def shutdown(self) -> None:
        """Close the connection now if it is idle; if not, close it after the running requests have ended."""

    @abstractmethod
    def _reads_again(self) -> None:
        """Resume sending, because the client has read its pending output."""

    @abstractmethod
    def _cut_off(self) -> None:
        """Abort streamed responses, and close after other requests, because the client's certificate has expired."""

    # The transport calls the following methods.

    def _made(self, transport: asyncio.Transport, unread: int) -> None:
        """Attach the transport. While more than `unread` output bytes are pending, the client counts as not reading."""
        self._transport = transport
        self._context.connections.add(self)
        self._certificate = transport.get_extra_info("peercert") or None
        self.certificates = presented_certificates(transport.get_extra_info("ssl_object"))
        transport.set_write_buffer_limits(high=unread)
        peer = transport.get_extra_info("peername")
        self.peer = str(peer[0]) if isinstance(peer, tuple) else ""
        if self._certificate is not None:
            self._watch_expiry(self._certificate)
        self._time_head()

    def _lost(self) -> None:
        """Detach the transport when the connection is lost."""
        self._context.connections.discard(self)
        for timer in (self._head_timer, self._write_timer, self._expiry):
            if timer is not None:
                timer.cancel()
        self._idleness.close()
        self._transport = _GONE  # uvloop's transport refers to this object and to large buffers, so drop the reference

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the read buffer that all connections share."""
        return self._context.buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Process the received bytes in the buffer."""
        self.receive(bytes(self._context.buffer[:nbytes]))

    def eof_received(self) -> None:
        """Let the transport close when the client has closed its sending side."""

    def pause_writing(self) -> None:
        """Record that the client does not read, and start the write timeout."""
        self.is_paused = True
        self._write_timer = self.loop.call_later(
            self.bounds.write_timeout, self._look_at_reader, self._transport.get_write_buffer_size()
        )

    def resume_writing(self) -> None:
        """Record that the client reads again."""
        self.is_paused = False
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None
        self._reads_again()

    def _look_at_reader(self, unread: int) -> None:
        left = self._transport.get_write_buffer_size()
        if left < unread:
            self._write_timer = self.loop.call_later(self.bounds.write_timeout, self._look_at_reader, left)
        else:
            self._transport.abort()

    # Exchanges call the following methods.

    @property
    def bounds(self) -> Bounds:
        """The limits that apply to a client."""
        return self._context.bounds

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop that runs the timers."""
        return self._context.loop

    @property
    def date(self) -> Header:
        """The value of the header `Date`."""
        return self._context.date

    def abort(self) -> None:
        """Close the connection at once, and drop pending output."""
        self._transport.abort()

    def pause_reading(self) -> None:
        """Stop reading from the client."""
        if not (self._is_reading_paused or self._transport.is_closing()):
            self._is_reading_paused = True
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Continue reading from the client."""
        if self._is_reading_paused and not self._transport.is_closing():
            self._is_reading_paused = False
            self._transport.resume_reading()

    def reserve(self, count: int) -> bool:
        """Reserve `count` bytes for a request body; return False if that exceeds a budget."""
        return self._context.reserve(count, self.peer)

    def release(self, count: int) -> None:
        """Release the reserved bytes of a request body."""
        self._context.release(count, self.peer)

    def reserve_head(self, cost: int) -> bool:
        """Reserve `cost` bytes for a request head; return False if that exceeds a budget."""
        if not self._heads.reserve(cost):
            return False
        if self._context.heads.reserve(cost):
            return True
        self._heads.release(cost)
        return False

    def release_head(self, cost: int) -> None:
        """Release the reserved bytes of a request head."""
        self._heads.release(cost)
        self._context.heads.release(cost)

    def _start(self, exchange: Exchange) -> None:
        """Start to process a request that was read from this connection."""
        exchange.is_started = True
        task = start(self._answer(exchange), self.loop)
        if task is not None:
            self._context.tasks.add(task)
            task.add_done_callback(self._context.tasks.discard)

    async def _answer(self, exchange: Exchange) -> None:
        try:
            await self._context.handler(exchange)
        except Exception:
            log.exception("request handler failed")
        finally:
            exchange.abandon()
            exchange.forget_head()

    # The following methods end the connection.

    def _watch_expiry(self, certificate: Mapping[str, Any]) -> None:
        expires = certificate.get("notAfter")
        if expires:
            left = ssl.cert_time_to_seconds(str(expires)) - self._context.clock.now() / 1_000_000
            if left < 0:
                return  # the certificate was never valid
            self._expiry = self.loop.call_later(min(left, _LONGEST), self._expire, left > _LONGEST)

    def _expire(self, is_early: bool) -> None:
        if is_early and self._certificate is not None:
            self._watch_expiry(self._certificate)
        else:
            self._cut_off()

    def _end_idleness(self) -> None:
        """Close an idle connection, even if the client has not read its last response."""
        if self._transport.get_write_buffer_size():
            self._transport.abort()
        elif not self._transport.is_closing():
            self._transport.close()

    def _close(self) -> None:
        """Close the connection after the client has read the pending output."""
        self._transport.close()
        self._drop_soon()

    def _drop_soon(self) -> None:
        """Ensure that a closing connection ends, because TLS would wait for the client's reply.

        An idle client, such as a client with a connection pool, does not read from its connection, so it does not
        reply.
        """
        if self._transport.is_closing():
            unread = self._transport.get_write_buffer_size()
            has_read = not unread and self.idle_for > self.bounds.linger
            self.loop.call_later(_FLUSH if has_read else self.bounds.linger, self._drop, unread)

    def _drop(self, unread: int) -> None:
        """Drop the connection, unless the client has read some of the bytes since `unread` bytes were pending."""
        left = self._transport.get_write_buffer_size()
        if left < unread:
            self.loop.call_later(self.bounds.linger, self._drop, left)
        else:
            self._transport.abort()

    def _time_head(self) -> None:
        self._head_timer = self.loop.call_later(self.bounds.head_timeout, self._transport.abort)

    def _forget_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
