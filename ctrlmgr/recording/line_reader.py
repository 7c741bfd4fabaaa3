"""Reads the lines of a file, compressed or not, in large blocks.

Guarantees: lines are yielded complete and in order, without newlines. All readable lines are yielded before an error is
raised. One or two blocks are held in memory at a time. All work is done on the calling thread, because a second thread
for decompression would compete for the GIL and be slower.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import IO

_BLOCK = 1 << 16
"""The number of bytes that are read at a time; they decompress to about a megabyte of lines."""

_GZIP = 31
"""The value of zlib's `wbits` for a gzip stream whose checksum is verified."""


LONGEST = 16 << 20
"""Maximum bytes of a line; the longest possible event has less than half as many."""

_INFLATED = 4 << 20
"""Maximum bytes that are decompressed at a time."""


class LineTooLong(ValueError):
    """Raised if a line is longer than `LONGEST`."""


def lines(stored: IO[bytes], *, compressed: bool) -> Iterator[bytes]:
    """Yield the lines of a file; the last line need not end in a newline.

    Raises OSError if reading fails, `LineTooLong`, and, for a compressed file, EOFError if it is truncated and
    zlib.error if it is damaged.
    """
    begun: list[bytes] = []
    size = 0
    for block in _inflated(stored) if compressed else iter(lambda: stored.read(_BLOCK), b""):
        first, *others = block.split(b"\n")
        begun.append(first)
        size += len(first)
        if size > LONGEST:
            raise LineTooLong
        if others:
            yield b"".join(begun)
            yield from others[:-1]
            begun, size = [others[-1]], len(others[-1])
    if size:
        yield b"".join(begun)


def _inflated(stored: IO[bytes]) -> Iterator[bytes]:
    """Decompress one or several concatenated gzip streams."""
    inflater = zlib.decompressobj(_GZIP)
    while block := stored.read(_BLOCK):
        while block:
            if inflater.eof:
                inflater = zlib.decompressobj(_GZIP)
            yield inflater.decompress(block, _INFLATED)
            # Padding between streams is allowed. A block is decompressed in pieces, because its content may be a
            # thousand times larger.
            block = inflater.unused_data.lstrip(b"\0") if inflater.eof else inflater.unconsumed_tail
    if not inflater.eof:
        raise EOFError
