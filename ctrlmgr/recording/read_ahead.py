"""Reading a file of lines on another thread, a few blocks ahead of the one that uses them.

zlib lets go of the interpreter while it inflates, so that a compressed recording costs the reader's thread next to
nothing. Guarantees: the lines come whole and in order; what goes wrong is raised where the lines are taken, after
those above it; at most `_AHEAD` blocks are held; the thread has ended when the iteration has, however that ends.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Iterator
from queue import SimpleQueue
from typing import IO

from ctrlmgr import threads

_BLOCK = 1 << 16
"""Stored bytes read at a time: about a megabyte of lines when compressed."""

_AHEAD = 4
"""Blocks read ahead."""

_GZIP = 31
"""zlib's wbits for a gzip stream, whose checksum it verifies."""


def read_ahead(stored: IO[bytes], *, compressed: bool) -> Iterator[list[bytes]]:
    """Yield the lines of a file, newlines left out, block by block.

    Raises OSError; for a compressed file EOFError when it is cut short, zlib.error when it is damaged.
    """
    rest = b""
    for block in _inflated(stored) if compressed else iter(lambda: stored.read(_BLOCK), b""):
        lines = block.split(b"\n")
        lines[0] = rest + lines[0]
        rest = lines.pop()
        yield lines
    if rest:
        yield [rest]


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


class _Producer:
    """The thread, and what it shares with the taker."""

    def __init__(self, blocks: Iterator[list[bytes]]) -> None:
        self._blocks = blocks
        self._room = threading.Semaphore(_AHEAD)
        self._given_up = False
        self.ready: SimpleQueue[list[bytes] | Exception | None] = SimpleQueue()  # None: that was all
        self._thread = threads.start("read-ahead", self._run)

    def _run(self) -> None:
        try:
            for block in self._blocks:
                self._room.acquire()
                if self._given_up:
                    return
                self.ready.put(block)
        except Exception as error:  # whatever it is, it is the taker's
            self.ready.put(error)
        else:
            self.ready.put(None)

    def taken(self) -> None:
        """Let the thread go one block further."""
        self._room.release()

    def give_up(self) -> None:
        """End the thread."""
        self._given_up = True
        self._room.release()
        self._thread.join()


def read_ahead_x(stored: IO[bytes], *, compressed: bool) -> Iterator[list[bytes]]:
    """Yield and raise what `blocks_of_lines` does, made by another thread in advance."""
    producer = _Producer(read_ahead(stored, compressed=compressed))
    try:
        while (block := producer.ready.get()) is not None:
            if isinstance(block, Exception):
                raise block
            producer.taken()
            yield block
    finally:
        producer.give_up()
