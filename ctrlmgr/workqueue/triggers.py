"""Merges the sets of revisions for which an item was added to the workqueue."""

from __future__ import annotations

from typing import TypeAlias

from ctrlmgr.api.resource import Revision

Triggers: TypeAlias = tuple[Revision, ...] | set[Revision]
"""The revisions of one addition (a tuple), or the merged revisions of several additions (a set)."""


def merged(earlier: Triggers, more: Triggers) -> Triggers:
    """Return the union of two collections of revisions.

    If an argument is a Python set, the function changes the set in place, so that the time depends only on the number
    of new revisions.
    """
    if isinstance(earlier, set):
        earlier.update(more)
        return earlier
    return {*earlier, *more} if more else earlier


def ascending(triggers: Triggers) -> tuple[Revision, ...]:
    """Return the revisions in ascending order, without duplicates."""
    if isinstance(triggers, tuple) and len(triggers) < 2:
        return triggers
    return tuple(sorted(set(triggers)))
