"""How answers are written in HTTP/1: a head in lines, and a body whose end the client can tell.

Guarantees: a body whose length is not told goes in chunks, or ends with the connection where the client does not know
of chunks; the last answer of a connection says that it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ctrlmgr.server.http.exchange import Exchange
from ctrlmgr.server.http.framing import CONTINUE, Header, beginning, has_body, whole
from ctrlmgr.server.http.stream import Framing


class _Line(Protocol):
    """What answers are written to."""

    @property
    def date(self) -> Header:
        """The header that says what time it is."""

    def write(self, data: bytes) -> None:
        """Send bytes."""


class LineAnswers:
    """The part of a `Wire` that writes answers; see the module's docstring."""

    __slots__ = ()

    def go_ahead(self: _Line) -> None:
        """Tell a client that waits for it to send its body."""
        self.write(CONTINUE)

    def answer(
        self: _Line, exchange: Exchange, code: int, headers: Sequence[Header], body: bytes, own: Header | None
    ) -> None:
        """Write a whole answer, in one."""
        head_only = exchange.method == "HEAD"
        keep_alive = exchange.keep_alive
        self.write(whole(code, self.date, headers, body, own=own, keep_alive=keep_alive, head_only=head_only))

    def begin(self: _Line, exchange: Exchange, code: int, headers: Sequence[Header], length: int | None) -> Framing:
        """Write the head of an answer whose body follows."""
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
