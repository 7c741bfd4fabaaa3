"""The order of API versions by name: `v2`, then `v1`, `v1beta1`, `v1alpha1`, and then all other names.

Source: apimachinery `pkg/version/helpers.go` (`CompareKubeAwareVersionStrings`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_VERSION = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?", re.ASCII)
_STAGES = {"alpha": 0, "beta": 1, None: 2}


def newest_first(names: Iterable[str]) -> list[str]:
    """Return version names sorted by preference, with the most preferred version first."""
    names = sorted(names)
    return sorted(names, key=lambda name: priority(name), reverse=True) if all(map(_is_known, names)) else _mixed(names)


def _is_known(name: str) -> bool:
    return _VERSION.fullmatch(name) is not None


def _mixed(names: list[str]) -> list[str]:
    known = sorted(filter(_is_known, names), key=priority, reverse=True)
    return known + [name for name in names if not _is_known(name)]


def priority(name: str) -> tuple[int, int, int]:
    """Return a sort key of a version name; the key of a preferred version is greater.

    All names that are not of the form `v1`, `v1beta1` or `v1alpha1` have the same key.
    """
    match = _VERSION.fullmatch(name)
    return (-1, 0, 0) if match is None else (_STAGES[match[2]], int(match[1]), int(match[3] or 0))


def is_older(name: str, other: str) -> bool:
    """Return whether the first version is less preferred than the second."""
    if _is_known(name) or _is_known(other):
        return priority(name) < priority(other)
    return name > other
