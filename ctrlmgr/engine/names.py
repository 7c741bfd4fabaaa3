"""Names that the server gives: generated names, and uids.

Guarantees: all randomness is drawn from the source handed in.
"""

from __future__ import annotations

from random import Random
from typing import Final

_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"  # no vowels, nothing that looks like something else
_DRAWN_LENGTH: Final = 5
"""How many characters are drawn for a name."""
_DRAWN: Final = 64
"""Bits for all characters at once: enough of them that none is likelier than another by more than 2^-40."""
_LONGEST_BASE: Final = 63 - _DRAWN_LENGTH
_PAIRS: Final = [first + second for second in _ALPHABET for first in _ALPHABET]
"""Two characters at a time."""
_LETTERS: Final = len(_ALPHABET)
_SQUARE: Final = len(_PAIRS)


def generate_name(base: str, random: Random) -> str:
    """Return `base`, cut to fit into 63 bytes, and five random characters (apiserver `storage/names`)."""
    if len(base) > _LONGEST_BASE:
        base = base.encode()[:_LONGEST_BASE].decode(errors="ignore")
    drawn, first = divmod(random.getrandbits(_DRAWN), _SQUARE)
    drawn, second = divmod(drawn, _SQUARE)
    return f"{base}{_PAIRS[first]}{_PAIRS[second]}{_ALPHABET[drawn % _LETTERS]}"


def new_uid(random: Random) -> str:
    """Return a random UUID (version 4), as uuid.uuid4 writes it."""
    bits = random.getrandbits(128) & ~(0xF000 << 64) & ~(0xC000 << 48) | 0x4000 << 64 | 0x8000 << 48
    text = f"{bits:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
