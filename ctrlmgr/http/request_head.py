"""The head of a request, and the rules for the bytes that it may contain."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

import httptools

from ctrlmgr.authentication.header_lines import HeaderLine, HeaderLines
from ctrlmgr.errors import CtrlmgrError

END: Final = b"\r\n\r\n"
"""The bytes that end a head."""
PATH: Final = rb"(/(?!/)[\w\-.~%!$&'()*+,;=:@/]*)(?:\?([\w\-.~%!$&'()*+,;=:@/?]*))?"
"""A regular expression that matches an unambiguous path and query."""

BAD_REQUEST: Final = "400 Bad Request"
EXPECTATION_FAILED: Final = "417 Expectation Failed"
TOO_LONG: Final = "414 URI Too Long"
TOO_LARGE: Final = "431 Request Header Fields Too Large"
NOT_IMPLEMENTED: Final = "501 Not Implemented"
UNKNOWN_VERSION: Final = "505 HTTP Version Not Supported"

LONGEST_TARGET: Final = 128 * 1024
"""Maximum size of a request target in bytes. The limit bounds the time that parsing a query takes on the event loop."""

_TARGET = re.compile(PATH, re.ASCII)
_HOST = re.compile(rb"[0-9A-Za-z!$%&'()*+,\-.:;=\[\]_~]*")
"""Matches a valid Host header (Go's `httpguts.ValidHostHeader`)."""
_HEADER_COST = 160
"""The memory in bytes that a header needs in addition to the bytes of its name and value."""


class Malformed(CtrlmgrError):
    """The input is not a valid request; `status` is the status code and reason phrase of the answer."""

    default_message = "The input is not a valid request."

    def __init__(self, status: str) -> None:
        """Create an error to which the server responds with `status`."""
        super().__init__(status)
        self.status = status


class Head(NamedTuple):
    """The head of a request."""

    method: str
    path: bytes
    """The URL path as it was sent, with percent escapes."""
    query: bytes
    """The query without the question mark; empty if the request has no query."""
    headers: HeaderLines
    """The request headers in the order in which they were sent, with names in lower case, without Content-Length."""
    version: str = "1.1"
    """The version of HTTP: `2`, `1.1` or `1.0`."""
    length: int | None = None
    """The Content-Length in bytes; None if the request has no such header."""
    keep_alive: bool = True
    """Whether the client may send another request on this connection."""
    expects_continue: bool = False
    """Whether the client waits for 100 Continue before it sends the body."""
    upgrades: bool = False
    """Whether the client asks to switch to another protocol after this request."""

    @property
    def cost(self) -> int:
        """The approximate memory of the head, in bytes."""
        return len(self.path) + len(self.query) + self.headers.read(_cost)


def read_target(target: bytes) -> tuple[bytes, bytes]:
    """Return the path and query of a request target, which may have any valid form.

    Raises `Malformed` if the target has none of the valid forms.
    """
    if len(target) > LONGEST_TARGET:
        raise Malformed(TOO_LONG)
    if parts := _TARGET.fullmatch(target):
        return parts[1], parts[2] or b""
    try:
        parsed = httptools.parse_url(target)
    except httptools.HttpParserInvalidURLError as error:
        raise Malformed(BAD_REQUEST) from error
    path = parsed.path or b"/"
    if not path.isascii():
        raise Malformed(BAD_REQUEST)
    return path, parsed.query or b""


def _cost(lines: Sequence[HeaderLine]) -> int:
    return sum([len(name) + len(value) + _HEADER_COST for name, value in lines])


def check_host(host: bytes) -> None:
    """Raise `Malformed` if the value of Host or `:authority` is not a valid host."""
    if not _HOST.fullmatch(host):
        raise Malformed(BAD_REQUEST)
