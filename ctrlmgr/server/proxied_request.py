"""Adapts a request to the interface that `http.proxying` requires for forwarding the request to another server.

Guarantees: the server audits and counts the response like any other response, and adds the request's `Audit-Id` and
warnings. The server adds nothing to the response to an accepted upgrade.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ctrlmgr.http.exchange import BodyTooSlow, TooManyBodies
from ctrlmgr.http.framing import Header
from ctrlmgr.http.response_stream import Stream
from ctrlmgr.http.tunnel import Side
from ctrlmgr.server.request import BODY_PATIENCE, Request, body_refusal

_SWITCHING = 101


class ProxiedRequest:
    """The `Downstream` of a request that is forwarded. Used on the event loop's thread only."""

    def __init__(self, request: Request) -> None:
        """Create the `Downstream` that answers `request`."""
        self.method = request.method
        self._request = request
        self._exchange = request.exchange

    @property
    def peer(self) -> str:
        """The client's address; empty if the address is unknown."""
        return self._exchange.peer

    @property
    def length(self) -> int | None:
        """The Content-Length in bytes; None if the request has no such header."""
        return self._exchange.length

    @property
    def may_have_body(self) -> bool:
        """Whether the request has a body, or may have a body that has not arrived yet."""
        return self._exchange.may_have_body

    @property
    def may_switch(self) -> bool:
        """Whether the client asks for an upgrade that can be accepted."""
        return self._exchange.switching is not None and not self._exchange.is_begun

    @property
    def is_disconnected(self) -> bool:
        """Whether the client has disconnected."""
        return self._exchange.is_disconnected

    async def piece(self) -> bytes:
        """Return the next part of the body; at the end of the body, return an empty part.

        Raises the same errors as `Request.body`.
        """
        try:
            return await self._exchange.piece(BODY_PATIENCE)
        except (BodyTooSlow, TooManyBodies) as error:
            raise body_refusal(error) from error

    def on_lost(self, call: Callable[[], object] | None) -> None:
        """Call `call` when the client disconnects, or now if the client has disconnected already."""
        self._exchange.on_lost(call)

    async def begin_stream(self, code: int, headers: Sequence[Header]) -> Stream:
        """Send the head of a response, and return the stream for its body."""
        return await self._request.begin_stream(code, headers)

    def switch(self, headers: Sequence[Header]) -> Side:
        """Accept the upgrade, and return the connection for raw bytes.

        Raises `Disconnected` if the client has disconnected.
        """
        self._request.answers(_SWITCHING)
        return self._exchange.switch(headers)
