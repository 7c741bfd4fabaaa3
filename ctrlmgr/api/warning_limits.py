"""Limits the warnings that a response contains, and hence those that are worth finding.

A body of a megabyte has room for very many values that cause warnings, and some warnings name two of them. The client
gets only the first warnings, so the search stops after these.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

LONGEST_TOGETHER: Final = 4096
"""The maximum total length of warnings in characters, beyond which each is cut (apiserver
`pkg/endpoints/filters/warning.go`).
"""

LONGEST: Final = 256
"""The maximum length of a cut warning, in characters."""

_ENOUGH = 2 * LONGEST_TOGETHER
"""The maximum total length of warnings to find, counted as cut; it leaves room for duplicates."""


def told(found: Iterable[str]) -> list[str]:
    """Return the first of `found` without duplicates, about as many as a response can contain."""
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
