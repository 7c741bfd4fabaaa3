"""The headers that a proxy removes, adds and rewrites.

Source: Go's `net/http/httputil` (`ReverseProxy`), and apimachinery `pkg/util/proxy/transport.go`.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple
from urllib.parse import quote, unquote, urlsplit

from ctrlmgr.http.framing import Header

_HOP: Final = frozenset(
    {
        b"connection",
        b"proxy-connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
"""Headers that apply to a single connection (`hopHeaders` in Go)."""
_CORS: Final = frozenset(
    b"access-control-allow-" + each for each in (b"credentials", b"headers", b"methods", b"origin")
)
"""Response headers for cross-origin access, which allow scripts of other sites to read the response.

The proxy removes these headers, because browsers would apply them to this whole server.
"""
_IN_PATHS: Final = "/$&+,:;=@-_.~"
"""Characters that Go never escapes in a URL path."""
_VALID: Final = re.compile(r"(?:[A-Za-z0-9$&+,/:;=@\-_.~!'()*\[\]]|%[0-9A-Fa-f]{2})*")
"""Matches the URL paths that Go does not escape again (`validEncoded`)."""
_FORWARDED: Final = frozenset({b"x-forwarded-uri", b"x-forwarded-host", b"x-forwarded-proto"})


def escaped(path: str) -> str:
    """Return a URL path with escapes, as Go's `URL.EscapedPath` does."""
    return quote(path, safe=_IN_PATHS)


def is_upgrade(headers: Iterable[Header]) -> bool:
    """Return whether a request is an upgrade request (apimachinery `httpstream.IsUpgradeRequest`)."""
    return any(name == b"connection" and b"upgrade" in value.lower() for name, value in headers)


def without_hops(headers: Iterable[Header]) -> list[Header]:
    """Return the headers, except those that apply to a single connection or that the header `Connection` names."""
    headers = list(headers)
    named = {
        each.strip().lower() for name, value in headers if name == b"connection" for each in value.split(b",", 1000)
    }
    dropped = _HOP | named
    return [header for header in headers if header[0] not in dropped]


def forwarded_for(headers: Iterable[Header], peer: str) -> list[Header]:
    """Return the headers, with the client's address added at the end of X-Forwarded-For."""
    headers = list(headers)
    if not peer:
        return headers
    before = [value for name, value in headers if name == b"x-forwarded-for"]
    others = [header for header in headers if header[0] != b"x-forwarded-for"]
    return [*others, (b"x-forwarded-for", b", ".join([*before, peer.encode()]))]


class ExternalAddress(NamedTuple):
    """The address at which clients reach the other server; links of the other server are rewritten to this address."""

    scheme: str = ""
    host: str = ""
    """The host and port to which clients send requests."""
    prefix: str = ""
    """The prefix that clients put before the other server's paths."""

    def forwarded(self, headers: Iterable[Header], path: str) -> list[Header]:
        """Add X-Forwarded-Uri, -Host and -Proto to a request's headers; `path` is the path for the other server."""
        uri = posixpath.normpath(posixpath.join("/", self.prefix.lstrip("/"), path.lstrip("/")))
        uri += "/" if path.endswith("/") and not uri.endswith("/") else ""
        kept = [header for header in headers if header[0] not in _FORWARDED]
        kept.append((b"x-forwarded-uri", uri.encode()))
        more = ((b"x-forwarded-host", self.host), (b"x-forwarded-proto", self.scheme))
        return kept + [(name, value.encode()) for name, value in more if value]

    def rewritten(self, link: str, inside: str, host: str) -> str:
        """Return a link of the other server, rewritten so that clients can use it.

        `inside` is the other server's host and port, and `host` is the Host header that the other server received.
        """
        try:
            url = urlsplit(link)
        except ValueError:
            return link
        kept = url.path if _VALID.fullmatch(url.path) else escaped(unquote(url.path))
        is_other = url.netloc not in ("", inside, host)
        if is_other or not url.path.startswith("/"):
            return link if kept == url.path else url._replace(path=kept).geturl()
        if not (url.netloc == host and not self.scheme and not self.host):
            url = url._replace(scheme=self.scheme, netloc=self.host)
        path = unquote(url.path)
        if path.startswith(self.prefix):
            return url._replace(path=kept).geturl()
        joined = posixpath.normpath(f"{self.prefix}/{path}")
        joined += "/" if path.endswith("/") and not joined.endswith("/") else ""
        return url._replace(path=escaped(joined)).geturl()


def without_cors(headers: Iterable[Header]) -> list[Header]:
    """Return the headers of a response, without headers that allow scripts of other sites to read the response."""
    return [header for header in headers if header[0] not in _CORS]


def with_location(headers: Sequence[Header], outside: ExternalAddress, inside: str, host: str) -> list[Header]:
    """Return the headers of a response, with a rewritten Location."""
    return [
        (name, outside.rewritten(value.decode("latin-1"), inside, host).encode("latin-1", "replace"))
        if name == b"location"
        else (name, value)
        for name, value in headers
    ]
