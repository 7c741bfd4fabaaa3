"""Writes responses in HTTP/1.1 and HTTP/1.0.

Guarantees: a body of unknown length is sent in chunks; for an HTTP/1.0 client, the body ends when the connection is
closed. The last response of a connection has the header `connection: close`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ctrlmgr.http.exchange import Exchange
from ctrlmgr.http.framing import CONTINUE, Header, beginning, has_body, whole
from ctrlmgr.http.response_stream import Framing


class _Line(Protocol):
    """The connection to which responses are written."""

    @property
    def date(self) -> Header:
        """The value of the header `Date`."""

    def write(self, data: bytes) -> None:
        """Send bytes."""


class LineAnswers:
    """The part of a `Wire` that writes HTTP/1 responses."""

    __slots__ = ()

    def retire(self: _Line) -> None:
        """Keep the connection, because HTTP/1 cannot ask a client to use another connection."""

    def go_ahead(self: _Line) -> None:
        """Send 100 Continue."""
        self.write(CONTINUE)

    def answer(
        self: _Line, exchange: Exchange, code: int, headers: Sequence[Header], body: bytes, own: Header | None
    ) -> None:
        """Write a whole response in one write."""
        head_only = exchange.method == "HEAD"
        keep_alive = exchange.keep_alive
        self.write(whole(code, self.date, headers, body, own=own, keep_alive=keep_alive, head_only=head_only))

    def begin(self: _Line, exchange: Exchange, code: int, headers: Sequence[Header], length: int | None) -> Framing:
        """Write the head of a response whose body follows."""
        chunked = length is None and exchange.version != "1.0" and has_body(code)
        if exchange.method == "HEAD" or not has_body(code):
            framing = Framing.NONE
        elif chunked:
            framing = Framing.CHUNKED
        else:
            framing = Framing.PLAIN
            exchange.keep_alive = exchange.keep_alive and length is not None
        self.write(beginning(code, self.date, headers, keep_alive=exchange.keep_alive, chunked=chunked))
        return framing
