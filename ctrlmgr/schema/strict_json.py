"""Reads JSON that strangers send, strictly: what is accepted can be stored, copied and sent again by any program.

Guarantees: whatever `decode` returns is made of dicts, lists, strings of Unicode scalars without NUL, bools, None,
ints, and floats that are numbers, nested at most `DEEPEST` levels. Invalid UTF-8, lone surrogates, NaN, infinities
and trailing characters are refused; Kubernetes refuses only some of these, and replaces bad UTF-8 silently.
NUL is refused because PostgreSQL can hold it nowhere in text or jsonb, and both databases must hold the same.

Where a key stands twice in one object the last one counts, as in Kubernetes; `has_repeated_keys` and
`decode_repeated` are for telling the client.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from ctrlmgr.errors import RequestEntityTooLarge
from ctrlmgr.golang.go_text import quote_byte

DEEPEST = 64
"""How many levels of objects and lists a document may have."""
DEEPEST_FREE_FORM = 48
"""How many a value may have that no schema limits: what is around it adds its own."""

MOST_VALUES: Final = 200_000
"""How many values a body may have, an empty object or list counted twice.

Kubernetes has no such bound: a body of 3 MB may have a million `{}`, each of which becomes a container with its
defaults. A custom object has at most 1.5 MiB there (etcd), which is less than that at eight bytes a value.
"""

_NESTING = bytes.maketrans(b"{}", b"[]")
_NOISE = bytes(set(range(256)) - set(b'[]{}"'))
_NO_VALUES = bytes(set(range(256)) - set(b'[{,"'))
_ESCAPED_LETTER = re.compile(rb"\\u00[4-7]")
_POSITION = re.compile(r"\(byte (\d+)\)")
_PLAIN = msgspec.json.Decoder()
_ENCODE = msgspec.json.Encoder().encode


def decode(data: bytes) -> Any:
    """Decode a JSON document; raises ValueError with Go's words, without its prefix, for what is not one."""
    refuse_depth(data)
    return decode_shallow(data)


def refuse_depth(data: bytes) -> None:
    """Raise ValueError if well-formed JSON nests too deep."""
    if depth_exceeds(data, DEEPEST):
        raise ValueError("exceeded max depth")


def refuse_free_form_depth(value: Any) -> None:
    """Raise ValueError if a value that no schema limits nests too deep."""
    try:
        too_deep = depth_exceeds(_ENCODE(value), DEEPEST_FREE_FORM)
    except RecursionError:
        too_deep = True
    if too_deep:
        raise ValueError("exceeded max depth")


def decode_shallow(data: bytes) -> Any:
    """Do what `decode` does for what cannot be too deep, or is yet to be checked for it."""
    try:
        value = _PLAIN.decode(data)
    except UnicodeDecodeError as error:
        raise ValueError("invalid UTF-8 in string literal") from error
    except RecursionError as error:
        raise ValueError("exceeded max depth") from error
    except msgspec.MsgspecError as error:
        raise ValueError(_reason(str(error), data)) from error
    if b"\\u0000" in data:
        refuse_nul(data)
    return value


class Written(float):
    """A fraction, or a number with an exponent, and how it is spelled in JSON."""

    __slots__ = ("text",)

    def __new__(cls, text: str) -> Written:
        """Read a number in JSON."""
        number = super().__new__(cls, text)
        number.text = text
        return number

    text: str

    def __repr__(self) -> str:
        """Return its text."""
        return self.text


_WRITTEN = msgspec.json.Decoder(float_hook=Written)


def decode_as_written(data: bytes) -> Any:
    """Decode once more what `decode_shallow` has decoded; its fractions are `Written`."""
    return _WRITTEN.decode(data)


def unwritten(value: Any) -> Any:
    """Return a value without any `Written` in it."""
    if type(value) is Written:
        return float(value)
    if isinstance(value, dict):
        return {key: unwritten(each) for key, each in value.items()}
    return [unwritten(each) for each in value] if isinstance(value, list) else value


def has_escaped_letters(data: bytes) -> bool:
    r"""Return whether JSON spells letters as `\u0063`, which hides words; Go escapes only `<`, `>`, `&` so."""
    return _ESCAPED_LETTER.search(data) is not None


def refuse_nul(data: bytes) -> None:
    r"""Raise ValueError if well-formed JSON says `\u0000` anywhere (and not a backslash followed by `u0000`)."""
    if b"\\u0000" in data.replace(b"\\\\", b""):
        raise ValueError("invalid character '\\x00' in string literal")


