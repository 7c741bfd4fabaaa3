"""Path elements: the encoding, in FieldsV1, of one step from an object or list to one of its parts.

    f:name                           a field of an object, a key of a map
    k:{"port":80,"protocol":"TCP"}   the item of a list that has these keys
    v:"example.com/a"                the item of a set
    i:0                              an item by its index

Guarantees: each path element has only one encoding, that of structured-merge-diff (keys sorted, JSON as Go writes it).
Therefore elements can be compared as strings. The function `canonical` converts other encodings into this form, and
treats numbers as float64, as Go does. Source: structured-merge-diff `fieldpath/element.go` and `serialize-pe.go`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from ctrlmgr.caches.memoized import memoized
from ctrlmgr.engine.patch.go_value import plain
from ctrlmgr.golang.go_text import escape_html, quote

# characters that Go's JSON encoder does not escape, and that sort after the closing quote
_PLAIN = "[#-%'-;=?-\\[\\]-~]*"
is_plain = re.compile(_PLAIN).fullmatch
_is_simple = re.compile(rf'(?:k:\{{"[A-Za-z]+":|v:)"{_PLAIN}"\}}?').fullmatch

_find_unsafe = re.compile(r"[^ !#-%'-;=?-\[\]-~]").search
"""A pattern that finds a character that Go's JSON encoder may escape."""


_LONGEST = 255
"""The maximum length of a memoized element, in characters."""


def go_json(value: Any) -> str:
    """Encode a value as Go's JSON encoders do, which is compact, with sorted keys and escaped HTML characters."""
    if type(value) is str and not _find_unsafe(value):
        return f'"{value}"'
    if type(value) is int:
        return str(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        value = int(value)
    return escape_html(msgspec.json.encode(value, order="sorted")).decode()


def field(name: str) -> str:
    """Return the path element of an object's field."""
    return f"f:{name}"


def key(pairs: Iterable[tuple[str, Any]]) -> str:
    """Return the path element of a list item with the given keys, which must be sorted by name."""
    return f"k:{{{','.join([f'{go_json(name)}:{go_json(value)}' for name, value in pairs])}}}"


def item(value: Any) -> str:
    """Return the path element of an item of a set."""
    return f"v:{go_json(value)}"


def canonical(element: str) -> str | None:
    """Return Kubernetes' encoding of an element; None for elements of an unknown kind, which are ignored.

    Raises ValueError if the string is not a valid element.
    """
    if element[:2] == "f:":
        return element
    if len(element) < 2:
        raise ValueError("key must be 2 characters long:")
    if element[1] != ":":
        raise ValueError(f"missing colon: {element}")
    return _canonical(element)


@memoized(entries=4096, longest=_LONGEST)
def _canonical(element: str) -> str | None:
    kind, text = element[0], element[2:]
    if kind == "i":
        return f"i:{int(text)}"
    if kind == "v":
        return item(_decode(text))
    if kind != "k":
        return None
    keys = _decode(text)
    if not isinstance(keys, dict):
        raise ValueError(f"not an object: {text}")
    return key((name, keys[name]) for name in sorted(keys))


def _decode(text: str) -> Any:
    try:
        return _as_float(msgspec.json.decode(text))
    except msgspec.DecodeError as reason:
        raise ValueError(str(reason)) from reason


def _as_float(value: Any) -> Any:
    """Convert integers to floats, as Go does for list keys; integers beyond 2**53 are rounded."""
    return float(value) if type(value) is int else value


def are_in_order(elements: Sequence[str]) -> bool:
    """Return whether the order of strings is also Kubernetes' order of the given path elements.

    The two orders are the same if all elements are simple values, or all are simple keys of the same name.
    """
    end = elements[0].find('"', 4) if elements[0][0] == "k" else 2
    start = elements[0][:end]
    return all(each.startswith(start) and _is_simple(each) for each in elements)


@memoized(entries=4096, longest=_LONGEST)
def order(element: str) -> Any:
    """Return the sort key of a path element.

    In the order of path elements, fields are first, followed by keys, values and indices; elements of one kind are
    sorted by content.
    """
    kind, text = element[0], element[2:]
    if kind == "f":
        return (0, text)
    if kind == "i":
        return (3, int(text))
    value = msgspec.json.decode(text)
    if kind == "k":
        return (1, *((name, _rank(each)) for name, each in value.items()))
    return (2, _rank(value))


def _rank(value: Any) -> tuple[int, Any]:
    """Return the sort key of a value; the order is numbers, strings, booleans, lists, objects, null."""
    if isinstance(value, bool):
        return (2, value)
    if isinstance(value, int | float):
        return (0, value)
    if isinstance(value, str):
        return (1, value)
    if isinstance(value, list):
        return (3, [_rank(each) for each in value])
    if isinstance(value, Mapping):
        return (4, [(name, _rank(value[name])) for name in sorted(value)])
    return (5, 0)


def text(element: str) -> str:
    """Format an element for an error message: `.name`, `[port=80,protocol="TCP"]`, `[="a"]` or `[0]`."""
    kind, content = element[0], element[2:]
    if kind == "f":
        return f".{content}"
    if kind == "i":
        return f"[{content}]"
    value = msgspec.json.decode(content)
    if kind == "k":
        return f"[{','.join(f'{name}={_shown(each)}' for name, each in value.items())}]"
    return f"[={_shown(value)}]"


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, list):
        return f"[{','.join(map(_shown, value))}]"
    if isinstance(value, dict):
        return "".join(f"{name}={_shown(each)}" for name, each in value.items())
    return "null" if value is None else plain(_as_float(value))
