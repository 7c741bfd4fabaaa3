"""Generates the names and uids that the server assigns.

Guarantees: the functions use only the random source that the caller passes.
"""

from __future__ import annotations

from random import Random
from typing import Final

_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"  # the alphabet has no vowels, and no characters that look alike
_DRAWN_LENGTH: Final = 5
"""The number of random characters in a generated name."""
_DRAWN: Final = 64
"""The number of random bits for all random characters of a name.

With 64 random bits, the probabilities of any two characters differ by at most 2^-40.
"""
_LONGEST_BASE: Final = 63 - _DRAWN_LENGTH
_PAIRS: Final = [first + second for second in _ALPHABET for first in _ALPHABET]
"""All pairs of two characters that generated names may contain."""
_LETTERS: Final = len(_ALPHABET)
_SQUARE: Final = len(_PAIRS)


def generate_name(base: str, random: Random) -> str:
    """Return `base`, truncated to fit into 63 bytes, followed by five random characters (apiserver `storage/names`)."""
    if len(base) > _LONGEST_BASE:
        base = base.encode()[:_LONGEST_BASE].decode(errors="ignore")
    drawn, first = divmod(random.getrandbits(_DRAWN), _SQUARE)
    drawn, second = divmod(drawn, _SQUARE)
    return f"{base}{_PAIRS[first]}{_PAIRS[second]}{_ALPHABET[drawn % _LETTERS]}"


def new_uid(random: Random) -> str:
    """Return a random UUID (version 4), in the form of uuid.uuid4."""
    bits = random.getrandbits(128) & ~(0xF000 << 64) & ~(0xC000 << 48) | 0x4000 << 64 | 0x8000 << 48
    text = f"{bits:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
