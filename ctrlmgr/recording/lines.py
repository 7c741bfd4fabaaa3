"""The lines of a file, compressed or not, read in large blocks.

Guarantees: lines come whole and in order, newlines left out; all that can be read comes before what goes wrong is
raised; a block or two is held at a time. (Inflating on a second thread was measured and is slower: the interpreter's
lock changes hands too often. `gzip.open` takes half as long again.)
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import IO

_BLOCK = 1 << 16
"""Stored bytes read at a time: about a megabyte of lines when compressed."""

_GZIP = 31
"""zlib's wbits for a gzip stream, whose checksum it verifies."""


LONGEST = 16 << 20
"""Bytes of a line: no event is half as long."""

_INFLATED = 4 << 20
"""Bytes inflated at a time."""


class LineTooLong(ValueError):
    """A line is longer than `LONGEST`."""


def lines(stored: IO[bytes], *, compressed: bool) -> Iterator[bytes]:
    """Yield the lines of a file; the last one need not end in a newline.

    Raises OSError, `LineTooLong`; for a compressed file EOFError when it is cut short, zlib.error when it is damaged.
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
    """Inflate one gzip stream, or several one after another."""
    inflater = zlib.decompressobj(_GZIP)
    while block := stored.read(_BLOCK):
        while block:
            if inflater.eof:
                inflater = zlib.decompressobj(_GZIP)
            yield inflater.decompress(block, _INFLATED)
            # Streams may be padded; what a block inflates to comes in pieces, for it may be a thousand times as long.
            block = inflater.unused_data.lstrip(b"\0") if inflater.eof else inflater.unconsumed_tail
    if not inflater.eof:
        raise EOFError
