"""Header blocks of HTTP/2 (RFC 9113, section 8.3; RFC 7541): requests read from them, and answers written to them.

Guarantees:
- What could be read in two ways is refused, never guessed, as it is of HTTP/1.1: a field that must be there once is,
  names and values have no characters that an HTTP/1.1 message would end at, and no field speaks of the connection.
- A head is bounded in bytes and in headers; one of twice as many headers ends the connection. The work is linear in its
  bytes: fields are found here, and given to the library that decodes them one by one.
- Clients are asked to keep no table (RFC 7541, section 4.2), so that the same fields are the same bytes. What
  is around a request's path is then read once, however many requests of a connection it comes with, and they share what
  the application reads from it; a whole block that comes again soon is not read at all. Until a client complies, and if
  it never does, all of it is read.
- An answer refers to no table either: the same headers are the same bytes for every client.
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
from ctrlmgr.server.http.bounds import Bounds
from ctrlmgr.server.http.head import (
    BAD_REQUEST,
    EXPECTATION_FAILED,
    TOO_LARGE,
    Head,
    Malformed,
    check_host,
    read_target,
)
from ctrlmgr.server.http.http2.frames import Code, ConnectionFault, StreamFault
from ctrlmgr.server.http.http2.huffman import decoded

_NAME = re.compile(rb"[!#$%&'*+\-.^_`|~0-9a-z]+")
_VALUE = re.compile(rb"(?![\t ])[\t\x20-\x7e\x80-\xff]*(?<![\t ])")
_OF_CONNECTIONS = frozenset({b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"})
_SCHEMES = frozenset({b"http", b"https"})
_PSEUDO = frozenset({b":method", b":scheme", b":authority", b":path"})

_LONGEST = 2048
"""Bytes of a block that is cached."""
_MOST = 128
"""Blocks, but for their paths, that are cached of a connection. Go's clients send the same headers in any order."""
_MOST_BEGINNINGS = 16
"""What comes before a path that is known of a connection: the fields are few, and their order seldom changes."""
_MOST_WHOLE = 32
"""Whole blocks that are cached of a connection: those of what a client looks at again and again."""
_MOST_REMEMBERED = 8
"""Headers of an answer whose block is cached: hundreds of warnings come once."""
_UPDATE = 0x20
"""What a field begins with that sets the size of the table."""
_PATHS: Final = frozenset({0x04, 0x05, 0x14, 0x15, 0x44, 0x45})
"""How a path that is written out begins: the static table has its name twice, and there are three kinds of literals."""
_PIECE: Final = 64
"""Bytes of a block that take as long to decode as a short field does."""
_LONGEST_NUMBER = 5
"""Bytes of a number in a block."""
_SHORT: Final = [bytes((size,)) for size in range(0x7F)]
"""How lengths of strings are written that take a byte."""
_STATUSES = {200: b"\x88", 204: b"\x89", 206: b"\x8a", 304: b"\x8b", 400: b"\x8c", 404: b"\x8d", 500: b"\x8e"}
"""Where the static table has a whole `:status` (RFC 7541, appendix A)."""


class _Around(NamedTuple):
    """What the fields of a request say besides its path."""

    method: str
    headers: HeaderLines
    length: int | None
    expects_continue: bool

    def head(self, target: bytes) -> Head:
        """Return the head of a request for `target`; raises `Malformed`."""
        path, query = read_target(target)
        return Head(self.method, path, query, self.headers, "2", self.length, True, self.expects_continue)


