"""Requests of clients that have been heard before: what a client says of itself with every request is read once.

Guarantees:
- Only a GET that comes whole, in one piece, after its predecessor has been answered, is not parsed, and only if its
  header lines are, byte for byte, those of a request that was; one that said nothing of a body, of an upgrade or of the
  end of the connection. Everything else is the parser's, a target with unusual characters included.
- The application sees the same either way.
- The lines of `REMEMBERED` clients are kept, of `LONGEST` bytes at most.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any, cast
from urllib.parse import unquote

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from ctrlmgr.server.http.protocol import Protocol
from ctrlmgr.server.http.responses import Header

REMEMBERED = 256
LONGEST = 2048

_LINE = re.compile(rb"GET (/(?!/)[\w\-.~%!$&'()*+,;=:@/]*)(?:\?([\w\-.~%!$&'()*+,;=:@/?]*))? HTTP/1\.1", re.ASCII)
_END = b"\r\n\r\n"
_UNUSUAL = frozenset(
    {b"content-length", b"expect", b"proxy-connection", b"te", b"trailer", b"transfer-encoding", b"upgrade"}
)
"""Headers that say more of a request than who sends it and what for."""

_known: dict[bytes, list[Header]] = {}


class FamiliarProtocol(Protocol):
    """See the module's docstring."""

    def data_received(self, data: bytes) -> None:
        """Read what has come, by the short way if it can be taken."""
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is None or not cycle.response_complete or self._in_head or self._in_body:
            super().data_received(data)
        elif self._last_words or self.transport.is_closing() or not self._recognise(data):
            super().data_received(data)
            if data.startswith(b"GET ") and data.find(_END) == len(data) - len(_END):
                self._remember(data)

    def _recognise(self, data: bytes) -> bool:
        """Answer a request whose header lines are known; say whether it is one."""
        line, _, lines = data.partition(b"\r\n")
        headers = _known.get(lines)
        parts = _LINE.fullmatch(line) if headers is not None else None
        if headers is None or parts is None:
            return False
        self.on_message_begin()
        path, query = parts.groups()
        scope = cast(dict[str, Any], self.scope)
        scope["method"] = "GET"
        scope["path"] = unquote(path.decode("ascii"))
        scope["raw_path"] = path
        scope["query_string"] = query or b""
        scope["headers"] = self.headers = headers
        self._hand_over()
        return True

    def _hand_over(self) -> None:
        """Have a request answered that is all there, as `on_headers_complete` and `on_message_complete` would."""
        self._forget_timer()
        self._idleness.cancel()
        self.cycle = RequestResponseCycle(
            scope=self.scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=self.access_log,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=False,
            keep_alive=not self._is_last,
            on_response=self.on_response_complete,
        )
        self.cycle.more_body = False
        self.cycle.message_event.set()
        self._in_head = False
        self._has_ended = True
        self._start(self.cycle)

    def _remember(self, data: bytes) -> None:
        """Keep the header lines of a request that has been parsed, if they say nothing unusual."""
        lines = data.partition(b"\r\n")[2]
        headers = self.headers
        connection = [value.lower() for name, value in headers if name == b"connection"]
        if (
            len(lines) > LONGEST
            or self._last_words
            or self._in_head
            or self.scope["http_version"] != "1.1"
            or not _UNUSUAL.isdisjoint(name for name, _ in headers)
            or connection not in ([], [b"keep-alive"])
        ):
            return
        if len(_known) >= REMEMBERED:
            _known.clear()
        _known[lines] = headers
