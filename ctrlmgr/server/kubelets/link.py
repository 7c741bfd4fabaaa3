"""Connects to kubelets, and keeps idle connections for later requests.

Guarantees:
- A node has at most `_IDLE_PER_NODE` idle connections, each for at most `_IDLE_FOR` seconds.
- Connecting ends within the configured timeout. A failure is an `UnknownError` with the text of Go's HTTP client.
- A request on a kept connection that the kubelet has closed meanwhile is sent again on a new one.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from typing import Final, NamedTuple

from ctrlmgr.clock import Clock
from ctrlmgr.errors import UnknownError
from ctrlmgr.http.upstream import Answer, Broken, Upstream, dial
from ctrlmgr.server.go_words import of_tls, unreachable
from ctrlmgr.server.kubelets.kubelet_credentials import Credentials
from ctrlmgr.server.kubelets.kubelet_urls import KubeletUrl

_IDLE_PER_NODE: Final = 25
"""Idle connections per node (client-go `transport/cache.go`)."""
_IDLE_FOR: Final = 90.0


class _Idle(NamedTuple):
    """A connection without a request."""

    upstream: Upstream
    context: ssl.SSLContext
    since: float
    """The time (monotonic seconds) since which it is idle."""


class KubeletLink:
    """Connections to kubelets. Used on one event loop."""

    def __init__(self, credentials: Credentials, timeout: float, *, clock: Clock) -> None:
        """Connect with `credentials`, in at most `timeout` seconds."""
        self._credentials = credentials
        self._timeout = timeout
        self._clock = clock
        self._idle: dict[tuple[str, int], deque[_Idle]] = {}
        self._open: dict[Upstream, ssl.SSLContext] = {}
        self._sweeping: asyncio.TimerHandle | None = None

    async def get(self, url: KubeletUrl, *, is_checked: bool) -> tuple[Upstream, Answer]:
        """Send a GET and return the connection with the answer's head; raises `UnknownError`.

        The caller reads the body and gives the connection back with `release`.
        """
        head = f"GET {url.target} HTTP/1.1\r\nHost: {url.authority}\r\nUser-Agent: Go-http-client/1.1\r\n\r\n".encode()
        context = self._credentials.context(is_checked=is_checked)
        kept = self._take(url, context)
        if kept is not None:
            try:
                return kept, await kept.ask(head)
            except Broken:
                self.release(url, kept)
        try:
            upstream = await self.connect(url, is_checked=is_checked)
            return upstream, await self._asked(upstream, url, head)
        except UnknownError as error:
            raise UnknownError(f'Get "{url}": {error}') from error

    async def _asked(self, upstream: Upstream, url: KubeletUrl, head: bytes) -> Answer:
        try:
            return await upstream.ask(head)
        except BaseException as error:
            self.release(url, upstream)
            if isinstance(error, Broken):
                raise UnknownError(str(error)) from error
            raise

    async def connect(self, url: KubeletUrl, *, is_checked: bool = True) -> Upstream:
        """Return a new connection; raises `UnknownError`. The caller gives it back with `release`."""
        context = self._credentials.context(is_checked=is_checked)
        try:
            async with asyncio.timeout(self._timeout):
                upstream = await dial(url.host, url.port, context)
        except TimeoutError as error:
            raise UnknownError(f"dial tcp {url.authority}: i/o timeout") from error
        except OSError as error:
            raise UnknownError(of_tls(error) or unreachable(error, str(url))) from error
        self._open[upstream] = context
        return upstream

    def release(self, url: KubeletUrl, upstream: Upstream) -> None:
        """Keep a connection for later requests if its answer is complete, else close it."""
        context = self._open.pop(upstream, None)
        idle = self._idle.setdefault((url.host, url.port), deque())
        if context is not None and upstream.is_reusable and len(idle) < _IDLE_PER_NODE:
            idle.append(_Idle(upstream, context, self._clock.monotonic()))
        elif not upstream.is_lost:
            upstream.abort()
        self._sweep()

    def close(self) -> None:
        """Close all connections."""
        if self._sweeping is not None:
            self._sweeping.cancel()
        for upstream in (*self._open, *(each.upstream for idle in self._idle.values() for each in idle)):
            upstream.abort()
        self._idle.clear()
        self._open.clear()

    def _take(self, url: KubeletUrl, context: ssl.SSLContext) -> Upstream | None:
        """Return an idle connection with the same context, the last used one first."""
        self._sweep()
        idle = self._idle.get((url.host, url.port), deque())
        while idle:
            kept = idle.pop()
            if kept.context is context and not kept.upstream.is_lost:
                self._open[kept.upstream] = context
                return kept.upstream
            kept.upstream.abort()
        return None

    def _sweep(self) -> None:
        """Close connections that are idle for too long, now and again later while there are any."""
        now = self._clock.monotonic()
        for place, idle in list(self._idle.items()):
            while idle and (idle[0].upstream.is_lost or now - idle[0].since > _IDLE_FOR):
                idle.popleft().upstream.abort()
            if not idle:
                del self._idle[place]
        if self._sweeping is not None:
            self._sweeping.cancel()
        later = asyncio.get_running_loop().call_later
        self._sweeping = later(_IDLE_FOR, self._sweep) if self._idle else None
