"""Formats an error message that lists the violations of an object's schema."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ctrlmgr.api.field import MOST_ERRORS

_LONGEST_TOLD: Final = 64 * 1024
"""The maximum length of the errors of one object, in characters."""


def joined_problems(problems: Iterable[str]) -> str:
    """Return the problems as one message, truncated to its maximum length; empty if there are no problems.

    Source: smd's `ValidationErrors.Error`.
    """
    found = _first(problems)
    return found[0] if len(found) == 1 else "errors:\n  " + "\n  ".join(found) if found else ""


def _first(problems: Iterable[str]) -> list[str]:
    """Return the first problems, up to the limits, and `and more` if there are further problems."""
    found: list[str] = []
    room = _LONGEST_TOLD
    for each in problems:
        if found and (len(found) >= MOST_ERRORS or len(each) > room):
            return [*found, "and more"]
        found.append(each if len(each) <= room else f"{each[:room]}... and {len(each) - room} more")
        room -= len(each)
    return found