class BlockReader:
    """Reads the header blocks of one connection, in the order in which they come."""

    __slots__ = ("_around", "_beginnings", "_bounds", "_decoder", "_heads", "_largest_table", "work")

    def __init__(self, bounds: Bounds) -> None:
        """Keep `bounds`."""
        self.work = 0
        """What reading has cost so far: in fields, and in pieces of `_PIECE` bytes."""
        self._bounds = bounds
        self._decoder = Decoder(2 * bounds.head_bytes)  # never more than that, of a block that is within them
        self._largest_table = self._decoder.max_allowed_table_size
        # What came before paths, the latest first; and what was read around paths, by that and by what followed.
        self._beginnings: tuple[bytes, ...] = ()
        self._around: BoundedCache[tuple[bytes, bytes], _Around] = BoundedCache(
            "http2-headers", entries=_MOST, largest=_LONGEST
        )
        self._heads: BoundedCache[bytes, Head] = BoundedCache("http2-heads", entries=_MOST_WHOLE, largest=_LONGEST)

    def read(self, block: bytes) -> Head:
        """Return the head of a request.

        Raises `Malformed` for what is answered in HTTP's words, `StreamFault` for what is no request, and
        `ConnectionFault` if what comes later cannot be read any more.
        """
        try:
            return self._recognised(block) or self._read(block)
        except HPACKError as error:
            raise ConnectionFault(Code.COMPRESSION_ERROR, f"a header block that cannot be read: {error}") from error

    def skip(self, block: bytes) -> bool:
        """Read trailers, and return whether there is a pseudo header among them; raises as `read` does."""
        try:
            return b":" in {name[:1] for name, _ in self._decoded(block)}
        except Malformed as error:
            raise StreamFault(Code.PROTOCOL_ERROR, "trailers that are too large") from error
        except HPACKError as error:
            raise ConnectionFault(Code.COMPRESSION_ERROR, f"trailers that cannot be read: {error}") from error

    def limit_table(self) -> None:
        """Note that the client knows that it is to keep no table (RFC 7541, section 4.2).

        A client that keeps the table that it has, because it does not know this setting, is still read; one that sets
        another size than none is not.
        """
        self._largest_table = 0

    def _recognised(self, block: bytes) -> Head | None:
        """Read a block that is known, or all of it but the path."""
        if self._decoder.header_table_size:
            return None  # the same bytes may say something else
        head = self._heads.get(block)
        if head is None:
            head = self._recognised_around(block)
            if head is not None:
                self._heads.put(block, head, len(block))
        return head

    def _recognised_around(self, block: bytes) -> Head | None:
        """Read a block of which all but the path is known."""
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
        """Read a block, whatever it says, and remember what is around its path."""
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
            raise StreamFault(Code.PROTOCOL_ERROR, "a request without a method, a scheme or a path")
        if not all(map(_VALUE.fullmatch, pseudo.values())):
            raise StreamFault(Code.PROTOCOL_ERROR, "a pseudo header that must not be")
        around = _around(method.decode(), lines, pseudo.get(b":authority"))
        if not has_table:
            self._remember(block, around)
        return around.head(target)

    def _remember(self, block: bytes, around: _Around) -> None:
        """Keep what is around a path that is written out in a block."""
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
        """Yield the fields of a block, to its end, so that the table is as the client has it; raises `Malformed`."""
        count = size = 0
        self.work += len(block) // _PIECE
        for begins, ends in _spans(block):
            if count > 2 * self._bounds.header_count:  # to read on would cost more than the connection is worth
                raise ConnectionFault(Code.ENHANCE_YOUR_CALM, "a header block of too many fields")
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
        """Raise `ConnectionFault` if the table's size is set after a field, or beyond what the client was told."""
        if count:
            raise ConnectionFault(Code.COMPRESSION_ERROR, "a table's size in the middle of a block")
        if _number(block, begins, 5)[0] > self._largest_table:  # RFC 7541, section 6.3
            raise ConnectionFault(Code.COMPRESSION_ERROR, "a larger table than the server allows")


def _around(method: str, lines: Sequence[HeaderLine], authority: bytes | None) -> _Around:
    """Return what is to know of fields, in order, that are no pseudo headers; raises as `BlockReader.read` does."""
    kept, cookies = HeaderLines(), []
    hosts, expectation, length = [] if authority is None else [authority], b"", None
    for name, value in lines:
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            raise StreamFault(Code.PROTOCOL_ERROR, f"a field {name!r} that must not be")
        if name in _OF_CONNECTIONS or (name == b"te" and value != b"trailers"):
            raise StreamFault(Code.PROTOCOL_ERROR, f"a field of connections: {name.decode()}")
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
                    raise StreamFault(Code.PROTOCOL_ERROR, "a length that is none")
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
    if cookies:  # which a client may send one by one (RFC 9113, section 8.2.3)
        kept.append((b"cookie", b"; ".join(cookies)))
    kept.insert(0, (b"host", hosts[0]))
    return _Around(method, kept, length, bool(expectation))


def _spans(block: bytes) -> Iterator[tuple[int, int]]:
    """Yield where each field of a block begins and ends; raises `HPACKError`."""
    at = 0
    while at < len(block):
        ends = _end(block, at)
        yield at, ends
        at = ends


def _end(block: bytes, at: int) -> int:
    """Return where a field ends (RFC 7541, section 6)."""
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
        raise HPACKError("a field that is cut short")
    return ends


def _number(block: bytes, at: int, bits: int) -> tuple[int, int]:
    """Return a number and where it ends (RFC 7541, section 5.1)."""
    most = (1 << bits) - 1
    if at >= len(block):
        raise HPACKError("a number that is not there")
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
    raise HPACKError("a number that is too long, or cut short")


def written(
    code: int,
    date: HeaderLine,
    headers: Sequence[HeaderLine],
    *,
    own: HeaderLine | None = None,
    length: int | None = None,
) -> bytes:
    """Return the block of an answer's head; a header that no other answer has is given as `own`."""
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
    """Return a string as it is, after its length (RFC 7541, section 5.2)."""
    size = len(text)
    if size < 0x7F:
        return _SHORT[size] + text
    left, number = size - 0x7F, bytearray(b"\x7f")
    while left >= 0x80:
        number.append(left & 0x7F | 0x80)
        left >>= 7
    number.append(left)
    return bytes(number) + text
