"""Reads and writes header blocks of HTTP/2 (RFC 9113, section 8.3; RFC 7541).

Guarantees:
- Ambiguous header blocks are refused, as the HTTP/1.1 parser refuses ambiguous heads. Required pseudo headers must
  appear exactly once. Names and values must not contain line breaks, and connection-specific fields are refused.
- The bytes and headers of a head are limited; a head with more than twice the allowed headers ends the connection. The
  work is linear in the number of bytes, because this module finds the fields and passes each field separately to the
  decoding library.
- The server's settings forbid clients to use a dynamic table (RFC 7541, section 4.2), so equal fields have equal bytes.
  Therefore the fields before and after a request's path are decoded once per connection, and later requests share the
  result. A repeated block is not decoded again. Until a client has acknowledged this setting, every block is decoded.
- The server's responses use no dynamic table either, so equal headers are encoded as equal bytes for every client.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from hpack import Decoder, HPACKError

from ctrlmgr.authentication.header_lines import HeaderLine, HeaderLines
from ctrlmgr.caches import BoundedCache
from ctrlmgr.caches.memoized import memoized
from ctrlmgr.http.http2.frames import Code, ConnectionFault, StreamFault
from ctrlmgr.http.http2.huffman import decoded
from ctrlmgr.http.request_head import (
    BAD_REQUEST,
    EXPECTATION_FAILED,
    TOO_LARGE,
    Head,
    Malformed,
    check_host,
    read_target,
)
from ctrlmgr.http.size_limits import Bounds

_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9a-z]+")
_VALUE = re.compile(rb"(?![\t ])[\t\x20-\x7e\x80-\xff]*(?<![\t ])")
_OF_CONNECTIONS = frozenset({b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"})
_SCHEMES = frozenset({b"http", b"https"})
_PSEUDO = frozenset({b":method", b":scheme", b":authority", b":path"})

_LONGEST = 2048
"""Maximum size of a cached block, in bytes."""
_MOST = 128
"""Maximum number of cached blocks per connection; a cached block is stored without its path.

Several blocks are cached because Go's clients vary the order of headers.
"""
_MOST_BEGINNINGS = 16
"""Maximum number of cached block beginnings (the bytes before the path) per connection; a client has few of these."""
_MOST_WHOLE = 32
"""Maximum number of whole blocks that are cached per connection, for repeated requests."""
_MOST_REMEMBERED = 8
"""Maximum number of headers of a cached response block; blocks with more headers, such as many warnings, rarely repeat.
"""
_UPDATE = 0x20
"""The first bits of a field that sets the size of the dynamic table."""
_PATHS: Final = frozenset({0x04, 0x05, 0x14, 0x15, 0x44, 0x45})
"""The possible first bytes of a literal `:path` field.

