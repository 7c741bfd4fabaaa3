"""Computes the portion of a device's capacity that a request consumes if several claims share the device (KEP-5075).

Amounts of capacity are in billionths. Source: `consumable_capacity.go` in `dynamic-resource-allocation/structured`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctrlmgr.api.quantity import WHOLE, parse

Fields = Mapping[str, Any]
Amounts = Mapping[str, int]


def consumed(requests: Amounts, capacities: Mapping[str, Fields]) -> dict[str, int] | None:
    """Return the amount of each capacity of a device that a request consumes.

    The function returns None if the device cannot provide the amount.
    """
    if not requests.keys() <= capacities.keys():
        return None
    found = {name: _consumed(requests.get(name), capacity) for name, capacity in capacities.items()}
    if any(_violates(found[name], capacity.get("requestPolicy")) for name, capacity in capacities.items()):
        return None
    return found


def fits(amounts: Amounts, used: Amounts, capacities: Mapping[str, Fields]) -> bool:
    """Return whether these amounts of capacity are available in addition to the `used` amounts."""
    return all(amounts[name] + used.get(name, 0) <= parse(capacity["value"]) for name, capacity in capacities.items())


def _consumed(requested: int | None, capacity: Fields) -> int:
    policy = capacity.get("requestPolicy") or {}
    if requested is None:
        return parse(policy["default"] if policy.get("default") is not None else capacity["value"])
    bounds, options = policy.get("validRange") or {}, policy.get("validValues")
    if bounds.get("min") is not None:
        return _in_steps(requested, bounds)
    if options:
        return next((parse(each) for each in options if requested <= parse(each)), requested)
    return requested


def _in_steps(requested: int, bounds: Fields) -> int:
    """Round a requested amount up to the minimum, or to the minimum plus a multiple of the step."""
    least, step = parse(bounds["min"]), bounds.get("step")
    if requested < least:
        return least
    if step is None:
        return requested
    size, base = _value(parse(step)), _value(least)
    return (base - (base - _value(requested)) // size * size) * WHOLE


def _violates(amount: int, policy: Fields | None) -> bool:
    if policy is None or (policy.get("default") is not None and amount == parse(policy["default"])):
        return False
    bounds, options = policy.get("validRange"), policy.get("validValues")
    if bounds is not None:
        return _is_beyond(amount, bounds)
    return bool(options) and all(amount != parse(each) for each in options or ())


def _is_beyond(amount: int, bounds: Fields) -> bool:
    most, step = bounds.get("max"), bounds.get("step")
    if most is not None and amount > parse(most):
        return True
    least = _value(parse(bounds.get("min") or "0"))
    return step is not None and bool((_value(amount) - least) % _value(parse(step)))


def _value(amount: int) -> int:
    """Return an amount of capacity as an integer, rounded up (`Quantity.Value`)."""
    return -(-amount // WHOLE)
