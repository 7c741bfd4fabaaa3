"""Indexes the values of an enumeration by type, for fast look-ups.

Source: kube-openapi `pkg/validation/validate/values.go` (`Enum`), which compares after conversion.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ctrlmgr.api.field import supported_values
from ctrlmgr.extensions.schema_validation.go_json_values import encode, equals_converted, shown
from ctrlmgr.work_budget import spend

_SCALARS = (str, int, float, bool)
_LAST_CHARACTER = 0x10FFFF
_REPLACEMENT = "\ufffd"


class Listed:
    """The indexed values of one enumeration."""

    def __init__(self, values: Sequence[Any]) -> None:
        """Create an index of the values that the schema lists."""
        self._values = values
        self._by_type = {kind: frozenset(each for each in values if type(each) is kind) for kind in _SCALARS}
        self._others = [each for each in values if type(each) in (dict, list)]
        self._supported: str | None = None

    def has(self, value: Any) -> bool:
        """Return whether a value is in the enumeration, possibly after a conversion to the type of an enumerated value.

        See `go_json_values.equals_converted`.
        """
        kind = type(value)
        if kind in (dict, list):
            spend(len(self._others))
            return any(equals_converted(value, each) for each in self._others)
        if value in self._by_type.get(kind, ()):
            return True
        if kind is int:
            return any(equals_converted(value, each) for each in self._converted(value))
        return kind is float and math.isfinite(value) and math.trunc(value) in self._by_type[int]

    def _converted(self, value: int) -> list[Any]:
        """Return the values of the enumeration that have another type but may equal an integer after a conversion."""
        text = chr(value) if 0 <= value <= _LAST_CHARACTER else _REPLACEMENT
        return [each for each in (float(value), text) if each in self._by_type[type(each)]]

    @property
    def supported(self) -> str:
        """The list of the enumeration's values, as text for error messages."""
        if self._supported is None:
            self._supported = supported_values(
                each if type(each) is str else encode(shown(each)).decode() for each in self._values
            )
        return self._supported
