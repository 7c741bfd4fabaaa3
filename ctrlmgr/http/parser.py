"""Parses the HTTP/1.1 requests of one connection, without doing I/O.

Guarantees:
- The parser refuses ambiguous lengths, bare line feeds and white space before a colon (llhttp's strict mode), and
  requests without exactly one Host header (RFC 9112, section 3.2).
- The bytes and headers of a head are limited. The bytes of a chunked body's framing are limited, too. Trailers count
  towards the limit, but are not passed on as headers.
- The work is linear in the number of received bytes, even if these arrive in small pieces.
- If a request has the same header lines as an earlier request, the lines are not parsed again (`head_cache`). The
  application receives the same request in both cases.
"""

from __future__ import annotations

from typing import Protocol

import httptools

from ctrlmgr.authentication.header_lines import HeaderLines
from ctrlmgr.http.head_cache import HeadCache
from ctrlmgr.http.request_head import (
    BAD_REQUEST,
    END,
    EXPECTATION_FAILED,
    NOT_IMPLEMENTED,
    TOO_LARGE,
    UNKNOWN_VERSION,
    Head,
    Malformed,
    check_host,
    read_target,
)
from ctrlmgr.http.size_limits import Bounds


class Sink(Protocol):
    """Receives requests from the parser; `RequestParser.feed` calls these methods."""

    def on_head(self, head: Head) -> None:
        """Receive the head of a request."""

    def on_body(self, piece: bytes) -> None:
        """Receive a part of the request's body."""

    def on_end(self) -> None:
        """Record that the request is complete."""


