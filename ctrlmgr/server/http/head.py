"""The head of a request, and what its bytes may be."""

from __future__ import annotations

from typing import Final, NamedTuple

from ctrlmgr.api.header_lines import HeaderLines

END: Final = b"\r\n\r\n"
"""What ends a head."""
PATH: Final = rb"(/(?!/)[\w\-.~%!$&'()*+,;=:@/]*)(?:\?([\w\-.~%!$&'()*+,;=:@/?]*))?"
"""A path and a query that are what they seem to be: a regular expression."""


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
    length: int | None = None
    """The bytes of the body, as Content-Length says; None if it does not."""
    keep_alive: bool = True
    """Whether the client may send another request on this connection."""
    expects_continue: bool = False
    """Whether the client sends its body only when it is told to."""
