"""Requests that come with header lines that have been read before, and need not be parsed again.

Guarantees:
- What is known of a connection is used for that connection alone: for each method, the lines that its last request had.
- A request is recognised only if it is all that has come, and its lines are the same byte for byte, but for the number
  in Content-Length, which must be the length of all that follows. So nothing in it can be read in two ways, and the
  application sees what it would see of a parsed one.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ctrlmgr.authentication.header_lines import HeaderLines
from ctrlmgr.server.http.head import END, PATH, Head

_BEGINNING = re.compile(rb"(GET|POST|PUT|PATCH|DELETE) " + PATH + rb" HTTP/1\.1", re.ASCII)
_LENGTH = re.compile(rb"\r\ncontent-length: ([0-9]+)\r\n", re.IGNORECASE | re.ASCII)
_LONGEST = 2048
"""Bytes of header lines that are remembered."""
_DIGITS = 12
"""Of a length: there are fewer bytes in one piece."""
_UNUSUAL = frozenset({b"expect", b"proxy-connection", b"te", b"trailer", b"transfer-encoding", b"upgrade"})
"""Headers that say more of a request than who sends it, what for, and how much."""


class _Lines(NamedTuple):
    """Header lines, as they are sent and as they are read."""

    method: str
    before: bytes
    """What follows the request's target, up to its length."""
    after: bytes
    """What follows its length, the empty line included; nothing if they do not say one."""
    headers: HeaderLines


class HeadCache:
    """See the module's docstring."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        """Know none."""
        self._known: dict[bytes, _Lines] = {}

    def recognise(self, data: bytes) -> tuple[Head, bytes] | None:
        """Return the head and the body of what has come, None if it has to be parsed; nothing may be half parsed."""
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
        """Keep the header lines of a request, if they are usual ones and it was all that came."""
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
