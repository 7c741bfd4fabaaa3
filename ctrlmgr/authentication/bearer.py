"""Reads the bearer token of a request from its Authorization header, or from a web socket's subprotocols.

Guarantees: a header with another scheme, an empty header or an empty token does not count as a credential, so the
request is anonymous. If a request has several Authorization headers, the first one is used.

Source: apiserver `pkg/authentication/request/{bearertoken,websocket}`.
"""

from __future__ import annotations

import binascii
import re
from base64 import urlsafe_b64decode
from collections.abc import Sequence
from typing import TypeAlias

from ctrlmgr.authentication.header_lines import HeaderLine
from ctrlmgr.authentication.user import CredentialsRefused

Headers: TypeAlias = Sequence[HeaderLine]

EXTRA_SPACE = "the provided Authorization header contains extra space before the bearer token, and is ignored"
"""The warning for a client whose Authorization header is ignored because of extra spaces."""

_PROTOCOL = b"base64url.bearer.authorization.k8s.io."
_WEB_SOCKET = re.compile(rb"(?i)(?:^|.*,\s*)upgrade\s*(?:,.*)?$")
_BASE64 = re.compile(rb"[A-Za-z0-9_-]*")


def bearer_token(headers: Headers) -> tuple[str | None, str]:
    """Return the token in the Authorization header, and a warning for the client.

    The token is None if the header contains none. The warning is an empty string if there is nothing to warn about.
    """
    value = first_header(headers, b"authorization").strip()
    parts = value.split(b" ", 2)
    if len(parts) < 2 or parts[0].lower() != b"bearer":
        return None, ""
    if not parts[1]:
        return None, EXTRA_SPACE if len(parts) == 3 else ""
    return text(parts[1]), ""


def web_socket_token(headers: Headers) -> str | None:
    """Return the token in a web socket's subprotocols, or None if the subprotocols contain no token.

    Raises `CredentialsRefused` if a token is malformed, if the subprotocols contain two tokens, or if the client offers
    no subprotocol besides the token.
    """
    if not _is_web_socket(headers):
        return None
    token: bytes | None = None
    speaks = False
    for name, value in headers:
        for protocol in value.split(b",") if name == b"sec-websocket-protocol" else ():
            protocol = protocol.strip()
            if not protocol.startswith(_PROTOCOL):
                speaks = True
            elif token is not None:
                raise CredentialsRefused("multiple base64.bearer.authorization tokens specified")
            else:
                token = _decoded(protocol.removeprefix(_PROTOCOL))
    if not token:
        return None
    if not speaks:
        raise CredentialsRefused("missing additional subprotocol")
    return token.decode()


def first_header(headers: Headers, expected: bytes) -> bytes:
    """Return the value of the first header with the given name, or an empty string if no header has this name."""
    return next((value for name, value in headers if name == expected), b"")


def text(value: bytes) -> str:
    """Return a header's value as a string; bytes that are not UTF-8 are kept as surrogates."""
    return value.decode("utf-8", "surrogateescape")


def _is_web_socket(headers: Headers) -> bool:
    upgrade = first_header(headers, b"upgrade").strip().lower()
    return upgrade == b"websocket" and _WEB_SOCKET.match(first_header(headers, b"connection").strip()) is not None


def _decoded(encoded: bytes) -> bytes:
    try:
        if not _BASE64.fullmatch(encoded):
            raise ValueError(encoded)
        token = urlsafe_b64decode(encoded + b"=" * (-len(encoded) % 4))
    except (binascii.Error, ValueError):
        raise CredentialsRefused("invalid base64.bearer.authorization token encoding") from None
    try:
        token.decode()
    except UnicodeDecodeError:
        raise CredentialsRefused("invalid base64.bearer.authorization token") from None
    return token
