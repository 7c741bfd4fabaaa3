"""What a connection is, whatever is spoken on it: a transport, whose client may be slow, idle, or no longer trusted.

Guarantees:
- A client that has not read anything for `Bounds.write_timeout` while something waits for it is disconnected.
- A client certificate that expires while it is connected ends its connection. Nothing else is judged of it here.
- A connection that closes is closed `Bounds.linger` seconds after its client has read the last of its answer.
"""

from __future__ import annotations

import asyncio
import ssl
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import structlog

from ctrlmgr.server.http.bounds import Bounds
from ctrlmgr.server.http.budget import Budget
from ctrlmgr.server.http.client_certificates import presented_certificates
from ctrlmgr.server.http.context import ServerContext
from ctrlmgr.server.http.eager import start
from ctrlmgr.server.http.exchange import Exchange
from ctrlmgr.server.http.framing import Header
from ctrlmgr.server.http.lazy_timer import LazyTimer

log = structlog.get_logger(__name__)

_LONGEST = 86_400.0
"""Seconds of a timer; what is due later is looked at again."""


class _Gone(asyncio.Transport):
    """What is left of a transport once its connection is lost: it takes anything, and does nothing."""

    def is_closing(self) -> bool:
        return True

    def write(self, data: object) -> None:
        """Send nothing."""

    def close(self) -> None:
        """Leave it closed."""

    def abort(self) -> None:
        """Leave it closed."""

    def pause_reading(self) -> None:
        """Read nothing."""

    def resume_reading(self) -> None:
        """Read nothing."""

    def get_write_buffer_size(self) -> int:
        return 0


_GONE = _Gone()


class Transported(asyncio.BufferedProtocol):
    """See the module's docstring; used on the event loop only."""

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
        """Belong to a server."""
        self.is_paused = False
        """Whether the client is behind with reading."""
        self.peer = ""
        """The address that the client has, empty if it has none."""
        self.certificates: Sequence[bytes] = ()
        """What the client presented (DER), its own certificate first; it has not been judged yet."""
        self._context = context
        self._transport: asyncio.Transport
        self._certificate: Mapping[str, Any] | None = None
        self._heads = Budget(context.bounds.connection_heads_bytes)
        self._is_leaving = False  # whether the connection closes once what is under way has been answered
        self._is_reading_paused = False
        self._head_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        self._expiry: asyncio.TimerHandle | None = None
        self._idleness = LazyTimer(context.loop, context.bounds.keep_alive, self._end_idleness)

    # What those who speak on it do.

    @abstractmethod
    def receive(self, data: bytes) -> None:
        """Take what has come."""

    @abstractmethod
    def leave(self) -> None:
        """Tell the client that it should not go on here: the server stops."""

    @abstractmethod
    def shutdown(self) -> None:
        """Close an idle connection, and any other once what is under way has been answered."""

    @abstractmethod
    def _reads_again(self) -> None:
        """Go on: the client has caught up with reading."""

    @abstractmethod
    def _cut_off(self) -> None:
        """End what goes on for long, and let what is under way be answered: the client is trusted no more."""

    # What the transport calls.

    def _made(self, transport: asyncio.Transport, unread: int) -> None:
        """Belong to a transport, whose client counts as one that does not read while `unread` bytes wait for it."""
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
        """Let go of the transport, at the end."""
        self._context.connections.discard(self)
        for timer in (self._head_timer, self._write_timer, self._expiry):
            if timer is not None:
                timer.cancel()
        self._idleness.close()
        self._transport = _GONE  # uvloop's holds this, and buffers of hundreds of kilobytes

    def get_buffer(self, sizehint: int) -> memoryview:
        """Lend the buffer."""
        return self._context.buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Take what is in it."""
        self.receive(bytes(self._context.buffer[:nbytes]))

    def eof_received(self) -> None:
        """Let the transport close: a client that sends no more is not waited for."""

    def pause_writing(self) -> None:
        """Note that the client does not read."""
        self.is_paused = True
        self._write_timer = self.loop.call_later(
            self.bounds.write_timeout, self._look_at_reader, self._transport.get_write_buffer_size()
        )

    def resume_writing(self) -> None:
        """Note that it does again."""
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

    # What those who answer ask of it.

    @property
    def bounds(self) -> Bounds:
        """What a client may take."""
        return self._context.bounds

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """Where timers are set."""
        return self._context.loop

    @property
    def date(self) -> Header:
        """The header that says what time it is."""
        return self._context.date

    def abort(self) -> None:
        """Drop the connection and what has not been read."""
        self._transport.abort()

    def pause_reading(self) -> None:
        """Take in no more than has come."""
        if not (self._is_reading_paused or self._transport.is_closing()):
            self._is_reading_paused = True
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Take in what comes."""
        if self._is_reading_paused and not self._transport.is_closing():
            self._is_reading_paused = False
            self._transport.resume_reading()

    def reserve(self, count: int) -> bool:
        """Say whether so many bytes of a body may be held, and count them if so."""
        return self._context.reserve(count, self.peer)

    def release(self, count: int) -> None:
        """Count them no longer."""
        self._context.release(count, self.peer)

    def reserve_head(self, cost: int) -> bool:
        """Return whether a head of `cost` bytes may be held, and count them if so."""
        if not self._heads.reserve(cost):
            return False
        if self._context.heads.reserve(cost):
            return True
        self._heads.release(cost)
        return False

    def release_head(self, cost: int) -> None:
        """Stop counting a head."""
        self._heads.release(cost)
        self._context.heads.release(cost)

    def _start(self, exchange: Exchange) -> None:
        """Have a request answered."""
        exchange.is_started = True
        task = start(self._answer(exchange), self.loop)
        if task is not None:
            self._context.tasks.add(task)
            task.add_done_callback(self._context.tasks.discard)

    async def _answer(self, exchange: Exchange) -> None:
        try:
            await self._context.handler(exchange)
        except Exception:
            log.exception("a request was not answered")
        finally:
            exchange.abandon()
            exchange.forget_head()

    # How it ends.

    def _watch_expiry(self, certificate: Mapping[str, Any]) -> None:
        expires = certificate.get("notAfter")
        if expires:
            left = ssl.cert_time_to_seconds(str(expires)) - self._context.clock.now() / 1_000_000
            if left < 0:
                return  # it was worth nothing from the beginning
            self._expiry = self.loop.call_later(min(left, _LONGEST), self._expire, left > _LONGEST)

    def _expire(self, is_early: bool) -> None:
        if is_early and self._certificate is not None:
            self._watch_expiry(self._certificate)
        else:
            self._cut_off()

    def _end_idleness(self) -> None:
        """Close a connection that has been idle for long, even if its last answer has not been read."""
        if self._transport.get_write_buffer_size():
            self._transport.abort()
        elif not self._transport.is_closing():
            self._transport.close()

    def _close(self) -> None:
        """Close once the client has read what waits for it."""
        self._transport.close()
        self._drop_soon()

    def _drop_soon(self) -> None:
        """See a closing connection closed: TLS would wait for the client to say goodbye as well.

        A client that is idle, as in every pool of connections, does not read and so does not answer.
        """
        if self._transport.is_closing():
            self.loop.call_later(self.bounds.linger, self._drop, self._transport.get_write_buffer_size())

    def _drop(self, unread: int) -> None:
        """Drop a connection, unless its client has been reading since `unread` bytes were left of its answer."""
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
