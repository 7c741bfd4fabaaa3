"""Warnings: how much of them a client is told, and so how many are worth finding.

A body of a megabyte has room for very many things that a warning could be given of, and some warnings name two of them.
Of all that a client gets the beginning, so no more than that is looked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

LONGEST_TOGETHER: Final = 4096
"""Characters of all warnings together, beyond which each is cut (apiserver `pkg/endpoints/filters/warning.go`)."""

LONGEST: Final = 256
"""Characters of one that is."""

_ENOUGH = 2 * LONGEST_TOGETHER
"""Characters, counted as cut, beyond which none is told: some may turn out to have been told before."""


def told(found: Iterable[str]) -> list[str]:
    """Return the first of `found`, each once: as many as a client can be told of, and hardly more."""
    first: dict[str, None] = {}
    left = _ENOUGH
    for each in found:
        if each in first:
            continue
        first[each] = None
        left -= min(len(each), LONGEST)
        if left < 0:
            break
    return list(first)
