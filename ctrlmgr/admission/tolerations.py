"""Compares and merges sets of tolerations.

Rules come from Kubernetes' `pkg/util/tolerations/tolerations.go`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

Toleration: TypeAlias = Mapping[str, Any]


def merged_tolerations(*sets: Sequence[Toleration]) -> list[dict[str, Any]]:
    """Return the tolerations of all sets in their order, without tolerations that another toleration includes."""
    every = [each for some in sets for each in some]
    kept: list[dict[str, Any]] = []
    for index, each in enumerate(every):
        later = every[index + 1 :]
        if any(_is_equal(each, other) for other in kept) or any(is_superset(other, each) for other in kept):
            continue
        if not any(is_superset(other, each) and not _is_equal(other, each) for other in later):
            kept.append(dict(each))
    return kept


def are_allowed(tolerations: Sequence[Toleration], whitelist: Sequence[Toleration]) -> bool:
    """Return whether the whitelist includes every toleration; an empty whitelist allows all tolerations."""
    return not whitelist or all(any(is_superset(other, each) for other in whitelist) for each in tolerations)


def is_superset(wide: Toleration, narrow: Toleration) -> bool:
    """Return whether the toleration `wide` tolerates all taints that `narrow` tolerates."""
    if _is_equal(wide, narrow):
        return True
    exists = (wide.get("operator") or "Equal") == "Exists"
    if (wide.get("key") or "") != (narrow.get("key") or "") and not (exists and not wide.get("key")):
        return False
    if wide.get("effect") and wide["effect"] != (narrow.get("effect") or ""):
        return False
    if (wide.get("effect") or "") == "NoExecute" and not _lasts(wide, narrow):
        return False
    if exists:
        return True
    return (narrow.get("operator") or "Equal") == "Equal" and (wide.get("value") or "") == (narrow.get("value") or "")


def _lasts(wide: Toleration, narrow: Toleration) -> bool:
    """Return whether the toleration `wide` is valid at least as long as `narrow`.

    A toleration without `tolerationSeconds` never expires.
    """
    if wide.get("tolerationSeconds") is None:
        return True
    seconds = narrow.get("tolerationSeconds")
    return seconds is not None and bool(seconds <= wide["tolerationSeconds"])


def _is_equal(one: Toleration, other: Toleration) -> bool:
    fields = ("key", "effect", "value", "tolerationSeconds")
    same = all((one.get(each) or None) == (other.get(each) or None) for each in fields)
    return same and (one.get("operator") or "Equal") == (other.get("operator") or "Equal")
