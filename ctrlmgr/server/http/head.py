"""The head of a request, and what its bytes may be."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import httptools

from ctrlmgr.api.header_lines import HeaderLines
from ctrlmgr.errors import CtrlmgrError

END: Final = b"\r\n\r\n"
"""What ends a head."""
PATH: Final = rb"(/(?!/)[\w\-.~%!$&'()*+,;=:@/]*)(?:\?([\w\-.~%!$&'()*+,;=:@/?]*))?"
"""A path and a query that are what they seem to be: a regular expression."""

BAD_REQUEST: Final = "400 Bad Request"
EXPECTATION_FAILED: Final = "417 Expectation Failed"
TOO_LARGE: Final = "431 Request Header Fields Too Large"
UNKNOWN_VERSION: Final = "505 HTTP Version Not Supported"

_TARGET = re.compile(PATH, re.ASCII)


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


def read_target(target: bytes) -> tuple[bytes, bytes]:
    """Return the path and the query of a request's target, in whichever form it was sent; raises `Malformed`."""
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
