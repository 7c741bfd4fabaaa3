"""Adds and subtracts amounts by resource name, as ResourceQuotas contain them.

Guarantees: results are formatted as in Kubernetes. A sum has the notation of its first nonzero amount; a negative
difference becomes 0.

Rules come from apiserver's `pkg/quota/v1/resources.go`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeAlias

from ctrlmgr.api.quantity import canonical, difference, parse, plus

Amounts: TypeAlias = Mapping[str, str]


def added(some: Amounts, others: Amounts) -> dict[str, str]:
    """Return the sum of two sets of amounts."""
    sums = dict(some)
    for name, amount in others.items():
        sums[name] = plus(sums[name], amount) if name in sums else amount
    return sums


def subtracted(some: Amounts, others: Amounts) -> dict[str, str]:
    """Return the difference of two sets of amounts, at least 0 for each resource."""
    left = {name: _difference(amount, others.get(name, "0")) for name, amount in some.items()}
    return left | {name: "0" for name in others if name not in left}


def _difference(one: str, other: str) -> str:
    return difference(one, other) if parse(one) > parse(other) else "0"


def masked(amounts: Amounts, names: Collection[str]) -> dict[str, str]:
    """Return only the amounts of the resources with these names."""
    return {name: amount for name, amount in amounts.items() if name in names}


def larger(some: Amounts, others: Amounts) -> dict[str, str]:
    """Return, for each resource, the larger of its two amounts."""
    most = dict(some)
    for name, amount in others.items():
        if name not in most or parse(amount) >= parse(most[name]):
            most[name] = amount
    return most


def are_equal(some: Amounts, others: Amounts) -> bool:
    """Return whether both sets have the same resources with equal amounts."""
    return some.keys() == others.keys() and all(parse(some[name]) == parse(others[name]) for name in some)


def printed(amounts: Amounts) -> str:
    """Format amounts as in error messages, sorted by name."""
    return ",".join(f"{name}={canonical(amounts[name])}" for name in sorted(amounts))