class RequestParser:
    """Parses the requests of one connection."""

    __slots__ = (
        "_bounds",
        "_content",
        "_count",
        "_excess",
        "_head",
        "_head_cache",
        "_head_size",
        "_headers",
        "_held",
        "_is_new",
        "_parser",
        "_refusal",
        "_sink",
        "_tail",
        "_trailers",
        "_url",
        "has_ended",
        "in_body",
        "in_head",
        "is_closed",
        "is_over",
        "rest",
    )

    def __init__(self, sink: Sink, bounds: Bounds) -> None:
        """Create a parser that passes requests to `sink`."""
        self.in_head = True
        """Whether the next input must be a head: no request has arrived yet, or a head is incomplete."""
        self.in_body = False
        """Whether a body is incomplete."""
        self.has_ended = False
        """Whether the last input completed a request."""
        self.is_over = False
        """Whether an upgrade request was received, after which further input is not parsed but added to `rest`."""
        self.is_closed = False
        """Whether the connection is closed."""
        self.rest = b""
        """The bytes after an upgrade request, which belong to the other protocol."""
        self._sink = sink
        self._bounds = bounds
        self._refusal: Malformed | None = None
        self._url = bytearray()
        self._headers = HeaderLines()
        self._head: Head | None = None  # the head that was parsed last
        self._count = 0
        self._is_new = False  # whether the current message began with the last input
        self._head_size = 0  # number of parsed bytes of an incomplete head
        self._held = bytearray()  # unparsed bytes of an incomplete head
        self._tail = b""  # the last parsed bytes
        self._content = 0  # number of bytes of content in the current input
        self._excess = 0  # number of bytes of a chunked body beyond content and required framing
        self._trailers = 0
        self._head_cache = HeadCache()
        self._parser = httptools.HttpRequestParser(self)
        # The parser also reports requests that follow a request with `Connection: close`; the connection drops these.
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)

    def feed(self, data: bytes) -> None:
        """Parse input; raises `Malformed` if it is not valid HTTP.

        After `Malformed` was raised, the parser must not be called again.
        """
        self.has_ended = False
        if self.is_over:
            self.rest += data
            return
        if self._recognise(data):
            return
        if self._head_size:
            data = self._coalesced(data)
            if not data:
                return
        was_in_body, self._content, self._is_new = self.in_body, 0, False
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self.is_over, self.rest = True, data[upgrade.args[0] :]
        except httptools.HttpParserError as error:
            raise self._why() from error
        self._account(data, was_in_body)
        if self._is_new and not was_in_body and self.has_ended and self._head is not None:
            self._head_cache.remember(data, self._head)

    def close(self) -> None:
        """Drop the references that form reference cycles, and ignore further input."""
        if not self.is_closed:
            self.is_over = self.is_closed = True
            del self._parser, self._sink

    # httptools calls the following methods.

    def on_message_begin(self) -> None:
        """Begin to parse a request."""
        self._url = bytearray()
        self._headers = HeaderLines()
        self._count = self._trailers = self._excess = 0
        self.in_head = self._is_new = True

    def on_url(self, url: bytes) -> None:
        """Add a part of the request's target."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header, or count a trailer."""
        if self.in_body:
            self._trailers += len(name) + len(value) + 4
            if self._trailers > self._bounds.framing_bytes:
                raise self._refused(BAD_REQUEST)
            return
        self._count += 1
        if self._count > self._bounds.header_count:
            raise self._refused(TOO_LARGE)
        self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """Pass the head to the sink."""
        if self._length() > self._bounds.head_bytes:
            raise self._refused(TOO_LARGE)
        head = self._head = self._read()
        self.in_head, self.in_body, self._head_size = False, True, 0
        try:
            self._sink.on_head(head)
        except Malformed as error:
            self._refusal = error
            raise

    def on_body(self, piece: bytes) -> None:
        """Pass a part of the body to the sink."""
        self._content += len(piece)
        self._sink.on_body(piece)

    def on_chunk_header(self) -> None:
        """Do not count 16 bytes of a chunk's framing towards the limit, as in net/http."""
        self._content += 16

    def on_message_complete(self) -> None:
        """Pass the end of the request to the sink."""
        self.in_body = False
        self.has_ended = True
        self._sink.on_end()

    # The head.

    def _read(self) -> Head:
        """Return the head that was received; raises `Malformed` if the head is invalid."""
        parser = self._parser
        version = parser.get_http_version()
        if version not in ("1.1", "1.0"):
            raise self._refused(UNKNOWN_VERSION)
        hosts, codings, expectation, length = [], [], b"", None
        for name, value in self._headers:
            if name == b"host":
                hosts.append(value.strip(b"\t "))
            elif name == b"transfer-encoding":
                codings.append(value.strip(b"\t ").lower())
            elif name == b"expect":
                expectation = value.lower()
            elif name == b"content-length":
                length = int(value)
        if codings not in ([], [b"chunked"]):
            raise self._refused(NOT_IMPLEMENTED)
        if len(hosts) != 1 and (hosts or version == "1.1"):
            raise self._refused(BAD_REQUEST)
        if expectation not in (b"", b"100-continue"):
            raise self._refused(EXPECTATION_FAILED)
        try:
            for host in hosts:
                check_host(host)
            path, query = read_target(bytes(self._url))
        except Malformed as error:
            self._refusal = error
            raise
        upgrades = version == "1.1" and parser.should_upgrade()
        keep_alive = version == "1.1" and parser.should_keep_alive() and not upgrades
        expects = bool(expectation) and version == "1.1"
        headers = self._headers
        if length is not None:
            headers = HeaderLines(line for line in headers if line[0] != b"content-length")
        method = parser.get_method().decode("ascii")
        return Head(method, path, query, headers, version, length, keep_alive, expects, upgrades)

    def _length(self) -> int:
        return len(self._url) + sum([len(name) + len(value) + 4 for name, value in self._headers])

    # Limits.

    def _coalesced(self, data: bytes) -> bytes:
        """Collect the pieces of a head, and return the input that the parser should get now.

        The result is empty until the head is complete, or its size has doubled since the last result. Small pieces are
        joined because the parser copies the value of a header for each piece of the header. If each byte were parsed
        separately, the time would be quadratic.
        """
        held = self._held
        begins = max(len(held) - len(END), 0)
        held += data
        complete = held.find(END, begins) >= 0 or END in self._tail + bytes(held[: len(END)])
        if not complete and len(held) <= min(self._head_size, self._bounds.head_bytes - self._head_size):
            return b""
        data = bytes(held)
        held.clear()
        return data

    def _account(self, data: bytes, was_in_body: bool) -> None:
        """Raise `Malformed` if an incomplete head or body exceeds its limits."""
        if self.in_head:
            # The module knows the position of the head in the input only if the input contains nothing else.
            self._head_size += self._length() if was_in_body or self.has_ended else len(data)
            self._tail = (self._tail + data)[-len(END) + 1 :]
            if self._head_size > self._bounds.head_bytes:
                raise Malformed(TOO_LARGE)
        elif self.in_body and was_in_body and not self._is_new:
            self._excess = max(self._excess + len(data) - 2 * self._content, 0)
            if self._excess > self._bounds.framing_bytes:
                raise Malformed(BAD_REQUEST)

    def _refused(self, status: str) -> Malformed:
        """Store the error `Malformed`, because httptools raises its own error instead."""
        self._refusal = Malformed(status)
        return self._refusal

    def _why(self) -> Malformed:
        if self._refusal is not None:
            return self._refusal
        return Malformed(TOO_LARGE if self.in_head and self._length() > self._bounds.head_bytes else BAD_REQUEST)

    # Requests with cached header lines.

    def _recognise(self, data: bytes) -> bool:
        """If the input is a request with cached header lines, pass the request to the sink.

        Return whether the input is such a request.
        """
        if self.in_head or self.in_body:
            return False
        known = self._head_cache.recognise(data)
        if known is None:
            return False
        head, body = known
        self._sink.on_head(head)
        if body:
            self._sink.on_body(body)
        self.has_ended = True
        self._sink.on_end()
        return True
