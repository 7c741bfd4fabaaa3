"""Decodes YAML from clients to JSON values; keys and plain scalars have the same meaning as in Kubernetes.

Guarantees: every result of `decode` is a value that `strict_json.decode` could return. `decode` allows anchors, but
limits the number of values that aliases create. `decode` refuses YAML tags without a JSON type, and reads only the
first document of a YAML stream.

As in Kubernetes, which reads YAML 1.1 with go-yaml 2, the scalars `yes`, `on` and `y` are true, `017` is fifteen, and
dates are strings.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Iterator
from typing import Any

import yaml

from ctrlmgr.schema.strict_json import (
    DEEPEST,
    MOST_VALUES,
    decode_shallow,
    depth_exceeds,
    has_repeated_keys,
    refuse_many,
    too_many_values,
)

# the parser of libyaml, if it is available; no other part of libyaml is used
_LOADER = getattr(yaml, "CLoader", yaml.Loader)
_MOST_ALIASED = 10_000
"""The maximum number of values that all aliases together represent."""

_TRUE = frozenset(form for word in ("y", "yes", "true", "on") for form in (word, word.capitalize(), word.upper()))
_FALSE = frozenset(form for word in ("n", "no", "false", "off") for form in (word, word.capitalize(), word.upper()))
_NULL = frozenset(("", "~", "null", "Null", "NULL"))
_KINDS: dict[str, tuple[type, ...]] = {
    "null": (type(None),),
    "bool": (bool,),
    "int": (int,),
    "float": (int, float),
    "timestamp": (str,),
}
"""The JSON types that a scalar may have, by the scalar's YAML tag; a scalar with any other tag is a string."""
_DECIMAL = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_BASED = re.compile(r"([-+]?)0(?:[xX]([0-9a-fA-F]+)|[oO]?([0-7]+)|[bB]([01]+))")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_MOST_DIGITS = 65  # a sign and 64 binary digits
_BEYOND = 2**64
_WHOLE_BELOW = 1e21  # Go writes floats of at least this size with an exponent
_TAG = "tag:yaml.org,2002:"


_ODD_IN_YAML = re.compile(
    rb"""[\x00-\x1f\x7f\\]  # also escapes
    |[:,\[{]\s*-?[0-9]+[.eE0-9]{18}|[:,\[{]\s*-?[0-9]+[.eE]  # numbers that are not small and whole
    |"[^"]{1000,}"\s*:""",
    re.VERBOSE,
)
"""Matches JSON that YAML reads in a different way; compact JSON contains no control characters."""

_PREFIX = "yaml: unmarshal errors:\n"


def decode(data: bytes) -> tuple[Any, tuple[str, ...]]:
    """Decode the first document; return the document's value, and an error text of Kubernetes for each repeated key.

    Raises ValueError with Kubernetes' message if the text is not YAML or has no JSON form, and `RequestEntityTooLarge`
    if the document has too many values.
    """
    if (plain := _plain_json(data)) is not None:
        return plain, ()
    try:
        text = data.decode()
        reader = _Reader(text)
        value = reader.document()
    except UnicodeDecodeError as error:
        raise ValueError("yaml: invalid leading UTF-8 octet") from error
    except yaml.YAMLError as error:
        raise ValueError(_reason(error)) from error
    if not reader.repeated:
        return value, ()
    return value, (_PREFIX + "  " + "\n  ".join(reader.repeated),)


def _plain_json(data: bytes) -> Any:
    """Return the value of compact JSON, which clients also send as YAML.

    The function returns None if YAML may read the text differently. YAML and JSON may differ in escapes, tabs, control
    characters, numbers other than small integers, keys of more than 1024 characters, and repeated keys. Decoding JSON
    is much faster than reading YAML event by event.
    """
    if data[:1] != b"{" or not data.isascii() or _ODD_IN_YAML.search(data):
        return None
    refuse_many(data)
    try:
        value = decode_shallow(data)
    except ValueError:
        return None
    return None if has_repeated_keys(data, value) or depth_exceeds(data, DEEPEST) else value