The static table contains the name `:path` twice, and there are three kinds of literal fields.
"""
_PIECE: Final = 64
"""Decoding this number of bytes takes as long as decoding a short field."""
_LONGEST_NUMBER = 5
"""Maximum number of bytes of an encoded number."""
_SHORT: Final = [bytes((size,)) for size in range(0x7F)]
"""The encoded lengths of strings, for all lengths that are encoded in one byte."""
_STATUSES = {200: b"\x88", 204: b"\x89", 206: b"\x8a", 304: b"\x8b", 400: b"\x8c", 404: b"\x8d", 500: b"\x8e"}
"""The encodings of the `:status` fields that the static table contains (RFC 7541, appendix A)."""


class _RequestFields(NamedTuple):
    """The fields of a request, without its path."""

    method: str
    headers: HeaderLines
    length: int | None
    expects_continue: bool

    def head(self, target: bytes) -> Head:
        """Return the head of a request with these fields and the path `target`.

        Raises `Malformed` if they are not a valid request.
        """
        path, query = read_target(target)
        return Head(self.method, path, query, self.headers, "2", self.length, True, self.expects_continue)


class BlockReader:
    """Reads the header blocks of one connection, in order."""

    __slots__ = ("_around", "_beginnings", "_bounds", "_decoder", "_heads", "_largest_table", "work")

    def __init__(self, bounds: Bounds) -> None:
        """Enforce `bounds`."""
        self.work = 0
        """The decoding work so far, measured as the number of fields plus the number of pieces of `_PIECE` bytes."""
        self._bounds = bounds
        self._decoder = Decoder(2 * bounds.head_bytes)  # a block within the bounds never exceeds this size
        self._largest_table = self._decoder.max_allowed_table_size
        # The cached block beginnings, the latest first, and the decoded fields by the beginning and the end of a block.
        self._beginnings: tuple[bytes, ...] = ()
        self._around: BoundedCache[tuple[bytes, bytes], _RequestFields] = BoundedCache(
            "http2-headers", entries=_MOST, largest=_LONGEST
        )
        self._heads: BoundedCache[bytes, Head] = BoundedCache("http2-heads", entries=_MOST_WHOLE, largest=_LONGEST)

    def read(self, block: bytes) -> Head:
        """Return the head of a request.

        Raises `Malformed` for an error with an HTTP status, `StreamFault` if the request is invalid, and
        `ConnectionFault` if later blocks cannot be decoded.
        """
        try:
            return self._recognised(block) or self._read(block)
        except HPACKError as error:
            raise ConnectionFault(Code.COMPRESSION_ERROR, f"the header block cannot be decoded: {error}") from error

    def skip(self, block: bytes) -> bool:
        """Decode a block of trailers; return whether it contains a pseudo header. Raises the same errors as `read`."""
        try:
            return b":" in {name[:1] for name, _ in self._decoded(block)}
        except Malformed as error:
            raise StreamFault(Code.PROTOCOL_ERROR, "the trailers are too large") from error
        except HPACKError as error:
            raise ConnectionFault(Code.COMPRESSION_ERROR, f"the trailers cannot be decoded: {error}") from error

    def limit_table(self) -> None:
        """Record that the client has acknowledged the setting which forbids a dynamic table (RFC 7541, section 4.2).

        The blocks of a client that ignores the setting are still decoded. A client that sets a table size other than
        zero is refused.
        """
        self._largest_table = 0

    def _recognised(self, block: bytes) -> Head | None:
        """Return the head of a request whose block is cached, as a whole or without its path."""
        if self._decoder.header_table_size:
            return None  # with a dynamic table, equal bytes can encode different fields
        head = self._heads.get(block)
        if head is None:
            head = self._recognised_around(block)
            if head is not None:
                self._heads.put(block, head, len(block))
        return head

    def _recognised_around(self, block: bytes) -> Head | None:
        """Return the head of a request whose fields are cached, except for the path."""
        for before in self._beginnings:
            if block.startswith(before):
                size, begins = _number(block, len(before), 7)
                ends = begins + size
                around = self._around.get((before, block[ends:]))
                if around is None or ends > len(block):
                    break
                target = block[begins:ends]
                return around.head(decoded(target) if block[len(before)] & 0x80 else target)
        return None

    def _read(self, block: bytes) -> Head:
        """Decode a whole block, and cache its fields before and after the path."""
        has_table = bool(self._decoder.header_table_size)
        pseudo: dict[bytes, bytes] = {}
        lines: list[HeaderLine] = []
        for name, value in self._decoded(block):
            if name in _PSEUDO and name not in pseudo and not lines:
                pseudo[name] = value
            else:
                lines.append((name, value))
        method, target = pseudo.get(b":method", b""), pseudo.get(b":path", b"")
        if not target or pseudo.get(b":scheme") not in _SCHEMES or not (method.isalpha() and method.isascii()):
            raise StreamFault(Code.PROTOCOL_ERROR, "the request has no valid :method, :scheme or :path")
        if not all(map(_VALUE.fullmatch, pseudo.values())):
            raise StreamFault(Code.PROTOCOL_ERROR, "a pseudo-header has an invalid value")
        around = _around(method.decode(), lines, pseudo.get(b":authority"))
        if not has_table:
            self._remember(block, around)
        return around.head(target)

    def _remember(self, block: bytes, around: _RequestFields) -> None:
        """Cache the fields of a block before and after its path, if the path is a literal."""
        if block[0] & 0xE0 == _UPDATE:
            return
        for begins, ends in _spans(block):
            if block[begins] in _PATHS:
                before, after = block[: begins + 1], block[ends:]
                self._around.put((before, after), around, len(before) + len(after))
                if before not in self._beginnings and len(before) <= _LONGEST:
                    self._beginnings = (before, *self._beginnings[: _MOST_BEGINNINGS - 1])
                return

    def _decoded(self, block: bytes) -> Iterator[HeaderLine]:
        """Yield the fields of a header block; raises `Malformed` if the block has too many fields.

        All fields are decoded, so that the dynamic table stays equal to the client's table.
        """
        count = size = 0
        self.work += len(block) // _PIECE
        for begins, ends in _spans(block):
            if count > 2 * self._bounds.header_count:  # decoding the rest of the block would take too long
                raise ConnectionFault(Code.ENHANCE_YOUR_CALM, "the header block has too many fields")
            if block[begins] & 0xE0 == _UPDATE:
                self._check_update(block, begins, count)
            for name, value in self._decoder.decode(block[begins:ends], raw=True):
                count += 1
                self.work += 1
                size += len(name) + len(value) + 4
                if count <= self._bounds.header_count and size <= self._bounds.head_bytes:
                    yield bytes(name), bytes(value)
        if count > self._bounds.header_count or size > self._bounds.head_bytes:
            raise Malformed(TOO_LARGE)

    def _check_update(self, block: bytes, begins: int, count: int) -> None:
        """Raise `ConnectionFault` if a block sets the dynamic table's size after a field, or beyond the limit."""
        if count:
            raise ConnectionFault(Code.COMPRESSION_ERROR, "table size update after the first header field")
        if _number(block, begins, 5)[0] > self._largest_table:  # RFC 7541, section 6.3
            raise ConnectionFault(Code.COMPRESSION_ERROR, "dynamic table size exceeds the server's maximum")


