"""Validates the selectors of devices, which are CEL expressions about one device.

The cost of a device selector is limited, because the selector is evaluated for every device.

Source: Kubernetes `pkg/apis/resource/validation/validation.go` (`validateCELSelector`) and
`k8s.io/dynamic-resource-allocation/cel/compile.go`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, Final

from ctrlmgr.api.field import FieldError, Path, forbidden, invalid, required, too_long
from ctrlmgr.engine.cel_functions import DEVICE_FUNCTIONS, FUNCTIONS
from ctrlmgr.engine.features.gates import is_on
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.expressions.cost_estimation.cost_estimator import estimate_cost
from ctrlmgr.expressions.cost_estimation.cost_ranges import Range
from ctrlmgr.expressions.cost_estimation.operands import Place
from ctrlmgr.expressions.environment import Environment, Expression
from ctrlmgr.expressions.library.quantity_functions import Quantity
from ctrlmgr.expressions.source import CompileError
from ctrlmgr.expressions.types import ANY, BOOL, DYN, STRING, DeclaredObjects, Type, map_of, struct
from ctrlmgr.kinds.admissionregistration.expression_variables import runtime_name
from ctrlmgr.kinds.resource.shared_parts import validate_list

_MAX_SELECTORS: Final = 32
_LONGEST: Final = 10 * 1024
_MOST_COST: Final = 1_000_000
_LONGEST_KEPT: Final = 1000
_DEVICE: Final = "kubernetes.DRADevice"
_FIELDS: Final[Mapping[str, Type]] = {
    "driver": STRING,
    "capacity": map_of(STRING, map_of(STRING, Quantity.cel_type)),
}
_MAX_ENTRIES: Final = 32
_MAX_DOMAIN: Final = 63
_MAX_IDENTIFIER: Final = 32
_MAX_VALUE: Final = 64
_SIZES: Final[Mapping[Place, int]] = {
    (): 0,
    ("driver",): _MAX_DOMAIN,
    ("allowMultipleAllocations",): 1,
    **{
        (field, *below): size
        for field, value in (("attributes", _MAX_VALUE), ("capacity", 0))
        for below, size in (
            ((), _MAX_ENTRIES),
            (("@keys",), _MAX_DOMAIN),
            (("@values",), _MAX_ENTRIES),
            (("@items",), _MAX_ENTRIES),
            *(((each, "@keys"), _MAX_IDENTIFIER) for each in ("@values", "@items")),
            *(((each, "@values"), value) for each in ("@values", "@items")),
            *(((each, "@items"), value) for each in ("@values", "@items")),
        )
    },
}
"""The maximum size of each value in a device, keyed by the path of the value."""


def validate_selectors(selectors: Sequence[Mapping[str, Any]], path: Path) -> list[FieldError]:
    """Validate the device selectors of a request or a device class."""
    return validate_list(selectors, _MAX_SELECTORS, _validate_selector, path)


def _validate_selector(selector: Mapping[str, Any], path: Path) -> list[FieldError]:
    cel, below = selector.get("cel"), path.child("cel")
    return [required(below)] if cel is None else _validate_expression(cel.get("expression") or "", below)


def _validate_expression(source: str, path: Path) -> list[FieldError]:
    below = path.child("expression")
    if name_formats.length(source) > _LONGEST:
        return [too_long(below, _LONGEST)]
    judge = _judged if len(source) <= _LONGEST_KEPT else _judge
    problem, cost = judge(source, *map(is_on, ("DRAConsumableCapacity", "DRAListTypeAttributes")))
    if problem:
        return [invalid(below, source, problem)]
    return [forbidden(below, "too complex, exceeds cost limit")] if cost > _MOST_COST else []


def _judge(source: str, has_portions: bool, has_lists: bool) -> tuple[str, int]:
    """Return the error of a CEL expression, which is empty if it is valid, and the maximum cost of its evaluation."""
    try:
        expression = compile_selector(source, has_portions, has_lists)
    except CompileError as error:
        return f"compilation failed: {error}", 0
    if expression.type not in (BOOL, ANY, *((DYN,) if has_lists else ())):
        return f"must evaluate to {BOOL} or the unknown type, not {runtime_name(expression.type)}", 0
    return "", _most_cost(expression)


_judged = lru_cache(maxsize=512)(_judge)


def compile_selector(source: str, has_portions: bool, has_lists: bool) -> Expression:
    """Compile a CEL expression about a device; raises `CompileError` if the expression is invalid.

    The function `_environment` documents the other arguments.
    """
    return _environment(has_portions, has_lists).compile(source)


@cache
def _environment(has_portions: bool, has_lists: bool) -> Environment:
    """Return the CEL environment with the variables of device selectors.

    If `has_portions` is set, several claims may share a device (KEP-5075). If `has_lists` is set, attributes may have
    several values (KEP-5491).
    """
    fields = {**_FIELDS, "attributes": map_of(STRING, map_of(STRING, DYN if has_lists else ANY))}
    if has_portions:
        fields["allowMultipleAllocations"] = BOOL
    functions = DEVICE_FUNCTIONS if has_lists else FUNCTIONS
    return Environment({"device": struct(_DEVICE)}, functions, DeclaredObjects({_DEVICE: fields}), binds=True)


def _most_cost(expression: Expression) -> int:
    return estimate_cost(expression.root, _size_at).most


def _size_at(place: Place) -> Range | None:
    """Return the maximum size of a value of the variable `device`.

    The size is the same for all attributes of a domain.
    """
    if not place or place[0] != "device":
        return None
    below = place[1:]
    size = _SIZES.get(below)
    if size is None and len(below) == 3 and below[0] == "attributes" and below[1] in ("@values", "@items"):
        size = _MAX_VALUE
    return None if size is None else Range(0, size)
