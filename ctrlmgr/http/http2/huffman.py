"""Decodes Huffman-coded header fields (RFC 7541, section 5.2 and appendix B), two bytes at a time.

Guarantees: results and errors equal those of the `hpack` library. That library decodes four bits in each step; this
module combines four steps to one step of 16 bits. A combined step is computed at its first use and cached. Few steps
are needed, because the paths of an API contain few different characters.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Final, NamedTuple

from hpack import HPACKDecodingError
from hpack.huffman_table import HUFFMAN_COMPLETE, HUFFMAN_EMIT_SYMBOL, HUFFMAN_FAIL, HUFFMAN_TABLE

_ENTRIES: Final = 1 << 14
"""Maximum number of cached steps, about 300 bytes each."""


class _Step(NamedTuple):
    """The result of decoding two bytes (or the last single byte) in a state of the decoder."""

    letters: bytes
    state: int
    """The state of the decoder after these bytes."""
    may_end: bool
    """Whether the encoded string may end in this state."""


def decoded(text: bytes) -> bytes:
    """Return the decoded string; raises `HPACKDecodingError` if the bytes are not a valid code."""
    state, may_end, letters = 0, True, []
    even = len(text) & ~1
    for pair in memoryview(text)[:even].cast("H"):
        piece, state, may_end = _step(state << 16 | pair)
        letters.append(piece)
    if even != len(text):
        piece, state, may_end = _taken(state, text[even:])
        letters.append(piece)
    if not may_end:
        raise HPACKDecodingError("the Huffman-coded string ends within a symbol")
    return b"".join(letters)


@lru_cache(_ENTRIES)
def _step(key: int) -> _Step:
    """Return the step for two bytes; `key` combines the state and the bytes in native order."""
    return _taken(key >> 16, (key & 0xFFFF).to_bytes(2, sys.byteorder))


def _taken(state: int, text: bytes) -> _Step:
    """Decode bytes four bits at a time."""
    letters, flags = bytearray(), HUFFMAN_COMPLETE
    for byte in text:
        for bits in (byte >> 4, byte & 0x0F):
            state, flags, letter = HUFFMAN_TABLE[state * 16 + bits]
            if flags & HUFFMAN_FAIL:
                raise HPACKDecodingError("the string contains an invalid Huffman code")
            if flags & HUFFMAN_EMIT_SYMBOL:
                letters.append(letter)
    return _Step(bytes(letters), state, bool(flags & HUFFMAN_COMPLETE))
