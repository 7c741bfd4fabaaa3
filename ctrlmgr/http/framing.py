"""Encodes HTTP/1.1 responses (RFC 9112): status lines, heads, chunks.

Guarantees: the value of a header cannot add lines to a head. A response that must not have a body has no
Content-Length.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from http import HTTPStatus
from typing import TypeAlias

from ctrlmgr.authentication.header_lines import HeaderLine
from ctrlmgr.caches.memoized import memoized

Header: TypeAlias = HeaderLine

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"

_CLOSE = b"connection: close\r\n"
_MOST_REMEMBERED = 8
"""Maximum number of headers of a cached head; heads with more headers, such as many warnings, rarely repeat."""
_CHUNKED = b"transfer-encoding: chunked\r\n"


def has_body(code: int) -> bool:
    """Return whether a response with this status may have a body (RFC 9110, section 6.4.1)."""
    return code >= 200 and code not in (204, 304)


def chunk(body: bytes) -> bytes:
    """Encode a part of a body as a chunk (RFC 9112, section 7.1).

    A chunk must not be empty, because an empty chunk ends the body.
    """
    return b"%x\r\n%b\r\n" % (len(body), body)


@lru_cache(maxsize=4)  # cached, because several watchers receive the same chunks
def unchunked(chunks: bytes) -> bytes:
    """Return the content of consecutive chunks that `chunk` has encoded."""
    parts: list[bytes] = []
    at = 0
    while at < len(chunks):
        line = chunks.index(b"\r\n", at)
        begins = line + 2
        ends = begins + int(chunks[at:line], 16)
        parts.append(chunks[begins:ends])
        at = ends + 2
    return b"".join(parts)


def whole(
    code: int,
    date: Header,
    headers: Sequence[Header],
    body: bytes,
    *,
    own: Header | None = None,
    keep_alive: bool,
    head_only: bool,
) -> bytes:
    """Return an encoded response; for a HEAD request, return only the head, which contains the length of the body.

    `own` is a header that differs in each response. All other headers are encoded once and cached.
    """
    head = _head(code, date, tuple(headers), keep_alive)
    if own is not None:
        head += _line(own)
    if not has_body(code):
        return head + b"\r\n"
    return b"%bcontent-length: %d\r\n\r\n%b" % (head, len(body), b"" if head_only else body)


def beginning(code: int, date: Header, headers: Sequence[Header], *, keep_alive: bool, chunked: bool) -> bytes:
    """Return the head of a response whose body follows in pieces."""
    return b"%b%b\r\n" % (_head(code, date, tuple(headers), keep_alive), _CHUNKED if chunked else b"")


def switching_protocols(headers: Sequence[Header]) -> bytes:
    """Return the head of a response after which the connection uses another protocol."""
    return b"%b%b\r\n" % (_status_line(101), b"".join(map(_line, headers)))


def _head(code: int, date: Header, headers: tuple[Header, ...], keep_alive: bool) -> bytes:
    """Return the head of a response without the empty line that ends the head.

    The whole head except the date, which changes every second, is cached.
    """
    return b"%b%b%b%b" % (_status_line(code), _line(date), _lines(headers), b"" if keep_alive else _CLOSE)


@memoized(entries=256, longest=_MOST_REMEMBERED)
def _lines(headers: tuple[Header, ...]) -> bytes:
    """Return the encoded headers, which are cached because most responses have one of a few sets of headers."""
    return b"".join(map(_line, headers))


def _line(header: Header) -> bytes:
    line = b"%b: %b\r\n" % header
    if line.count(b"\n") != 1 or line.count(b"\r") != 1:
        raise ValueError(f"a header of the answer has a line break in it: {header}")
    return line


@cache
def _status_line(code: int) -> bytes:
    try:
        phrase = HTTPStatus(code).phrase
    except ValueError:
        phrase = ""
    return f"HTTP/1.1 {code} {phrase}\r\n".encode()
