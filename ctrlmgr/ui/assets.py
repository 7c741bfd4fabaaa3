"""The static files of the web page, which are read and compressed once.

Guarantees: a browser validates a cached file before each use (`ETag`, 304), so that a page never contains files of two
versions. The response headers forbid scripts from other sources, and forbid other pages to show this page in a frame.
"""

from __future__ import annotations

from importlib.resources import files

from ctrlmgr.http.framing import Header
from ctrlmgr.server.describe.document import Document, document
from ctrlmgr.server.presenting.responses import NO_SNIFFING, PAGE_NOT_FOUND, Response
from ctrlmgr.server.request import Request

INDEX = "index.html"

_TYPES = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}

SECURITY: tuple[Header, ...] = (
    NO_SNIFFING,
    (
        b"content-security-policy",
        b"default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'",
    ),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
)
"""The headers of every response: only the page's own scripts may run, and other sites receive no referrer."""

_ASK_AGAIN: Header = (b"cache-control", b"no-cache")
_VARY: Header = (b"vary", b"accept-encoding")


class Assets:
    """The static files of the page, by name."""

    def __init__(self) -> None:
        """Read and compress the static files."""
        self._documents = {
            file.name: document(_TYPES[file.name.rpartition(".")[2]], file.read_bytes())
            for file in files("ctrlmgr.ui").joinpath("static").iterdir()
            if file.name.rpartition(".")[2] in _TYPES
        }

    def answer(self, request: Request, name: str) -> Response:
        """Return a static file; 304 if the browser already has it, or 404 if it does not exist."""
        found = self._documents.get(name or INDEX)
        return PAGE_NOT_FOUND if found is None else _answer(request, found)


def _answer(request: Request, found: Document) -> Response:
    headers = [(b"etag", found.etag.encode()), _ASK_AGAIN, _VARY, *SECURITY]
    if found.etag.encode() in request.header(b"if-none-match"):
        return Response(304, b"", headers)
    headers.append((b"content-type", found.content_type.encode()))
    if found.gzipped is not None and request.accepts_gzip:
        return Response(200, found.gzipped, [*headers, (b"content-encoding", b"gzip")])
    return Response(200, found.body, headers)
