"""Reads the user that a trusted proxy names in its headers.

Guarantees: callers must trust these headers only if the client's certificate was issued by the proxy's authority and
contains an allowed name. If the headers contain no user name, the proxy has not authenticated the request.

Source: apiserver `pkg/authentication/request/headerrequest`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from ctrlmgr.authentication.bearer import Headers
from ctrlmgr.authentication.user import User


@dataclass(frozen=True, kw_only=True)
class RequestHeaders:
    """The names of the headers with the user's attributes.

    For the user name and the uid, the first configured header that has a value is used. For groups and extra fields,
    the values of all headers are used.
    """

    username: tuple[str, ...] = ()
    uid: tuple[str, ...] = ()
    group: tuple[str, ...] = ()
    extra_prefix: tuple[str, ...] = ()

    def user(self, headers: Headers) -> User | None:
        """Return the user that the headers name, or None if the headers name no user."""
        name = _first(headers, self.username)
        if not name:
            return None
        return User(name, _first(headers, self.uid), tuple(_all(headers, self.group)), self._extra(headers))

    def _extra(self, headers: Headers) -> dict[str, tuple[str, ...]]:
        extra: dict[str, tuple[str, ...]] = {}
        for prefix in map(_encoded, self.extra_prefix):
            for name, value in headers:
                if name.startswith(prefix):
                    key = _key(name[len(prefix) :])
                    extra[key] = (*extra.get(key, ()), _text(value))
        return extra


def _first(headers: Headers, expected: Sequence[str]) -> str:
    """Return the value of the first header in `expected` that the request has.

    If the request has several lines of one header, the first line is used.
    """
    for each in map(_encoded, expected):
        value = next((value for name, value in headers if name == each), b"")
        if value:
            return _text(value)
    return ""


def _all(headers: Headers, expected: Sequence[str]) -> list[str]:
    return [_text(value) for each in map(_encoded, expected) for name, value in headers if name == each and value]


def _encoded(name: str) -> bytes:
    return name.lower().encode()


def _key(name: bytes) -> str:
    """Decode a percent-encoded key; if the encoding is invalid, return the key unchanged."""
    text = name.decode("latin-1")
    parts = text.split("%")[1:]
    is_escaped = all(len(part) >= 2 and all(each in "0123456789abcdef" for each in part[:2]) for part in parts)
    return unquote(text) if is_escaped else text


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")
