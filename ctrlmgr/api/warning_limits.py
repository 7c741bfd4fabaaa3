"""Limits the warnings that a response contains, and stops the search for more warnings early.

A body of a megabyte can contain very many values that cause warnings. In addition, a warning can be about a pair of
values. The client gets only the first warnings, so the search stops when the found warnings fill the response.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

LONGEST_TOGETHER: Final = 4096
"""The total length of warnings, in characters, above which each warning is truncated.

Source: apiserver `pkg/endpoints/filters/warning.go`.
"""

LONGEST: Final = 256
"""The maximum length of a truncated warning, in characters."""

_ENOUGH = 2 * LONGEST_TOGETHER
"""The total length, in characters, of found warnings at which the search stops.

Each warning counts with its truncated length. The limit is larger than a response, because some warnings are
duplicates.
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
