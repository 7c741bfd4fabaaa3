"""Limits the warnings that a response contains, and stops the search for more warnings early.

A body of a megabyte has room for very many values that cause warnings, and some warnings are about pairs of values. The
client gets only the first warnings, so the search stops when it has found enough.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

LONGEST_TOGETHER: Final = 4096
"""The maximum total length of warnings, in characters; if it is exceeded, each warning is truncated.

Source: apiserver `pkg/endpoints/filters/warning.go`.
"""

LONGEST: Final = 256
"""The maximum length of a truncated warning, in characters."""

_ENOUGH = 2 * LONGEST_TOGETHER
"""The maximum total length of the warnings to find, where each counts with its truncated length; the limit leaves room
for duplicates.
"""


def limited_warnings(found: Iterable[str]) -> list[str]:
    """Return the first warnings of `found` without duplicates, about as many as a response can contain."""
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
