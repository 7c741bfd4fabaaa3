"""Caches the header lines of earlier requests, so that a request with the same lines is not parsed again.

Guarantees:
- A header cache belongs to one connection. For each HTTP method, the cache holds the header lines of the last request.
- A request matches only if the input contains nothing else and its header lines equal the cached lines byte for byte.
  Only the value of Content-Length may differ, and must be the number of bytes that follow the head. Therefore a match
  is never ambiguous, and the application receives the same request as from the parser.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ctrlmgr.authentication.header_lines import HeaderLines
from ctrlmgr.http.request_head import END, PATH, Head

_BEGINNING = re.compile(rb"(GET|POST|PUT|PATCH|DELETE) " + PATH + rb" HTTP/1\.1", re.ASCII)
_LENGTH = re.compile(rb"\r\ncontent-length: ([0-9]+)\r\n", re.IGNORECASE | re.ASCII)
_LONGEST = 2048
"""Maximum size of cached header lines, in bytes."""
_DIGITS = 12
"""Maximum digits of a Content-Length in a cached request. A body whose length has more digits never fits into one read.
"""
_UNUSUAL = frozenset({b"expect", b"proxy-connection", b"te", b"trailer", b"transfer-encoding", b"upgrade"})
"""Headers that change how a request is processed. Header lines that contain such a header are not cached."""


class _Lines(NamedTuple):
    """The header lines of one request, raw and parsed."""

    method: str
    before: bytes
    """The bytes between the request's target and the value of Content-Length."""
    after: bytes
    """The bytes after the value of Content-Length, including the empty line; empty if there is no Content-Length."""
    headers: HeaderLines


class HeadCache:
    """The header lines of earlier requests of one connection."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        """Create an empty instance."""
        self._known: dict[bytes, _Lines] = {}

    def recognise(self, data: bytes) -> tuple[Head, bytes] | None:
        """Return the head and body of a request whose header lines are cached; None if they are not cached.

        The caller must not call this method while the parser is within a request.
        """
        beginning = _BEGINNING.match(data)
        if beginning is None:
            return None
        known = self._known.get(beginning[1])
        if known is None:
            return None
        method, before, after, headers = known
        at = beginning.end()
        if not data.startswith(before, at):
            return None
        at += len(before)
        if not after:
            return (Head(method, beginning[2], beginning[3] or b"", headers), b"") if at == len(data) else None
        end = data.find(b"\r", at, at + _DIGITS)
        digits = data[at : max(end, at)]
        if not (digits.isdigit() and data.startswith(after, end)):
            return None
        body = data[end + len(after) :]
        if len(body) != int(digits):
            return None
        return Head(method, beginning[2], beginning[3] or b"", headers, "1.1", len(body)), body

    def remember(self, data: bytes, head: Head) -> None:
        """Cache the header lines of a request if they are short and usual, and the input contained nothing else."""
        beginning, end = _BEGINNING.match(data), data.find(END)
        if beginning is None or len(data) != end + len(END) + (head.length or 0):
            return
        at, length = beginning.end(), _LENGTH.search(data, beginning.end(), end + 2)
        if end - at > _LONGEST or (length is None) is not (head.length is None) or not _is_usual(head):
            self._known.pop(beginning[1], None)
            return
        after = b"" if length is None else data[length.end(1) : end + len(END)]
        before = data[at : end + len(END) if length is None else length.start(1)]
        self._known[beginning[1]] = _Lines(head.method, before, after, head.headers)


def _is_usual(head: Head) -> bool:
    connection = [value.lower() for name, value in head.headers if name == b"connection"]
    return (
        head.version == "1.1"
        and connection in ([], [b"keep-alive"])
        and _UNUSUAL.isdisjoint(name for name, _ in head.headers)
    )
