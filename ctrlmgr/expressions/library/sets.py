"""Sets and encodings.

Source: cel-go `ext/{sets,encoders}.go`.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Any, Final

from ctrlmgr.expressions.declarations import Library
from ctrlmgr.expressions.values import EvalError, equal

SETS: Final = Library()
_function = SETS.function

_PAIR = "(list(T), list(T)) -> bool"


def _has(items: Sequence[Any], value: Any) -> bool:
    return any(equal(each, value) for each in items)


@_function("sets.contains", _PAIR)
def _contains(items: Sequence[Any], part: Sequence[Any]) -> bool:
    return all(_has(items, each) for each in part)


@_function("sets.intersects", _PAIR)
def _intersects(items: Sequence[Any], others: Sequence[Any]) -> bool:
    return any(_has(items, each) for each in others)


@_function("sets.equivalent", _PAIR)
def _equivalent(items: Sequence[Any], others: Sequence[Any]) -> bool:
    return _contains(items, others) and _contains(others, items)


@_function("base64.encode", "(bytes) -> string")
def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode()


@_function("base64.decode", "(string) -> bytes")
def _decode(text: str) -> bytes:
    padded = text if text.endswith("=") else text + "=" * (-len(text) % 4)
    try:
        return base64.b64decode(padded, validate=True)
    except (binascii.Error, ValueError) as error:
        raise EvalError("illegal base64 data at input byte 0") from error
