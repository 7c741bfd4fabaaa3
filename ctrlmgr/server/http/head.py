"""The head of a request, and what its bytes may be."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

import httptools

from ctrlmgr.authentication.header_lines import HeaderLine, HeaderLines
from ctrlmgr.errors import CtrlmgrError

END: Final = b"\r\n\r\n"
"""What ends a head."""
PATH: Final = rb"(/(?!/)[\w\-.~%!$&'()*+,;=:@/]*)(?:\?([\w\-.~%!$&'()*+,;=:@/?]*))?"
"""A path and a query that are what they seem to be: a regular expression."""

BAD_REQUEST: Final = "400 Bad Request"
EXPECTATION_FAILED: Final = "417 Expectation Failed"
TOO_LONG: Final = "414 URI Too Long"
TOO_LARGE: Final = "431 Request Header Fields Too Large"
NOT_IMPLEMENTED: Final = "501 Not Implemented"
UNKNOWN_VERSION: Final = "505 HTTP Version Not Supported"

LONGEST_TARGET: Final = 128 * 1024
"""Bytes of a request's target: reading a query of so many takes some 10 ms on the event loop."""

_TARGET = re.compile(PATH, re.ASCII)
_HOST = re.compile(rb"[0-9A-Za-z!$%&'()*+,\-.:;=\[\]_~]*")
"""A value of Host (Go's `httpguts.ValidHostHeader`)."""
_HEADER_COST = 160
"""Bytes of memory that a header takes besides its name and its value."""


class Malformed(CtrlmgrError):
    """What was received is no request; `status` is the status line's code and phrase."""

    def __init__(self, status: str) -> None:
        """Be answered with `status`."""
        super().__init__(status)
        self.status = status


class Head(NamedTuple):
    """The head of a request."""

    method: str
    path: bytes
    """The path as it was sent, escapes and all."""
    query: bytes
    """What follows the question mark; empty without one."""
    headers: HeaderLines
    """The headers in the order in which they came, names in lower case; Content-Length is not among them."""
    version: str = "1.1"
    """The version of HTTP: `2`, `1.1` or `1.0`."""
    length: int | None = None
    """The bytes of the body, as Content-Length says; None if it does not."""
    keep_alive: bool = True
    """Whether the client may send another request on this connection."""
    expects_continue: bool = False
    """Whether the client sends its body only when it is told to."""

    @property
    def cost(self) -> int:
        """Bytes of memory that the head takes, about."""
        return len(self.path) + len(self.query) + self.headers.read(_cost)


def read_target(target: bytes) -> tuple[bytes, bytes]:
    """Return the path and the query of a request's target, in whichever form it was sent; raises `Malformed`."""
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
    """Raise `Malformed` for a value of Host or `:authority` that names no host."""
    if not _HOST.fullmatch(host):
        raise Malformed(BAD_REQUEST)
