"""The headers that a proxy removes, adds and rewrites.

Rules: Go's `net/http/httputil` (`ReverseProxy`), and apimachinery `pkg/util/proxy/transport.go`.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple
from urllib.parse import urlsplit

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
"""Headers that are about one connection (`hopHeaders`)."""
_FORWARDED: Final = frozenset({b"x-forwarded-uri", b"x-forwarded-host", b"x-forwarded-proto"})


def is_upgrade(headers: Iterable[Header]) -> bool:
    """Return whether a request asks for an upgrade (apimachinery `httpstream.IsUpgradeRequest`)."""
    return any(name == b"connection" and b"upgrade" in value.lower() for name, value in headers)


def without_hops(headers: Iterable[Header]) -> list[Header]:
    """Return the headers without those about one connection, and without those that `Connection` names."""
    headers = list(headers)
    named = {
        each.strip().lower() for name, value in headers if name == b"connection" for each in value.split(b",", 1000)
    }
    dropped = _HOP | named
    return [header for header in headers if header[0] not in dropped]


def forwarded_for(headers: Iterable[Header], peer: str) -> list[Header]:
    """Return the headers with the client's address at the end of X-Forwarded-For."""
    headers = list(headers)
    if not peer:
        return headers
    before = [value for name, value in headers if name == b"x-forwarded-for"]
    others = [header for header in headers if header[0] != b"x-forwarded-for"]
    return [*others, (b"x-forwarded-for", b", ".join([*before, peer.encode()]))]


class Outside(NamedTuple):
    """How clients see the other server: the address that its links are rewritten to."""

    scheme: str = ""
    host: str = ""
    """The host and port."""
    prefix: str = ""
    """The path in front of the other server's paths."""

    def forwarded(self, headers: Iterable[Header], path: str) -> list[Header]:
        """Return the headers of a request with X-Forwarded-Uri, -Host and -Proto; `path` is the other server's."""
        uri = posixpath.normpath(posixpath.join("/", self.prefix.lstrip("/"), path.lstrip("/")))
        uri += "/" if path.endswith("/") and not uri.endswith("/") else ""
        kept = [header for header in headers if header[0] not in _FORWARDED]
        kept.append((b"x-forwarded-uri", uri.encode()))
        more = ((b"x-forwarded-host", self.host), (b"x-forwarded-proto", self.scheme))
        return kept + [(name, value.encode()) for name, value in more if value]

    def rewritten(self, location: str, inside: str, asked: str) -> str:
        """Return a Location header as clients can use it.

        `inside` is the other server's host and port, `asked` the Host header that it received.
        """
        try:
            url = urlsplit(location)
        except ValueError:
            return location
        is_other = url.netloc not in ("", inside, asked)
        if is_other or not url.path.startswith("/"):
            return location
        if not (url.netloc == asked and not self.scheme and not self.host):
            url = url._replace(scheme=self.scheme, netloc=self.host)
        if url.path.startswith(self.prefix):
            return url.geturl()
        path = posixpath.normpath(f"{self.prefix}/{url.path}")
        path += "/" if url.path.endswith("/") and not path.endswith("/") else ""
        return url._replace(path=path).geturl()


def with_location(headers: Sequence[Header], outside: Outside, inside: str, asked: str) -> list[Header]:
    """Return the headers of an answer with a rewritten Location."""
    return [
        (name, outside.rewritten(value.decode("latin-1"), inside, asked).encode("latin-1", "replace"))
        if name == b"location"
        else (name, value)
        for name, value in headers
    ]
