"""Fetches discovery and OpenAPI documents of other servers, by default as the user `system:kube-aggregator`.

Guarantees: a request ends after its timeout, and its response has at most `MOST_BYTES` bytes. Failures are raised as
`UpstreamFailed`, `Unresolved` (no address) or `TransportUnusable` (unusable certificates).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from ctrlmgr.authentication.user import MASTERS, User
from ctrlmgr.http.framing import Header
from ctrlmgr.http.proxying.upstream_address import Upstream, UpstreamMalformed, UpstreamTimeout
from ctrlmgr.http.proxying.upstream_connection import UpstreamConnection
from ctrlmgr.http.proxying.upstream_pool import UpstreamPool
from ctrlmgr.server.aggregating.user_headers import user_headers

MOST_BYTES: Final = 16 * 1024 * 1024
AGGREGATOR: Final = User("system:kube-aggregator", "", (MASTERS,))
"""The user of requests for documents. This user may read all documents on every server."""


class Fetched(NamedTuple):
    """The response to a request for a document, which is the document or an error."""

    code: int
    headers: dict[bytes, bytes]
    body: bytes

    def header(self, name: bytes) -> str:
        """Return the value of a response header; empty if the header is missing."""
        return self.headers.get(name, b"").decode("latin-1")


class Remote(Protocol):
    """A server that has documents."""

    @property
    def server_name(self) -> str:
        """The name that the server's certificate must have."""


R = TypeVar("R", bound=Remote)


class RemoteServers(Protocol[R]):
    """Servers that have documents."""

    @property
    def services(self) -> Mapping[tuple[str, str], R]:
        """The servers by their keys; for extension servers, the key is an API group and a version."""

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever the servers have changed."""

    def upstream(self, remote: R) -> Upstream:
        """Return the address of a server; raises the errors of `ExtensionServers.upstream`."""


class Fetcher(Generic[R]):
    """Fetches documents from servers. An instance is used on one event loop."""

    def __init__(self, servers: RemoteServers[R]) -> None:
        """Create an instance that resolves servers with `servers`; must be created on the event loop."""
        self._servers = servers
        self._pool = UpstreamPool()

    async def fetch(
        self, remote: R, path: str, headers: Sequence[Header], seconds: float, user: User = AGGREGATOR
    ) -> Fetched:
        """Return a server's response to a GET of `path` by `user`, which must arrive within `timeout` seconds."""
        upstream = self._servers.upstream(remote)
        lines = [(b"host", remote.server_name.encode()), (b"accept-encoding", b"identity"), *user_headers(user)]
        head = b"GET %b HTTP/1.1\r\n" % path.encode() + b"".join(b"%b: %b\r\n" % line for line in [*lines, *headers])
        try:
            async with asyncio.timeout(seconds):
                connection = await self._pool.connected(upstream)
                try:
                    return await _answer(connection, head + b"\r\n")
                finally:
                    connection.close()
        except TimeoutError as error:
            raise UpstreamTimeout from error


async def _answer(connection: UpstreamConnection, head: bytes) -> Fetched:
    connection.begin("GET", head)
    code, headers = await connection.head()
    body = bytearray()
    while piece := await connection.piece():
        body += piece
        if len(body) > MOST_BYTES:
            raise UpstreamMalformed(f"http: response body of more than {MOST_BYTES} bytes")
    return Fetched(code, dict(headers), bytes(body))
