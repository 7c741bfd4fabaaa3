"""Decodes JSON from clients strictly, so that every program can store, copy and send each accepted document.

Guarantees: the result of `decode` consists of dicts, lists, strings of Unicode scalars without NUL, bools, None, ints
and finite floats, nested at most `DEEPEST` levels. `decode` refuses invalid UTF-8, lone surrogates, NaN, infinities and
trailing characters. Kubernetes refuses only some of these documents, and silently replaces invalid UTF-8. `decode` also
refuses NUL, because PostgreSQL's text and jsonb cannot contain NUL, and SQLite and PostgreSQL must store the same
documents.

If one object repeats a key, the last value counts, as in Kubernetes. `has_repeated_keys` and `decode_repeated` find
repeated keys, so that the server can report the keys to the client.
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
"""The maximum nesting of objects and lists in a document."""
DEEPEST_FREE_FORM = 48
"""The maximum nesting depth of a value without a schema; the document that contains the value adds levels."""

MOST_VALUES: Final = 200_000
"""The maximum number of values in a body; an empty object or list counts twice.

Kubernetes does not limit the number of values: a body of 3 MB may contain a million `{}`. Each `{}` may become a
container with all defaults. In Kubernetes, etcd limits the size of a custom object to 1.5 MiB. A custom object of 1.5
MiB has fewer values than `MOST_VALUES`, if a value takes eight bytes on average.
"""

_NESTING = bytes.maketrans(b"{}", b"[]")
_NOISE = bytes(set(range(256)) - set(b'[]{}"'))
_NO_VALUES = bytes(set(range(256)) - set(b'[{,"'))
_ESCAPED_LETTER = re.compile(rb"\\u00[4-7]")
_POSITION = re.compile(r"\(byte (\d+)\)")
_PLAIN = msgspec.json.Decoder()
_ENCODE = msgspec.json.Encoder().encode


def decode(data: bytes) -> Any:
    """Decode a JSON document; raises ValueError for an invalid document, with Go's message but without its prefix."""
    refuse_depth(data)
    return decode_shallow(data)


def refuse_depth(data: bytes) -> None:
    """Raise ValueError if well-formed JSON is nested too deeply."""
    if depth_exceeds(data, DEEPEST):
        raise ValueError("exceeded max depth")


def refuse_free_form_depth(value: Any) -> None:
    """Raise ValueError if a value without a schema is nested too deeply."""
    try:
        too_deep = depth_exceeds(_ENCODE(value), DEEPEST_FREE_FORM)
    except RecursionError:
        too_deep = True
    if too_deep:
        raise ValueError("exceeded max depth")


def decode_shallow(data: bytes) -> Any:
    """Decode a document as `decode` does, but without a check of the nesting depth; the caller must check the depth."""
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


class NumberText(float):
    """A number with a fraction or an exponent, together with its text in the JSON document."""

    __slots__ = ("text",)

    def __new__(cls, text: str) -> NumberText:
        """Parse a number in JSON."""
        number = super().__new__(cls, text)
        number.text = text
        return number

    text: str

    def __repr__(self) -> str:
        """Return the text of the number in the JSON document."""
        return self.text


_WRITTEN = msgspec.json.Decoder(float_hook=NumberText)


def decode_as_written(data: bytes) -> Any:
    """Decode a document that `decode_shallow` accepted; numbers with fractions or exponents become `NumberText`."""
    return _WRITTEN.decode(data)


def unwritten(value: Any) -> Any:
    """Return a value in which each `NumberText` is replaced by a float."""
    if type(value) is NumberText:
        return float(value)
    if isinstance(value, dict):
        return {key: unwritten(each) for key, each in value.items()}
    return [unwritten(each) for each in value] if isinstance(value, list) else value


def has_escaped_letters(data: bytes) -> bool:
    r"""Return whether JSON contains letters as escapes such as `\u0063`.

    Go's encoder never escapes letters; it escapes only `<`, `>` and `&` in this form.
    """
    return _ESCAPED_LETTER.search(data) is not None


def refuse_nul(data: bytes) -> None:
    r"""Raise ValueError if well-formed JSON contains the escape `\u0000`, unless its backslash is itself escaped."""
    if b"\\u0000" in data.replace(b"\\\\", b""):
        raise ValueError("invalid character '\\x00' in string literal")


def depth_exceeds(data: bytes, deepest: int) -> bool:
    """Return whether well-formed JSON nests deeper than `deepest`; for other input the result is undefined.

    To find the depth, the function removes all strings, and replaces all brackets by one kind of bracket. Each round
    then removes the innermost pairs of brackets.
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
            return False  # the document is empty, or its brackets are unbalanced; the parser reports this error
        rest = shorter
    return bool(rest)


def refuse_many(data: bytes) -> None:
    """Raise `RequestEntityTooLarge` if well-formed JSON has more than `MOST_VALUES` values, without decoding it."""
    if _separators(data) < MOST_VALUES:
        return
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    rest = data.translate(None, _NO_VALUES)
    if _separators(b"".join(rest.split(b'"')[::2])) >= MOST_VALUES:
        raise too_many_values()


def too_many_values() -> RequestEntityTooLarge:
    """Return the 413 error for a body of more than `MOST_VALUES` values."""
    return RequestEntityTooLarge(f"Request entity is too large: it has more values than the limit of {MOST_VALUES}")


def _separators(data: bytes) -> int:
    return data.count(b",") + data.count(b"{") + data.count(b"[")


def _reason(message: str, data: bytes) -> str:
    """Return an error with the message of Go's scanner, if the function can derive it from msgspec's message."""
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
    """Return the state of Go's scanner at the position of the error in malformed JSON."""
    try:
        json.loads(data.decode(errors="replace"))
    except json.JSONDecodeError as error:
        return GO_WORDS.get(error.msg, _VALUE)
    except (ValueError, RecursionError):  # numbers or nesting depths that Python cannot parse
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
"""The messages of Go's scanner, by Python's error message."""


class Repeated(dict[str, Any]):
    """A JSON object with a repeated key: a dict with the last value of each key, and all pairs in their order."""

    def __init__(self, pairs: Sequence[tuple[str, Any]]) -> None:
        """Create the object from its key-value pairs, in their order."""
        super().__init__(pairs)
        self.pairs = pairs


def has_repeated_keys(data: bytes, value: Any) -> bool:
    """Return whether decoding `data` to `value` may have lost repeated keys.

    If `data` contains unusual escapes, the result may be true although the decoding lost no key.

    If `data` is compact JSON, the function compares `data` with the encoded `value`. If `data` is not compact, the
    function counts the quotation marks in `data` and in the encoded `value`. If no key is repeated, both texts have the
    same number of strings. Both texts also have the same number of escaped quotation marks, unless `data` contains
    quotation marks as code points.
    """
    try:
        again = _ENCODE(value)
    except RecursionError:  # nested far too deeply; the slow path refuses the document
        return True
    if again == data or (data.endswith(b"\n") and again == data[:-1]):
        return False
    return data.count(b'"') != again.count(b'"') or b"\\u0022" in data


def decode_repeated(data: bytes) -> Any:
    """Decode again a document that `decode` accepted, with a `Repeated` for each object with a repeated key."""
    return json.loads(data, object_pairs_hook=_pairs)


def repeated_fields(value: Any, path: str) -> Iterator[str]:
    """Yield `duplicate field "spec.type"` for each repeated key in a result of `decode_repeated`."""
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