def _reason(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    return f"yaml: line {mark.line + 1}: {problem}" if mark else f"yaml: {problem}"


class _Reader:
    """Builds values from the events of the YAML parser."""

    def __init__(self, text: str) -> None:
        self._events: Iterator[yaml.Event] = yaml.parse(text, Loader=_LOADER)
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._made = 0
        self._aliased = 0
        self.repeated: list[str] = []

    def document(self) -> Any:
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                return self._value(next(self._events), 1)
        return None

    def _value(self, event: yaml.Event, depth: int) -> Any:
        assert isinstance(event, yaml.NodeEvent)
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event.anchor or "")
        before = self._made
        self._made += 1
        if self._made > MOST_VALUES:
            raise too_many_values()
        if isinstance(event, yaml.ScalarEvent):
            value = _scalar(event)
        elif depth > DEEPEST:
            raise ValueError("yaml: exceeded max depth")
        elif isinstance(event, yaml.SequenceStartEvent):
            value = self._sequence(depth)
        else:
            value = self._mapping(depth)
        if event.anchor:
            self._anchors[event.anchor] = value, self._made - before
        return value

    def _alias(self, anchor: str) -> Any:
        if anchor not in self._anchors:
            raise ValueError(f"yaml: unknown anchor '{anchor}' referenced")
        value, size = self._anchors[anchor]
        self._made += size
        self._aliased += size
        if self._aliased > _MOST_ALIASED:
            raise ValueError("yaml: document contains excessive aliasing")
        return value

    def _sequence(self, depth: int) -> list[Any]:
        items = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self._value(event, depth + 1))
        return items

    def _mapping(self, depth: int) -> dict[str, Any]:
        values: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            line = event.start_mark.line + 1 if event.start_mark else 0
            is_merge = isinstance(event, yaml.ScalarEvent) and event.implicit[0] and event.value == "<<"
            key = "<<" if is_merge else _key(self._value(event, depth + 1))
            value = self._value(next(self._events), depth + 1)
            if is_merge:
                _merge(merged, value)
                continue
            if key in values:
                self.repeated.append(f'line {line}: key "{key}" already set in map')
            values[key] = value
        return {**merged, **values} if merged else values


def _merge(merged: dict[str, Any], value: Any) -> None:
    """Merge the value of the key `<<`, which is a mapping or a list of mappings.

    The first mapping in which a key exists determines the key's value.
    """
    for each in value if isinstance(value, list) else [value]:
        if not isinstance(each, dict):
            raise ValueError("yaml: map merge requires map or sequence of maps as the value")
        for key in each:
            merged.setdefault(key, each[key])


def _key(value: Any) -> str:
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return f"{value:.8g}"
    raise ValueError(f"unsupported map key of type: {type(value).__name__}")


def _scalar(event: yaml.ScalarEvent) -> Any:
    if "\0" in event.value:
        raise ValueError("yaml: control characters are not allowed")
    tag = (event.tag or "").removeprefix(_TAG)
    if tag == "binary":
        return _binary(event.value)
    if tag not in _KINDS:
        return event.value if tag or not event.implicit[0] else _plain(event.value)
    value = _plain(event.value)
    if not isinstance(value, _KINDS[tag]) or (tag == "int" and isinstance(value, bool)):
        raise ValueError(f"yaml: cannot decode `{event.value}` as a !!{tag}")
    return value


def _binary(text: str) -> str:
    try:
        return base64.b64decode("".join(text.split()), validate=True).decode()
    except ValueError as error:
        raise ValueError("yaml: !!binary value contains invalid base64 data") from error


def _plain(text: str) -> Any:
    """Return the value of a plain scalar, as go-yaml's `resolve` does."""
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    number = _number(text.replace("_", "")) if text[0] in "+-.0123456789" else None
    return text if number is None else number


def _number(text: str) -> int | float | None:
    if _DECIMAL.fullmatch(text) and (number := _integer(text, 10)) is not None:
        return number
    if based := _BASED.fullmatch(text):
        sign, hexadecimal, octal, binary = based.groups()
        digits, base = (hexadecimal, 16) if hexadecimal else (octal, 8) if octal else (binary, 2)
        if (number := _integer(sign + digits, base)) is not None:
            return number
    if _FLOAT.fullmatch(text):
        return _float(text)
    if text.lstrip("+-").lower() in (".inf", ".nan"):
        raise ValueError(f"json: unsupported value: {text}")
    return None


def _integer(digits: str, base: int) -> int | None:
    number = int(digits, base) if len(digits) <= _MOST_DIGITS else _BEYOND
    return number if -_BEYOND // 2 <= number < _BEYOND else None


def _float(text: str) -> int | float:
    """Return an integral float as an int, because Go writes integral floats without a fraction."""
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"json: unsupported value: {text}")
    return int(number) if number.is_integer() and abs(number) < _WHOLE_BELOW else number
