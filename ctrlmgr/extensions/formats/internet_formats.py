"""Formats of Internet identifiers: `uri`, `email`.

An email address is a string that Go's `net/mail` accepts (RFC 5322, with an optional display name).
"""

from __future__ import annotations

from ctrlmgr.golang.go_url import parse_request_uri
from ctrlmgr.regexp import TooMuchWork, compiled

_ATOM = r"[A-Za-z0-9!#$%&'*+\-/=?^_`{|}~\x{80}-\x{10ffff}]+"
_DOT_ATOM = rf"{_ATOM}(?:\.{_ATOM})*"
_QUOTED = r'"(?:[^"\\\r\n\x00-\x08\x0b-\x1f\x7f]|\\[^\x00-\x08\x0a-\x1f\x7f])*"'
_SPACE = r"[ \t]*"
_COMMENT = rf"{_SPACE}(?:\([^()]*\){_SPACE})*"
_LITERAL = r"\[[0-9A-Fa-f:.IPv]+\]"
_SPEC = rf"(?:{_DOT_ATOM}|{_QUOTED}){_SPACE}@{_SPACE}(?:{_DOT_ATOM}|{_LITERAL})"
_WORD = rf"(?:{_ATOM}(?:\.{_ATOM})*\.?|{_QUOTED})"
_address = compiled(rf"^{_COMMENT}(?:{_SPEC}|(?:{_WORD}{_SPACE})*<{_SPACE}{_SPEC}{_SPACE}>){_COMMENT}$")


def is_uri(text: str) -> bool:
    """Return whether a string is an absolute URI or an absolute path."""
    try:
        parse_request_uri(text)
    except ValueError:
        return False
    return True


def is_email(text: str) -> bool:
    """Return whether a string is one email address; False also if the parser needs too many steps."""
    try:
        return _address.search(text)
    except TooMuchWork:
        return False
