"""Objects without their own: what is an object's alone is cut out of its bytes, and another's put in its place.

Guarantees:
- An object's name is cut out where it is its name, and nowhere else unless that is asked for; all else that is its own,
  wherever it stands.
- What is left, filled with what was cut out, is the object to the last byte.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from operator import itemgetter
from typing import Final

MARKS: Final = tuple(bytes([number]) for number in range(0x0E, 0x20))
"""What stands for the name, and for each other text that is cut out: characters that stand in no JSON as such."""
_START, _END = b'"metadata":{"name":"', b'"'
"""What is around an object's name."""

_split_at_marks = re.compile(b"([" + b"".join(MARKS) + b"])").split


def without(body: bytes, own: Sequence[bytes], *, everywhere: bool = False) -> bytes | None:
    """Return a body with a mark for each text of its `own`, of which the first is its name; None if that cannot be.

    No text may be part of another, and where the name is cut out `everywhere`, it must stand where it means the object
    alone: who calls sees to that.
    """
    before, found, after = body.partition(_START + own[0] + _END)
    if not found or len(own) > len(MARKS):
        return None
    if everywhere:
        before, after = (part.replace(own[0], MARKS[0]) for part in (before, after))
    for mark, text in zip(MARKS[1:], own[1:], strict=False):
        after = after.replace(text, mark)
    return b"".join((before, _START, MARKS[0], _END, after))


class Template:
    """What was left of an object, to be filled with what is another's own."""

    __slots__ = ("_filling", "_text")

    def __init__(self, cut: bytes) -> None:
        """Take an object as it is left without its own."""
        texts = _split_at_marks(cut)
        self._text = b"%b".join(each.replace(b"%", b"%%") for each in texts[::2])
        self._filling = itemgetter(*(MARKS.index(mark) for mark in texts[1::2]))

    def filled(self, own: Sequence[bytes]) -> bytes:
        """Return the object that has these texts, in the order in which they were cut out."""
        text: bytes = self._text % self._filling(own)
        return text
