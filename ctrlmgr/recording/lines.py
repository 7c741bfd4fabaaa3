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


def lines(stored: IO[bytes], *, compressed: bool) -> Iterator[bytes]:
    """Yield the lines of a file; the last one need not end in a newline.

    Raises OSError; for a compressed file EOFError when it is cut short, zlib.error when it is damaged.
    """
    rest = b""
    for block in _inflated(stored) if compressed else iter(lambda: stored.read(_BLOCK), b""):
        whole = block.split(b"\n")
        whole[0] = rest + whole[0]
        rest = whole.pop()
        yield from whole
    if rest:
        yield rest


def _inflated(stored: IO[bytes]) -> Iterator[bytes]:
    """Inflate one gzip stream, or several one after another."""
    inflater = zlib.decompressobj(_GZIP)
    while block := stored.read(_BLOCK):
        while block:
            if inflater.eof:
                inflater = zlib.decompressobj(_GZIP)
            yield inflater.decompress(block)
            block = inflater.unused_data.lstrip(b"\0")  # streams may be padded
    if not inflater.eof:
        raise EOFError
