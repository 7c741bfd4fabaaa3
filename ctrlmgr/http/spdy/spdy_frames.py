"""Encodes and decodes SPDY/3.1 frames and header blocks (SPDY protocol, draft 3.1, section 2).

Guarantees: a frame has at most `LONGEST` bytes, and an inflated header block at most `_LONGEST_HEADERS` bytes; longer
or malformed input raises `SpdyError`.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from ctrlmgr.errors import CtrlmgrError

SYN_STREAM: Final = 1
SYN_REPLY: Final = 2
RST_STREAM: Final = 3
PING: Final = 6
GOAWAY: Final = 7
HEADERS: Final = 8
DATA: Final = 0
"""The number with which this module marks data frames, whose encoding contains no type."""

FIN: Final = 1
"""The flag of the last frame that a peer sends on a stream."""

LONGEST: Final = 1 << 22
_LONGEST_HEADERS: Final = 1 << 16
_VERSION: Final = 3
_CONTROL: Final = 0x80000000

_NAMES: Final = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow "
    "authorization cache-control connection content-base content-encoding content-language content-length "
    "content-location content-md5 content-range content-type date etag expect expires from host if-match "
    "if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma "
    "proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade "
    "user-agent vary via warning www-authenticate method get status 200_OK version HTTP/1.1 url public set-cookie "
    "keep-alive origin"
)
_TAIL: Final = (
    b"100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 Non-Authoritative "
    b"Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not Found500 "
    b"Internal Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec "
    b"00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,"
    b"application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset="
    b"iso-8859-1,utf-,*,enq=0."
)


def _counted(text: bytes) -> bytes:
    return struct.pack(">I", len(text)) + text


DICTIONARY: Final = b"".join(_counted(each.replace("_", " ").encode()) for each in _NAMES.split()) + _TAIL
"""The initial dictionary of header compression (draft 3.1, section 2.6.10.1)."""


class SpdyError(CtrlmgrError):
    """The peer has sent invalid SPDY data."""


class Frame(NamedTuple):
    """A SPDY frame: its kind, its flags, the number of its stream or ping, and the rest of its content."""

    kind: int
    flags: int
    number: int
    body: bytes


def data_frame(stream: int, data: bytes, flags: int = 0) -> bytes:
    """Return an encoded data frame."""
    return struct.pack(">II", stream, flags << 24 | len(data)) + data


def control_frame(kind: int, number: int, body: bytes = b"", flags: int = 0) -> bytes:
    """Return an encoded control frame for the stream or ping with this `number`."""
    return struct.pack(">III", _CONTROL | _VERSION << 16 | kind, flags << 24 | 4 + len(body), number) + body


def read_frames(held: bytearray) -> Iterator[Frame]:
    """Yield the complete frames in `held`, and remove them from `held`; raises `SpdyError` if a frame is invalid.

    Frames of an unknown type are skipped.
    """
    while len(held) >= 8:
        first, second = struct.unpack_from(">II", held)
        size, flags = second & 0xFFFFFF, second >> 24
        if size > LONGEST:
            raise SpdyError(f"a frame of {size} bytes is too long")
        if len(held) < 8 + size:
            return
        body = bytes(held[8 : 8 + size])
        del held[: 8 + size]
        if not first & _CONTROL:
            yield Frame(DATA, flags, first, body)
        else:
            yield _control(first, flags, body)


def _control(first: int, flags: int, body: bytes) -> Frame:
    kind, version = first & 0xFFFF, first >> 16 & 0x7FFF
    if version != _VERSION or len(body) < 4:
        raise SpdyError(f"a control frame of version {version} with {len(body)} bytes is not valid")
    return Frame(kind, flags, int.from_bytes(body[:4], "big") & 0x7FFFFFFF, body[4:])


class HeaderWriter:
    """Compresses the header blocks of one direction of a connection."""

    def __init__(self) -> None:
        """Start with the dictionary that the protocol defines."""
        self._compress = zlib.compressobj(zdict=DICTIONARY)

    def write(self, headers: Mapping[str, str]) -> bytes:
        """Return a compressed header block; the names of headers are converted to lower case."""
        pairs = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        plain = struct.pack(">I", len(pairs)) + b"".join(_counted(text) for pair in pairs for text in pair)
        return self._compress.compress(plain) + self._compress.flush(zlib.Z_SYNC_FLUSH)


class HeaderReader:
    """Decompresses the header blocks of one direction of a connection."""

    def __init__(self) -> None:
        """Start with the dictionary that the protocol defines."""
        self._decompress = zlib.decompressobj(zdict=DICTIONARY)

    def read(self, block: bytes) -> dict[str, str]:
        """Return the headers in a compressed block, with names in lower case.

        Raises `SpdyError` if the block is malformed.
        """
        try:
            plain = self._decompress.decompress(block, _LONGEST_HEADERS)
        except zlib.error as error:
            raise SpdyError(f"a header block is not valid: {error}") from error
        if self._decompress.unconsumed_tail:
            raise SpdyError(f"a header block has more than {_LONGEST_HEADERS} bytes")
        texts = list(_texts(plain))
        return dict(zip(texts[::2], texts[1::2], strict=False))


def _texts(plain: bytes) -> Iterable[str]:
    """Yield the names and values in a header block alternately; raises `SpdyError` if the block is malformed."""
    if len(plain) < 4:
        raise SpdyError("a header block is too short")
    at = 4
    for _ in range(2 * int.from_bytes(plain[:4], "big")):
        size = int.from_bytes(plain[at : at + 4], "big")
        if at + 4 + size > len(plain):
            raise SpdyError("a header block ends early")
        yield plain[at + 4 : at + 4 + size].decode("utf-8", "replace")
        at += 4 + size