def depth_exceeds(data: bytes, deepest: int) -> bool:
    """Return whether well-formed JSON nests deeper than `deepest`; for anything else either answer will do.

    Strings are dropped and all brackets made alike; then each round takes the innermost pairs away.
    """
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    rest = data.translate(_NESTING, _NOISE).replace(b'""', b"")
    if len(rest) <= 2 * deepest:
        return False
    if b'"' in rest:
        rest = b"".join(rest.split(b'"')[::2])
    if b"[" * (deepest + 1) in rest:
        return True
    for _ in range(deepest):
        shorter = rest.replace(b"[]", b"")
        if len(shorter) == len(rest):
            return False  # nothing left, or unbalanced: the parser will say so
        rest = shorter
    return bool(rest)


def refuse_many(data: bytes) -> None:
    """Raise `RequestEntityTooLarge` if well-formed JSON has more than `MOST_VALUES` values; none of them is made."""
    if _separators(data) < MOST_VALUES:
        return
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    rest = data.translate(None, _NO_VALUES)
    if _separators(b"".join(rest.split(b'"')[::2])) >= MOST_VALUES:
        raise too_many_values()


def too_many_values() -> RequestEntityTooLarge:
    """Return the 413 of a body of more than `MOST_VALUES` values."""
    return RequestEntityTooLarge(f"Request entity is too large: it has more values than the limit of {MOST_VALUES}")


def _separators(data: bytes) -> int:
    return data.count(b",") + data.count(b"{") + data.count(b"[")


def _reason(message: str, data: bytes) -> str:
    """Say it as Go's scanner would, as far as msgspec knows."""
    if "truncated" in message:
        return "unexpected end of JSON input"
    if "surrogate" in message:
        return "invalid surrogate pair in string literal"
    position = _POSITION.search(message)
    if position is None:
        return message
    is_trailing = "trailing" in message
    at = int(position[1]) - is_trailing
    character = quote_byte(data[at]) if at < len(data) else "EOF"
    return f"invalid character {character} {'after top-level value' if is_trailing else _expectation(data)}"


def _expectation(data: bytes) -> str:
    """Say what Go's scanner would be at where malformed JSON goes wrong."""
    try:
        json.loads(data.decode(errors="replace"))
    except json.JSONDecodeError as error:
        return GO_WORDS.get(error.msg, _VALUE)
    except (ValueError, RecursionError):  # numbers or depths that Python does not read
        pass
    return _VALUE


_VALUE = "looking for beginning of value"
GO_WORDS: Final = {
    "Expecting value": _VALUE,
    "Expecting property name enclosed in double quotes": "looking for beginning of object key string",
    "Expecting ':' delimiter": "after object key",
    "Expecting ',' delimiter": "after object key:value pair",
    "Extra data": "after top-level value",
}
"""What Go's scanner says where Python's says this."""


class Repeated(dict[str, Any]):
    """A JSON object in which a key stands more than once: the last values, and all pairs in their order."""

    def __init__(self, pairs: Sequence[tuple[str, Any]]) -> None:
        """Take the pairs as they stand."""
        super().__init__(pairs)
        self.pairs = pairs


def has_repeated_keys(data: bytes, value: Any) -> bool:
    """Return whether keys were lost in decoding `data` to `value`; may say so in vain, then `data` is unusual.

    Compact documents come out as they went in. In others the quotes are counted: without repeated keys there are as
    many strings, and what a string holds has as many of them, except where they are spelled as code points.
    """
    try:
        again = _ENCODE(value)
    except RecursionError:  # far too deep: for the slow path to refuse
        return True
    if again == data or (data.endswith(b"\n") and again == data[:-1]):
        return False
    return data.count(b'"') != again.count(b'"') or b"\\u0022" in data


def decode_repeated(data: bytes) -> Any:
    """Decode what `decode` accepted once more, with `Repeated` for each object in which a key is repeated."""
    return json.loads(data, object_pairs_hook=_pairs)


def repeated_fields(value: Any, path: str) -> Iterator[str]:
    """Yield `duplicate field "spec.type"` for each key that stands twice in what `decode_repeated` returned."""
    if isinstance(value, dict):
        seen: set[str] = set()
        for key, each in value.pairs if isinstance(value, Repeated) else value.items():
            below = f"{path}.{key}" if path else key
            if key in seen:
                yield f'duplicate field "{below}"'
            seen.add(key)
            yield from repeated_fields(each, below)
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from repeated_fields(each, f"{path}[{index}]")


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    plain = dict(pairs)
    return plain if len(plain) == len(pairs) else Repeated(pairs)
