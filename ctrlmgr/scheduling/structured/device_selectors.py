"""Evaluates the selectors of devices, which are CEL expressions about one device.

Guarantee: an expression that fails aborts the allocation, with the message of `DeviceMatches` in
`dynamic-resource-allocation/cel/compile.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from ctrlmgr.api.quantity import parse
from ctrlmgr.engine.features.gates import is_on
from ctrlmgr.errors import CtrlmgrError
from ctrlmgr.expressions.environment import Expression
from ctrlmgr.expressions.library.quantity_functions import Quantity, read_semver
from ctrlmgr.expressions.source import CompileError
from ctrlmgr.expressions.values import CostExceeded, DefaultMap, EvalError
from ctrlmgr.kinds.resource.selectors import compile_selector
from ctrlmgr.scheduling.structured.pools import Device

LIMIT: Final = 1_000_000
"""The cost limit of one evaluation (`CELSelectorExpressionMaxCost`)."""


class AllocationError(CtrlmgrError):
    """No device can be allocated to a claim; the message contains the reason."""


@lru_cache(maxsize=512)
def _compiled(source: str, has_portions: bool, has_lists: bool) -> Expression:
    return compile_selector(source, has_portions, has_lists)


def selects(device: Device, selectors: Iterable[Mapping[str, Any]], whose: str) -> bool:
    """Return whether all selectors match a device.

    Raises `AllocationError` if a selector fails; the message begins with the text `whose`.
    """
    variables: Mapping[str, Any] | None = None
    for at, selector in enumerate(selectors):
        variables = variables or {"device": _value_of(device)}
        if not _matches(selector["cel"]["expression"], variables, f"{whose}: selector #{at}"):
            return False
    return True


def _matches(source: str, variables: Mapping[str, Any], where: str) -> bool:
    try:
        expression = _compiled(source, *map(is_on, ("DRAConsumableCapacity", "DRAListTypeAttributes")))
    except CompileError as error:
        raise AllocationError(f"{where}: CEL compile error: {error}") from error
    try:
        value, _ = expression.evaluate(variables, LIMIT)
    except (EvalError, CostExceeded) as error:
        raise AllocationError(f"{where}: CEL runtime error: {error}") from error
    if type(value) is not bool:
        raise AllocationError(f"{where}: CEL runtime error: CEL result could not be converted to bool")
    return value


def _value_of(device: Device) -> dict[str, Any]:
    fields, driver = device.fields, device.id.driver
    return {
        "driver": driver,
        "allowMultipleAllocations": device.is_shared,
        "attributes": _by_domain(fields.get("attributes") or {}, driver, _attribute),
        "capacity": _by_domain(fields.get("capacity") or {}, driver, lambda each: Quantity(parse(each["value"]))),
    }


def _by_domain(
    values: Mapping[str, Mapping[str, Any]], driver: str, convert: Callable[[Mapping[str, Any]], Any]
) -> DefaultMap:
    """Return the attributes or capacities of a device by domain and name.

    A name without a domain belongs to the driver's domain. A domain without attributes is represented by an empty map.
    """
    found = DefaultMap()
    for name, value in values.items():
        domain, slash, identifier = name.partition("/")
        found.setdefault(domain if slash else driver, {})[identifier if slash else name] = convert(value)
    return found


def _attribute(attribute: Mapping[str, Any]) -> Any:
    if "version" in attribute:
        return read_semver(attribute["version"])
    return next((attribute[kind] for kind in ("int", "bool", "string") if kind in attribute), None)
