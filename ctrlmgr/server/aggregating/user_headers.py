"""Selects the client's headers that are forwarded, and creates the headers with which a front proxy names the user.

Guarantees: a client cannot set the headers that name the user. The client's credentials and impersonation headers are
not forwarded.

Source: client-go `transport/round_trippers.go` (`SetAuthProxyHeaders`), apiserver `pkg/endpoints/filters`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from ctrlmgr.authentication.user import User
from ctrlmgr.http.framing import Header

_EXTRA: Final = b"x-remote-extra-"
_DROPPED: Final = frozenset({b"authorization", b"host", b"x-remote-user", b"x-remote-uid", b"x-remote-group"})
_PREFIXES: Final = (_EXTRA, b"impersonate-")
_PROTOCOLS: Final = b"sec-websocket-protocol"
_BEARER: Final = b"base64url.bearer.authorization.k8s.io."
"""The prefix of a WebSocket subprotocol that contains a token (apiserver `request/websocket`)."""
_TOKEN: Final = frozenset(b"!#$&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
"""The characters that need not be escaped in a header's name (`legalHeaderByte`, without `%`)."""


def passed_headers(headers: Iterable[Header], user: User) -> Iterator[Header]:
    """Yield the client's headers that are forwarded, and the headers that name the client's user."""
    yield from without_credentials(headers)
    yield from user_headers(user)


def without_credentials(headers: Iterable[Header]) -> Iterator[Header]:
    """Yield the client's headers that every server may receive."""
    for name, value in headers:
        if name == _PROTOCOLS:
            value = _without_token(value)
            if not value:
                continue
        if name not in _DROPPED and not name.startswith(_PREFIXES):
            yield name, value


def user_headers(user: User) -> Iterator[Header]:
    """Yield the headers that name a user."""
    yield b"x-remote-user", _text(user.name)
    if user.uid:
        yield b"x-remote-uid", _text(user.uid)
    for group in user.groups:
        yield b"x-remote-group", _text(group)
    for key, values in user.extra.items():
        for value in values:
            yield _EXTRA + _escaped(key), _text(value)


def _without_token(protocols: bytes) -> bytes:
    kept = [each.strip() for each in protocols.split(b",", 1000) if not each.strip().startswith(_BEARER)]
    return b", ".join(kept)


def _escaped(key: str) -> bytes:
    """Escape the key of a user's extra field for a header's name (`headerKeyEscape`)."""
    return b"".join(bytes((each,)) if each in _TOKEN else b"%%%02X" % each for each in key.encode())


def _text(value: str) -> bytes:
    """Return a header's value with line breaks replaced by spaces, as Go writes it."""
    return value.encode("utf-8", "surrogateescape").replace(b"\r", b" ").replace(b"\n", b" ")
