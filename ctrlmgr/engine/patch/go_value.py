"""Formats decoded JSON as Go prints it, for messages that equal Kubernetes' byte for byte.

Go's decoder decodes integers as int64, and all other numbers as float64 (`sigs.k8s.io/json`, preserving integers).
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any


def plain(value: Any) -> str:
    """Format a value as `%v` does, for example `map[a:1 b:[x y]]`.

    Keys are sorted, strings have no quotes, and null is `<nil>`.
    """
    if isinstance(value, dict):
        return f"map[{' '.join(f'{name}:{plain(value[name])}' for name in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(plain, value))}]"
    if isinstance(value, float):
        return _float(value)
    if value is None:
        return "<nil>"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _float(value: float) -> str:
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)  # JSON numbers include no infinity
    power = len(digits) + exponent - 1
    if -4 <= power < 6 or not value:
        return format(Decimal(repr(value)).normalize(), "f")
    first, rest = str(digits[0]), "".join(map(str, digits[1:]))
    return f"{'-' * sign}{first}{'.' * bool(rest)}{rest}e{'-' if power < 0 else '+'}{abs(power):02}"


def go_type(value: Any) -> str:
    """Return the type that Go's decoder gives a value, as `reflect.Type` prints it with `%s`."""
    return _TYPES[type(value)]


def json_type(value: Any) -> str:
    """Return encoding/json's name for a value's type: `object`, `array`, `string`, `number`, `bool`, `null`."""
    return _JSON_TYPES[type(value)]


_TYPES = {
    dict: "map[string]interface {}",
    list: "[]interface {}",
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
    type(None): "%!s(<nil>)",
}
_JSON_TYPES = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "bool",
    int: "number",
    float: "number",
    type(None): "null",
}
