"""Divides the server's seats among priority levels, so that each level gets as close to its target as its bounds allow.

Source: apiserver `pkg/util/flowcontrol/conc_alloc.go`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

_LEAST_TARGET: Final = 0.001
_EPSILON: Final = 1e-7
_MOST: Final = 3.4028234663852886e38
"""The greatest finite number of Go's float32."""


class Demand(NamedTuple):
    """The number of seats that a priority level could use, and the bounds of its seats."""

    lower: float
    upper: float
    target: float
    """The smoothed demand for seats; if the demand is less than `lower`, the target is `lower`."""


class Allocation(NamedTuple):
    """The seats of each level, and the ratio of seats to target for levels whose bounds do not limit their seats."""

    seats: Sequence[float]
    fair_fraction: float


def allocate(total: int, demands: Sequence[Demand]) -> Allocation:
    """Divide `total` seats among the levels; raises ValueError if no division is within the bounds."""
    _check(demands)
    low, high = sum(each.lower for each in demands), sum(each.upper for each in demands)
    targets = [max(each.target, _LEAST_TARGET) for each in demands]
    lowest = [each.lower / target for each, target in zip(demands, targets, strict=True)]
    highest = [each.upper / target for each, target in zip(demands, targets, strict=True)]
    if low - total > _EPSILON:
        raise ValueError(f"lower bounds sum to {low}, which is higher than the required sum of {total}")
    if total - high > _EPSILON:
        raise ValueError(f"upper bounds sum to {high}, which is lower than the required sum of {total}")
    if not total:
        return Allocation([0.0] * len(demands), 0.0)
    if low - total > -_EPSILON:
        return Allocation([each.lower for each in demands], min(_MOST, *lowest))
    if total - high > -_EPSILON:
        return Allocation([each.upper for each in demands], max(0.0, *highest))
    fair = total / sum(targets)
    if not max(0.0, *lowest) <= fair <= min(_MOST, *highest):
        fair = _bounded(total - low, targets, lowest, highest)
    seats = [max(each.lower, min(each.upper, fair * target)) for each, target in zip(demands, targets, strict=True)]
    return Allocation(seats, fair)


def _check(demands: Sequence[Demand]) -> None:
    for index, (lower, upper, target) in enumerate(demands):
        if lower < 0:
            raise ValueError(f"lower bound {index} is {lower} but negative lower bounds are not allowed")
        if target < lower:
            raise ValueError(f"target {index} is {target}, which is below its lower bound of {lower}")
        if upper < lower:
            raise ValueError(f"upper bound {index} is {upper} but should not be less than the lower bound {lower}")


def _bounded(left: float, targets: Sequence[float], lowest: Sequence[float], highest: Sequence[float]) -> float:
    """Return the ratio of seats to target at which exactly `left` seats beyond the lower bounds are used.

    The search increases the ratio from one bound to the next. Between two bounds, the levels that have not reached
    their upper bound receive seats in proportion to their targets.
    """
    bounds = [*zip(lowest, targets, strict=True), *zip(highest, (-each for each in targets), strict=True)]
    fair, sensitive = 0.0, 0.0
    for bound, change in sorted(bounds):
        if sensitive > 0:
            if (bound - fair) * sensitive >= left:
                return fair + left / sensitive
            left -= (bound - fair) * sensitive
        fair, sensitive = bound, sensitive + change
    return fair
