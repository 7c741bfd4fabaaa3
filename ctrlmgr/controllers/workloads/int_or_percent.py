"""Computes numbers of pods from values that are numbers or percentages (apimachinery's `pkg/util/intstr`)."""

from __future__ import annotations

from typing import NamedTuple

import msgspec


class RollingUpdate(msgspec.Struct, frozen=True, rename="camel"):
    """The maximum numbers of pods below and above the desired number in a rollout, as numbers or percentages."""

    max_unavailable: int | str | None = None
    max_surge: int | str | None = None


def scaled(value: int | str | None, total: int, *, round_up: bool) -> int:
    """Return a number unchanged, or a percentage of `total`, rounded up or down; return 0 for None.

    Raises `ValueError` if a string is not a percentage (`GetScaledValueFromIntOrPercent`).
    """
    if value is None or isinstance(value, int):
        return value or 0
    if not value.endswith("%"):
        raise ValueError(f"invalid value for IntOrString: invalid type: string is not a percentage: {value!r}")
    product = int(value[:-1]) * total
    return -(-product // 100) if round_up else product // 100


class Fenceposts(NamedTuple):
    """The number of additional pods and of unavailable pods that a rollout may have.

    At least one of these numbers is not 0.
    """

    surge: int
    unavailable: int


def fenceposts(max_surge: int | str | None, max_unavailable: int | str | None, desired: int) -> Fenceposts:
    """Return the limits of a rollout.

    The surge is rounded up, and the number of unavailable pods is rounded down (`ResolveFenceposts`). If both limits
    are 0, one pod may be unavailable, because percentages of small numbers must not stop a rollout.
    """
    surge = scaled(max_surge, desired, round_up=True)
    unavailable = scaled(max_unavailable, desired, round_up=False)
    return Fenceposts(surge, unavailable if surge or unavailable else 1)
