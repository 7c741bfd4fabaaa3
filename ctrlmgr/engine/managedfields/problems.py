"""The text of an answer about errors that an object has by its schema."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ctrlmgr.api.field import MOST_ERRORS

_LONGEST_TOLD: Final = 64 * 1024
"""Characters of the errors of one object."""


def told(problems: Iterable[str]) -> str:
    """Return the problems that an answer has room for as one text, empty for none (smd's `ValidationErrors.Error`)."""
    found = _first(problems)
    return found[0] if len(found) == 1 else "errors:\n  " + "\n  ".join(found) if found else ""


def _first(problems: Iterable[str]) -> list[str]:
    """Return the problems that there is room for, and `and more` if there are others."""
    found: list[str] = []
    room = _LONGEST_TOLD
    for each in problems:
        if found and (len(found) >= MOST_ERRORS or len(each) > room):
            return [*found, "and more"]
        found.append(each if len(each) <= room else f"{each[:room]}... and {len(each) - room} more")
        room -= len(each)
    return found