def _around(method: str, lines: Sequence[HeaderLine], authority: bytes | None) -> _RequestFields:
    """Return the headers of a request, in order, without pseudo headers.

    Raises the same errors as `BlockReader.read`.
    """
    kept, cookies = HeaderLines(), []
    hosts, expectation, length = [] if authority is None else [authority], b"", None
    for name, value in lines:
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            raise StreamFault(Code.PROTOCOL_ERROR, f"the header field {name!r} is not valid")
        if name in _OF_CONNECTIONS or (name == b"te" and value != b"trailers"):
            raise StreamFault(Code.PROTOCOL_ERROR, f"connection-specific header field: {name.decode()}")
        match name:
            case b"host":
                if authority is None:
                    hosts.append(value)
                continue
            case b"cookie":
                cookies.append(value)
                continue
            case b"content-length":
                if length is not None or not value.isdigit() or len(value) > 18:
                    raise StreamFault(Code.PROTOCOL_ERROR, "the content-length is not valid")
                length = int(value)
                continue
            case b"expect":
                expectation = value.lower()
        kept.append((name, value))
    if len(hosts) != 1:
        raise Malformed(BAD_REQUEST)
    check_host(hosts[0])
    if expectation not in (b"", b"100-continue"):
        raise Malformed(EXPECTATION_FAILED)
    if cookies:  # a client may send cookies separately (RFC 9113, section 8.2.3)
        kept.append((b"cookie", b"; ".join(cookies)))
    kept.insert(0, (b"host", hosts[0]))
    return _RequestFields(method, kept, length, bool(expectation))


def _spans(block: bytes) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each field of a block; raises `HPACKError` if the block is malformed."""
    at = 0
    while at < len(block):
        ends = _end(block, at)
        yield at, ends
        at = ends


def _end(block: bytes, at: int) -> int:
    """Return the position after the field that starts at a position (RFC 7541, section 6)."""
    first = block[at]
    if first & 0x80:
        return _number(block, at, 7)[1]
    if first & 0xE0 == _UPDATE:
        return _number(block, at, 5)[1]
    index, ends = _number(block, at, 6 if first & 0x40 else 4)
    for _ in range(1 if index else 2):
        size, ends = _number(block, ends, 7)
        ends += size
    if ends > len(block):
        raise HPACKError("truncated header field")
    return ends


def _number(block: bytes, at: int, bits: int) -> tuple[int, int]:
    """Return the encoded number at a position, and the position after it (RFC 7541, section 5.1)."""
    most = (1 << bits) - 1
    if at >= len(block):
        raise HPACKError("missing integer")
    value = block[at] & most
    at += 1
    if value < most:
        return value, at
    for shift in range(0, 7 * _LONGEST_NUMBER, 7):
        if at >= len(block):
            break
        byte = block[at]
        at += 1
        value += (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise HPACKError("integer too large or truncated")


def written(
    code: int,
    date: HeaderLine,
    headers: Sequence[HeaderLine],
    *,
    own: HeaderLine | None = None,
    length: int | None = None,
) -> bytes:
    """Return the header block of a response; `own` is a header that differs in each response."""
    block = _status(code) + _dated(date) + _lines(tuple(headers))
    if own is not None:
        block += _literal(own)
    if length is not None:
        block += _length(length)
    return block


@lru_cache(maxsize=1024)
def _length(length: int) -> bytes:
    return b"\x0f\x0d" + _text(b"%d" % length)


@lru_cache(maxsize=4)
def _dated(date: HeaderLine) -> bytes:
    return _literal(date)


@memoized(entries=256, longest=_MOST_REMEMBERED)
def _lines(headers: tuple[HeaderLine, ...]) -> bytes:
    return b"".join(map(_literal, headers))


def _status(code: int) -> bytes:
    known = _STATUSES.get(code)
    return known if known is not None else b"\x08" + _text(b"%d" % code)


def _literal(line: HeaderLine) -> bytes:
    name, value = line
    if b"\n" in value or b"\r" in value or b"\0" in value:
        raise ValueError(f"a header of the answer has a line break in it: {line}")
    return b"\0" + _text(name) + _text(value)


def _text(text: bytes) -> bytes:
    """Return a literal string with its length (RFC 7541, section 5.2)."""
    size = len(text)
    if size < 0x7F:
        return _SHORT[size] + text
    left, number = size - 0x7F, bytearray(b"\x7f")
    while left >= 0x80:
        number.append(left & 0x7F | 0x80)
        left >>= 7
    number.append(left)
    return bytes(number) + text
