"""Numbers of pods that a spec gives as a number or a percentage (`pkg/util/intstr` and what uses it)."""

from __future__ import annotations

from typing import NamedTuple

import msgspec


class RollingUpdate(msgspec.Struct, frozen=True, rename="camel"):
    """How many pods a rollout may have below and above the desired number: numbers or percentages."""

    max_unavailable: int | str | None = None
    max_surge: int | str | None = None


def scaled(value: int | str | None, total: int, *, round_up: bool) -> int:
    """Return a number as it is, a percentage of `total` rounded up or down; None is 0.

    Raises `ValueError` for a text that is no percentage (`GetScaledValueFromIntOrPercent`).
    """
    if value is None or isinstance(value, int):
        return value or 0
    if not value.endswith("%"):
        raise ValueError(f"invalid value for IntOrString: invalid type: string is not a percentage: {value!r}")
    product = int(value[:-1]) * total
    return -(-product // 100) if round_up else product // 100


class Fenceposts(NamedTuple):
    """How many more and how many fewer pods than desired a rollout may have; never both 0."""

    surge: int
    unavailable: int


def fenceposts(max_surge: int | str | None, max_unavailable: int | str | None, desired: int) -> Fenceposts:
    """Return the room that a rollout has: surge rounded up, unavailability down (`ResolveFenceposts`).

    When both come to nothing, one may be unavailable: percentages of small numbers must not stop a rollout.
    """
    surge = scaled(max_surge, desired, round_up=True)
    unavailable = scaled(max_unavailable, desired, round_up=False)
    return Fenceposts(surge, unavailable if surge or unavailable else 1)
