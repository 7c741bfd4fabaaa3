"""Rewrites the links in an HTML body, which may be compressed.

Guarantees: the body is decompressed in parts of at most `_PART` bytes, so a small body that expands to a large one
needs little memory. A body in an unknown encoding is not changed.

Source: apimachinery `pkg/util/proxy/transport.go` (`rewriteResponse`).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Final

from ctrlmgr.http.proxying.html_links import LinkRewriter
from ctrlmgr.http.proxying.upstream_address import UpstreamMalformed
from ctrlmgr.http.proxying.upstream_connection import ResponseHead

_ENCODINGS: Final = {b"gzip": 31, b"deflate": -15}
"""The `wbits` argument of zlib for each encoding; as in Go, `deflate` has no zlib header."""
_PART: Final = 64 * 1024
_BODILESS: Final = frozenset({204, 304})


def is_rewritable(head: ResponseHead) -> bool:
    """Return whether links in a response can be rewritten: it is HTML in a known encoding, and not a redirect."""
    kind = head.header(b"content-type").partition(b";")[0].strip()
    is_known = head.header(b"content-encoding") in (b"", *_ENCODINGS)
    return kind == b"text/html" and is_known and head.code not in _BODILESS and not head.header(b"location")


class HtmlBody:
    """The body of one HTML response whose links are rewritten."""

    def __init__(self, head: ResponseHead, rewrite: Callable[[str], str]) -> None:
        """Replace each URL in the body with the result of `rewrite`; `head` names the body's compression."""
        window = _ENCODINGS.get(head.header(b"content-encoding"))
        self._links = LinkRewriter(rewrite)
        self._decoder = None if window is None else zlib.decompressobj(window)
        self._encoder = None if window is None else zlib.compressobj(wbits=window)

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Yield the next rewritten parts of the body, given more input.

        Raises `UpstreamMalformed` if decompression fails.
        """
        if self._decoder is None:
            yield self._links.feed(piece)
            return
        while piece:
            try:
                decoded = self._decoder.decompress(piece, _PART)
            except zlib.error as error:
                raise UpstreamMalformed(str(error)) from error
            piece = self._decoder.unconsumed_tail
            yield self._encoded(self._links.feed(decoded))

    def end(self) -> bytes:
        """Return the rest of the body; raises `UpstreamMalformed` if the body is incomplete."""
        if self._decoder is None or self._encoder is None:
            return self._links.end()
        if not self._decoder.eof:
            raise UpstreamMalformed("unexpected EOF")
        return self._encoded(self._links.end()) + self._encoder.flush()

    def _encoded(self, data: bytes) -> bytes:
        return data if self._encoder is None else self._encoder.compress(data)
