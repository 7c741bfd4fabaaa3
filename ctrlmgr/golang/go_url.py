"""Parses URLs as Go's `net/url` does, with Go's error messages.

Source: Go's `net/url/url.go`, `Parse` and `ParseRequestURI`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ctrlmgr.golang.go_text import quote

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+\-.]*)?:", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})", re.ASCII)
_BAD_HOST_ESCAPE = re.compile(r"%(?!25)(?:[0-7][0-9A-Fa-f])", re.ASCII)
_BAD_HOST = re.compile(r"""[^A-Za-z0-9\-_.~!$&'()*+,;=:\[\]<>"%\x80-\U0010ffff]""")
_PORT = re.compile(r"(:[0-9]*)?", re.ASCII)
_USER_INFO = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*", re.ASCII)


class Url(NamedTuple):
    """The parts of a URL; missing parts are empty."""

    scheme: str = ""
    user: str | None = None
    """The user information before the `@`; None if the URL has no `@`."""
    host: str = ""
    """The host and, if present, the port."""
    path: str = ""
    query: str = ""
    fragment: str = ""
    opaque: str = ""
    """The part after the scheme if that part does not start with a slash, as in `mailto:`."""


def parse(text: str) -> Url:
    """Return the parts of a URL or a relative reference; raises ValueError with Go's message for a malformed URL."""
    rest, _, fragment = text.partition("#")
    try:
        url = _parse(rest, is_request=False)
    except ValueError as error:
        raise ValueError(f"parse {quote(rest)}: {error}") from error
    try:
        _check_escapes(fragment)
    except ValueError as error:
        raise ValueError(f"parse {quote(text)}: {error}") from error
    return url._replace(fragment=fragment)


def parse_request_uri(text: str) -> Url:
    """Return the parts of an absolute URI or an absolute path.

    Raises ValueError with Go's message if the URI is malformed.
    """
    try:
        return _parse(text, is_request=True)
    except ValueError as error:
        raise ValueError(f"parse {quote(text)}: {error}") from error


def _parse(text: str, *, is_request: bool) -> Url:
    if _CONTROL.search(text):
        raise ValueError("net/url: invalid control character in URL")
    if not text and is_request:
        raise ValueError("empty url")
    if text == "*":
        return Url(path="*")
    scheme, rest = _split_scheme(text)
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return Url(scheme=scheme, opaque=rest, query=query)
        if is_request:
            raise ValueError("invalid URI for request")
        if ":" in rest.partition("/")[0]:
            raise ValueError("first path segment in URL cannot contain colon")
    user, host = None, ""
    if rest.startswith("//") and (scheme or (not is_request and not rest.startswith("///"))):
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
        user, host = _authority(authority)
    _check_escapes(rest)
    return Url(scheme=scheme, user=user, host=host, path=rest, query=query)


def _split_scheme(text: str) -> tuple[str, str]:
    match = _SCHEME.match(text)
    if match is None:
        return "", text
    if match[1] is None:
        raise ValueError("missing protocol scheme")
    return match[1].lower(), text[match.end() :]


def _authority(authority: str) -> tuple[str | None, str]:
    user, at, host = authority.rpartition("@")
    if not at:
        return None, _host(host)
    host = _host(host)
    if not _USER_INFO.fullmatch(user):
        raise ValueError("net/url: invalid userinfo")
    _check_escapes(user)
    return user, host


def _host(host: str) -> str:
    if host.startswith("["):
        end = host.rfind("]")
        if end < 0:
            raise ValueError("missing ']' in host")
        port = host[end + 1 :]
    else:
        colon = host.rfind(":")
        port = host[colon:] if colon >= 0 else ""
    if not _PORT.fullmatch(port):
        raise ValueError(f"invalid port {quote(port)} after host")
    if bad := _BAD_ESCAPE.search(host):
        raise ValueError(f"invalid URL escape {quote(host[bad.start() : bad.start() + 3])}")
    if bad := _BAD_HOST_ESCAPE.search(host):
        raise ValueError(f"invalid URL escape {quote(bad[0])}")
    if bad := _BAD_HOST.search(host):
        raise ValueError(f"invalid character {quote(bad[0])} in host name")
    return host


def _check_escapes(text: str) -> None:
    if bad := _BAD_ESCAPE.search(text):
        raise ValueError(f"invalid URL escape {quote(text[bad.start() : bad.start() + 3])}")
