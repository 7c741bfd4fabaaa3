"""A schema's rules for numbers: the range of a format, `minimum`, `maximum`, `multipleOf`.

Guarantees: int64 and float64 are compared as in Go, which differs from an exact comparison. The fraction of a limit for
int64 values is ignored. If a limit is outside the range of the type, every value is invalid.

Source: kube-openapi `pkg/validation/validate/{validator,values}.go`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ctrlmgr.extensions.schema_validation.go_json_values import HIGHEST, LOWEST, is_integral
from ctrlmgr.extensions.structural import Raw
from ctrlmgr.golang.go_numbers import write_float

_RANGES = {"int32": (-(2**31), 2**31 - 1)}
_LARGEST_FLOAT32 = 3.4028235677973366e38
"""The smallest float64 that becomes infinite when it is converted to float32."""


class Fault(NamedTuple):
    """An error of a number that violates a rule."""

    words: str
    """The error message, with `{path}` in place of the path."""
    has_field: bool = True
    """Whether the error names the field; errors about the range of a type do not name it."""
    value: Any = None
    """The value in the error message, if this is not the number itself."""


class NumberRules(NamedTuple):
    """The rules for numbers in one schema."""

    type: str = ""
    """The type of the numbers: "integer" or "number"; empty if the schema allows neither type or both types."""
    format: str = ""
    multiple_of: float | None = None
    maximum: float | None = None
    below_maximum: bool = False
    minimum: float | None = None
    above_minimum: bool = False

    @classmethod
    def of(cls, raw: Raw, type_: str, format: str) -> NumberRules:
        """Return the rules for numbers of a schema with the given type; `format` must be a known format."""
        numeric = type_ if type_ in ("integer", "number") else ""
        return cls(
            numeric,
            format if numeric else "",
            raw.get("multipleOf"),
            raw.get("maximum"),
            bool(raw.get("exclusiveMaximum")),
            raw.get("minimum"),
            bool(raw.get("exclusiveMinimum")),
        )

    @property
    def is_empty(self) -> bool:
        """Return whether every number of the type satisfies the rules, so that no number needs a check."""
        return (
            self.format not in ("int32", "float")
            and self.multiple_of is None
            and self.maximum is None
            and self.minimum is None
        )

    def faults(self, value: float) -> Iterator[Fault]:
        """Yield the errors of a number, an int64 or a float64, in Kubernetes' order."""
        yield from self._out_of_range("Checked", value)
        if self.multiple_of is not None:
            yield from self._limit("MultipleOf", value, self.multiple_of, self._not_multiple)
        if self.minimum is not None:
            yield from self._limit("Minimum boundary", value, self.minimum, self._too_small)
        if self.maximum is not None:
            yield from self._limit("Maximum boundary", value, self.maximum, self._too_large)

    def _limit(
        self, what: str, value: float, limit: float, check: Callable[[float, float], Fault | None]
    ) -> Iterator[Fault]:
        impossible = list(self._out_of_range(what, float(limit)))
        yield from impossible
        if impossible:
            fault = check(float(value), float(limit))
        elif type(value) is int:
            fault = check(value, _as_int64(limit))
        else:
            fault = check(value, float(limit))
        if fault is not None:
            yield fault

    def _out_of_range(self, what: str, value: float) -> Iterator[Fault]:
        if self._holds(value):
            return
        kind = f"{self.type} with format {self.format}" if self.format else f"{self.type} (default format)"
        yield Fault(f"{what} value must be of type {kind} in {{path}}", has_field=False)

    def _holds(self, value: float) -> bool:
        """Return whether a value is in the range of the type and the format."""
        if self.type == "integer":
            if type(value) is float and (not math.isfinite(value) or value != math.trunc(value)):
                return False
            low, high = _RANGES.get(self.format, (LOWEST, HIGHEST))
            return low <= int(value) <= high
        return self.format != "float" or abs(value) < _LARGEST_FLOAT32

    def _not_multiple(self, value: float, factor: float) -> Fault | None:
        if factor <= 0:
            words = f"factor MultipleOf declared for {{path}} must be positive: {_written(factor)}"
            return Fault(words, value=factor)
        if type(value) is int and type(factor) is int:
            is_multiple = value % factor == 0
        else:
            is_multiple = is_integral(1 / factor * value if factor < 1 else value / factor)
        return (
            None if is_multiple else Fault(f"{{path}} in body should be a multiple of {_written(factor)}", value=value)
        )

    def _too_small(self, value: float, limit: float) -> Fault | None:
        if value > limit or (value == limit and not self.above_minimum):
            return None
        relation = "greater than" if self.above_minimum else "greater than or equal to"
        return Fault(f"{{path}} in body should be {relation} {_written(limit)}", value=value)

    def _too_large(self, value: float, limit: float) -> Fault | None:
        if value < limit or (value == limit and not self.below_maximum):
            return None
        relation = "less than" if self.below_maximum else "less than or equal to"
        return Fault(f"{{path}} in body should be {relation} {_written(limit)}", value=value)


def _as_int64(limit: float) -> int:
    """Convert a float64 to an int64 as amd64 processors do: a value that is out of range becomes the lowest int64."""
    whole = math.trunc(limit)
    return whole if LOWEST <= whole <= HIGHEST else LOWEST


def _written(number: float) -> str:
    return write_float(number) if type(number) is float else str(number)
