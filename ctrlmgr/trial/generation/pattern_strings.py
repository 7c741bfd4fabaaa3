"""Generates strings that match a regular expression, by a walk through the tree of the parsed pattern.

Guarantees: each returned string was matched against the pattern with Go's semantics.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Final

from ctrlmgr.regexp import PatternError, TooMuchWork, compiled
from ctrlmgr.regexp.syntax import parse
from ctrlmgr.regexp.tree import Assert, Characters, Choice, Node, Repeat, Sequence

_PREFERRED: Final = "abcdefghijklmnopqrstuvwxyz0123456789"
_PRINTABLE: Final = _PREFERRED + "".join(chr(code) for code in range(32, 127) if chr(code) not in _PREFERRED)
_ATTEMPTS: Final = 40
_MORE: Final = 3
"""A repetition without a maximum repeats its part at most this many times more than necessary, unless strings that are
long are requested.
"""


def matches(pattern: str, text: str) -> bool:
    """Return whether a string matches a pattern; False also if the pattern is invalid or needs too much work."""
    try:
        return compiled(pattern).search(text)
    except (PatternError, TooMuchWork):
        return False


def matching_strings(
    pattern: str, random: Random, *, least: int = 0, most: int | None = None, count: int = 1
) -> list[str]:
    """Return up to `count` different strings that match a pattern and have between `least` and `most` characters.

    The list is empty if no such string was found in a limited number of attempts.
    """
    try:
        root = parse(pattern)
    except PatternError:
        return []
    found: dict[str, None] = {}
    for attempt in range(_ATTEMPTS * count):
        more = least // (1 + attempt % _MORE) + attempt % (_MORE + 1)
        text = "".join(_characters(root, random, more))
        is_long_enough = least <= len(text) and (most is None or len(text) <= most)
        if is_long_enough and text not in found and matches(pattern, text):
            found[text] = None
        if len(found) == count:
            break
    return list(found)


def _characters(node: Node, random: Random, more: int) -> Iterator[str]:
    match node:
        case Assert():
            return
        case Characters():
            yield _one_of(node, random)
        case Sequence():
            for part in node.parts:
                yield from _characters(part, random, more)
        case Choice():
            yield from _characters(random.choice(node.parts), random, more)
        case Repeat():
            for _ in range(_times(node, random, more)):
                yield from _characters(node.part, random, more)


def _times(node: Repeat, random: Random, more: int) -> int:
    highest = node.least + more
    return random.randint(node.least, highest if node.most < 0 else max(node.least, min(node.most, highest)))


def _one_of(characters: Characters, random: Random) -> str:
    """Return a character of a set: a letter or a digit if the set has one, otherwise another printable one."""
    for those in (_PREFERRED, _PRINTABLE):
        allowed = [each for each in those if characters.matches(each)]
        if allowed:
            return random.choice(allowed)
    return characters.ranges[0][0] if characters.ranges and not characters.negated else "\u00e9"
