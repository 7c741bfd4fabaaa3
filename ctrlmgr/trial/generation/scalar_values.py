"""Values of numbers, strings and booleans near the limits of a schema node, on both sides of each limit.

Guarantees: the values are only proposals. The caller asks the validation which of them are valid.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any, Final

from ctrlmgr.extensions.structural import Raw
from ctrlmgr.trial.generation.pattern_strings import matches, matching_strings

_LONGEST: Final = 2_000
"""The maximum length of a generated string; a limit of a schema beyond this length is not tried."""
_SAMPLES: Final = {
    "byte": ("YQ==", "YWI=", "a"),
    "cidr": ("10.0.0.0/8", "fd00::/64", "10.0.0.0"),
    "date": ("2024-02-29", "2025-02-29"),
    "date-time": ("2024-02-29T12:00:00Z", "2024-02-29"),
    "duration": ("1h30m0s", "10s", "0s", "tomorrow"),
    "email": ("one@example.com", "one"),
    "hostname": ("example.com", "-example"),
    "ipv4": ("192.0.2.1", "192.0.2.256"),
    "ipv6": ("2001:db8::1", "2001:db8:::1"),
    "mac": ("02:00:5e:10:00:01", "02:00:5e:10:00"),
    "uri": ("https://example.com/a", "example"),
    "uuid": ("5e2b3e0e-6a5c-4d7c-9b71-2c6b6b6f0a11", "5e2b3e0e"),
    "hexcolor": ("#a1b2c3", "#a1b2"),
    "k8s-short-name": ("a-1", "A_1"),
    "k8s-long-name": ("a-1.example", "a..b"),
}
"""For each format, some strings that it accepts, and one that it refuses."""
_BITS: Final = {"int32": 31, "int64": 63}
_HINTS: Final = 6
"""The number of constants from rules, and of values of neighbouring fields, that are tried."""

Hints = Sequence[Any]
"""Numbers and strings that occur in rules or in neighbouring fields."""


def numbers(raw: Raw, hints: Hints = ()) -> Iterator[int | float]:
    """Yield numbers at and beyond the limits of a number's schema, beginning with the most usual value."""
    step = raw.get("multipleOf") or 1
    low, high = raw.get("minimum"), raw.get("maximum")
    middle = low if low is not None else high
    centers = [0 if middle is None else middle, low, high, 0, 1, raw.get("default"), *_numbers_of(hints)]
    for center in centers:
        if center is not None:
            base = _multiple(center, step)
            yield from (_typed(raw, each) for each in (base, base + step, base - step))
    if (bits := _BITS.get(raw.get("format") or "")) and high is None:
        yield from (2**bits - 1, 2**bits)
    if raw.get("multipleOf"):
        yield _typed(raw, _multiple(middle or 0, step) + step / 2)


def _numbers_of(hints: Hints) -> list[int | float]:
    return [each for each in hints if isinstance(each, int | float) and not isinstance(each, bool)][:_HINTS]


def _multiple(value: float, step: float) -> int | float:
    count = -(-value // step)
    return value if step == 1 else count * step


def _typed(raw: Raw, value: float) -> int | float:
    return int(value) if raw.get("type") == "integer" and value == int(value) else value


def strings(raw: Raw, random: Random, hints: Hints = ()) -> Iterator[str]:
    """Yield strings that fulfil and that narrowly miss a string's schema, beginning with the most usual value."""
    least, most = raw.get("minLength") or 0, raw.get("maxLength")
    if pattern := raw.get("pattern"):
        yield from _of_pattern(pattern, random, least, most)
    yield from _SAMPLES.get(raw.get("format") or "", ())
    if not pattern:
        yield _of_length(max(1, least), random)
        yield _of_length(max(3, least), random)
    for limit in (least, most, *_lengths(hints)):
        if limit and limit <= _LONGEST:
            yield from (_of_length(each, random) for each in (limit, limit + 1, limit - 1))
    yield from [each for each in hints if isinstance(each, str)][:_HINTS]
    yield ""


def _of_pattern(pattern: str, random: Random, least: int, most: int | None) -> Iterator[str]:
    found = matching_strings(pattern, random, least=least, most=most, count=3)
    yield from found
    if most is not None and most <= _LONGEST:
        yield from matching_strings(pattern, random, least=most, most=most)
        yield from matching_strings(pattern, random, least=most + 1)
    for text in found[:1]:
        yield from (each for each in (f"{text}!", f"!{text}", text.upper(), text[1:]) if not matches(pattern, each))


def _lengths(hints: Hints) -> list[int]:
    return [each for each in hints if isinstance(each, int) and 1 < each <= _LONGEST][:2]


def _of_length(length: int, random: Random) -> str:
    return "".join(random.choice("abcdefghijklmnop") for _ in range(length))
