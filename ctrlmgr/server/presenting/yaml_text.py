"""Converts JSON to YAML, using only the features of YAML that responses need.

Guarantees:
- Strings that a parser of YAML 1.1 or 1.2 could interpret as another type are quoted. Therefore parsers of YAML 1.1 and
  of YAML 1.2 read equal values.
- Keys are sorted, and the items of a list are not indented below the list's key, as in Kubernetes' YAML.
- The conversion takes a few microseconds per value.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

_PLAIN: Final = re.compile(r"[A-Za-z/_](?:[A-Za-z0-9/_.@:-]*[A-Za-z0-9/_.@-])?").fullmatch
_WORDS: Final = frozenset(("true", "false", "yes", "no", "on", "off", "y", "n", "null"))
"""Strings that YAML reads as booleans or null unless they are quoted, in upper, lower or mixed case."""

_UNPRINTABLE: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""Characters that JSON may contain unescaped, but that YAML allows only in escaped form."""

_CONSTANTS: Final = {True: "true", False: "false", None: "null"}
_LONGEST_KEY: Final = 1000
"""The maximum length of a key that is written without a question mark. The maximum is a few characters less than YAML
allows.
"""


def to_yaml(body: bytes) -> bytes:
    """Convert a JSON document to a YAML document."""
    pieces = list[str]()
    _Writer(pieces.append).value(msgspec.json.decode(body), "\n")
    pieces.append("\n")
    return "".join(pieces).encode()


class _Writer:
    """Writes one YAML document; `begin` is a line break followed by the indentation of a value's lines."""

    def __init__(self, add: Callable[[str], object]) -> None:
        self._add = add
        self._keys = dict[str, str]()

    def value(self, value: Any, begin: str) -> None:
        """Write a value at the current position."""
        if value and type(value) is dict:
            self._fields(value, begin)
        elif value and type(value) is list:
            self._items(value, begin)
        else:
            self._add(_scalar(value))

    def _fields(self, fields: dict[str, Any], begin: str) -> None:
        add, keys, separator, below = self._add, self._keys, "", begin + "  "
        for name in sorted(fields):
            value = fields[name]
            add(f"{separator}{keys.get(name) or self._key(name, begin)}:")
            separator = begin
            if value and type(value) is dict:
                add(below)
                self._fields(value, below)
            elif value and type(value) is list:
                add(begin)
                self._items(value, begin)
            else:
                add(f" {_scalar(value)}")

    def _items(self, items: list[Any], begin: str) -> None:
        separator, below = "- ", begin + "  "
        for each in items:
            self._add(separator)
            separator = begin + "- "
            self.value(each, below)

    def _key(self, name: str, begin: str) -> str:
        text = _text(name)
        if len(text) > _LONGEST_KEY:
            return f"? {text}{begin}"
        self._keys[name] = text
        return text


def _scalar(value: Any) -> str:
    """Return a scalar, or an empty object or list, in YAML."""
    kind = type(value)
    if kind is str:
        return _text(value)
    if kind is int:
        return str(value)
    if kind is float:
        text = repr(value)
        return text if "." in text else text.replace("e", ".0e")  # YAML 1.1 interprets 1e+30 as a string
    if kind is dict or kind is list:
        return "{}" if kind is dict else "[]"
    return _CONSTANTS[value]


def _text(text: str) -> str:
    if _PLAIN(text) and text.lower() not in _WORDS:
        return text
    return _UNPRINTABLE.sub(_escape, msgspec.json.encode(text).decode())


def _escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"
